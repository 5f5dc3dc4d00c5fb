// Z3 as the oracle of the prover: random facts and goals; whatever we decide must follow for Z3 too.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <z3++.h>

#include "base/error.h"
#include "sym/random_facts.h"

namespace selkie::sym {
namespace {

using namespace testing;

constexpr int wanted_decisions = 5000;  // Per seed; there are two.
// Z3's own step limit per query: unlike a timeout it gives the same answer on every machine, and needs no timer thread.
constexpr unsigned max_z3_steps = 400000;
// Z3 can hang on products of unknowns, whatever its limits; enumeration_test.cpp covers those.
constexpr Shape linear{.products = false, .symbolic_divisors = false};

// Z3 rounds division like floor for the positive divisors used here.
z3::expr encode(Op op, const z3::expr& a, const z3::expr& b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::floordiv:
      return a / b;
    case Op::ceildiv:
      return -((-a) / b);
    case Op::mod:
      return z3::mod(a, b);
    case Op::min:
      return z3::ite(a <= b, a, b);
    default:
      return z3::ite(a >= b, a, b);
  }
}

z3::expr encode(z3::context& z3, const RawTree& tree) {
  std::vector<z3::expr> parts;
  for (const RawNode& node : tree) {
    parts.push_back(node.op == Op::constant ? z3.int_val(node.value)
                    : node.op == Op::symbol ? z3.int_const(symbol_names[static_cast<size_t>(node.value)])
                                            : encode(node.op, parts[node.left], parts[node.right]));
  }
  return parts.back();
}

z3::expr encode(z3::context& z3, const Statement& s) {
  z3::expr left = encode(z3, s.left);
  switch (s.relation) {
    case Relation::less_equal:
      return left <= encode(z3, s.right);
    case Relation::equal:
      return left == encode(z3, s.right);
    case Relation::divisible:
      return z3::mod(left, z3.int_val(s.lo + 2)) == 0;
    default:
      return left >= z3.int_val(s.lo) && left <= z3.int_val(s.hi);
  }
}

struct Counts {
  int decided = 0;
  int contradictions = 0;
  int confirmed = 0;
  int unknown = 0;
  int missed = 0;  // Unknown to us, decided by Z3, of those asked.
  int asked = 0;
};

class Oracle {
 public:
  explicit Oracle(Random& random) : random_(random), solver_(z3_) {
    z3::params params(z3_);
    params.set("rlimit", max_z3_steps);
    solver_.set(params);
    for (const char* name : symbol_names) solver_.add(z3_.int_const(name) >= 0);
  }

  void run(Counts& counts) {
    solver_.push();
    state_and_ask(counts);
    solver_.pop();
  }

 private:
  void state_and_ask(Counts& counts) {
    Context context;
    Facts facts(context);
    std::string log;
    int64_t count = pick(random_, 0, 5);
    for (int64_t i = 0; i < count; ++i) {
      Statement fact = random_statement(random_, 2, linear);
      solver_.add(encode(z3_, fact));
      log += fmt::format("{}\n", encode(z3_, fact).to_string());
      try {
        add(facts, context, fact);
      } catch (const Error& error) {
        ++counts.contradictions;
        expect_unsatisfiable(counts, log + error.what());
        return;
      }
    }
    for (int i = 0; i < 8; ++i) ask(facts, context, counts, log);
  }

  void ask(const Facts& facts, Context& context, Counts& counts, const std::string& log) {
    Statement goal = random_statement(random_, 3, linear);
    Truth answer = prove(facts, context, goal);
    z3::expr encoded = encode(z3_, goal);
    if (answer == Truth::unknown) {
      ++counts.unknown;
      if (pick(random_, 0, 19) == 0) sample_unknown(encoded, counts);
      return;
    }
    ++counts.decided;
    solver_.push();
    solver_.add(answer == Truth::yes ? !encoded : encoded);
    expect_unsatisfiable(counts, fmt::format("{}goal {} answered {}\nknown: {}", log, encoded.to_string(),
                                             answer == Truth::yes ? "yes" : "no", fmt::join(facts.to_strings(), ", ")));
    solver_.pop();
  }

  void expect_unsatisfiable(Counts& counts, const std::string& what) {
    z3::check_result result = solver_.check();
    counts.confirmed += result == z3::unsat;
    if (result == z3::sat) ADD_FAILURE() << what << "\nbut Z3 has\n" << solver_.get_model();
  }

  void sample_unknown(const z3::expr& goal, Counts& counts) {
    ++counts.asked;
    for (const z3::expr& claim : {goal, !goal}) {
      solver_.push();
      solver_.add(claim);
      bool decided = solver_.check() == z3::unsat;
      solver_.pop();
      if (decided) ++counts.missed;
      if (decided) return;
    }
  }

  Random& random_;
  z3::context z3_;
  z3::solver solver_;
};

TEST(Z3Oracle, AgreesWithEveryDecision) {
  for (uint64_t seed : seeds()) {
    Random random(seed);
    Counts counts;
    Oracle oracle(random);
    while (counts.decided < wanted_decisions) {
      oracle.run(counts);
      ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    fmt::print("{} decided and {} contradictions, {} of them confirmed by Z3; {} unknown, of {} asked Z3 decides {}\n",
               counts.decided, counts.contradictions, counts.confirmed, counts.unknown, counts.asked, counts.missed);
    EXPECT_GT(counts.confirmed, wanted_decisions * 9 / 10);
  }
}

}  // namespace
}  // namespace selkie::sym
