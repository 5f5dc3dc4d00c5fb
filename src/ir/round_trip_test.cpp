// Random modules print to a text that parses to a module of the same text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/convert.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/test_ops.h"
#include "ir/verify.h"

namespace selkie::ir {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::unique_ptr<Module> module() {
    module_ = std::make_unique<Module>();
    for (size_t i = pick(3); i > 0; --i) module_->data_types.push_back({fmt::format("Data{}", i), {}});
    for (DataType& data : module_->data_types)
      for (size_t i = pick(3); i > 0; --i) data.constructors.push_back({fmt::format("Make{}", i), types(pick(3), 2)});
    for (const DTypeInfo& row : all_dtypes())
      if (pick(3) == 0) module_->add_constant(name(), tensor(row.dtype));
    size_t functions = 1 + pick(3);
    for (size_t i = 0; i < functions; ++i) module_->add_function(i == 0 ? "main" : fmt::format("{}{}", name(), i));
    for (const auto& f : module_->functions()) fill(*f);
    return std::move(module_);
  }

 private:
  size_t pick(size_t n) { return random_() % n; }
  template <class T>
  const T& one_of(const std::vector<T>& items) {
    return items[pick(items.size())];
  }

  std::string name() {
    static const std::vector<std::string> names{"x",    "y",       "a/b",     "odd name",    "7",           "_",
                                                "then", "from",    "q\"uote", "back\\slash", "line\nbreak", "été",
                                                "-",    "a.b-c$d", "return",  "hex",         "inf",         "\x01"};
    return one_of(names);
  }

  Tensor tensor(DType dtype) {
    static const std::vector<Dims> shapes{{}, {0}, {1}, {3}, {2, 3}, {5, 0}, {65}, {9, 8}};
    Dims dims = one_of(shapes);
    Tensor t(dtype, dims);
    if (dtype == DType::str) {
      for (int64_t i = 0; i < t.count(); ++i) t.mutable_data<std::string>()[i] = name();
      return t;
    }
    bool whole = !is_float(dtype) && !is_complex(dtype) && (dtype == DType::boolean || is_sub_byte(dtype));
    std::vector<int64_t> values(static_cast<size_t>(t.count()));
    for (int64_t& v : values) v = static_cast<int64_t>(random_()) % 16;
    if (whole) return narrow<int64_t>(values, dtype, dims);
    // Any bit pattern at all, or numbers without NaN among them.
    if (pick(2) == 0 && !is_complex(dtype)) return narrow<int64_t>(values, dtype, dims);
    for (size_t i = 0; i < t.byte_size(); ++i)
      t.mutable_bytes()[i] = static_cast<std::byte>(random_() & (dtype == DType::f4e2m1 ? 15 : 255));
    return t;
  }

  Type type(int depth) {
    switch (pick(depth > 0 ? 9 : 3)) {
      case 0:
        return Type::tensor(one_of_dtypes());
      case 1:
      case 2: {
        SymDims dims;
        static const std::vector<std::string> spelled{
            "0", "1", "7", "N", "M", "2*N + 1", "N*M", "floordiv(N, 2)", "max(N, M)", "'a dim'"};
        for (size_t i = pick(4); i > 0; --i) dims.push_back(sym::parse(module_->symbols(), one_of(spelled)));
        return Type::tensor(one_of_dtypes(), std::move(dims));
      }
      case 3:
        return Type::seq(type(depth - 1));
      case 4:
        return Type::opt(type(depth - 1));
      case 5:
        return Type::map(pick(2) ? DType::i64 : DType::str, type(depth - 1));
      case 6:
        return Type::tuple(types(pick(3), depth - 1));
      case 7:
        return Type::function(types(pick(3), depth - 1), types(pick(3), depth - 1));
      default:
        return module_->data_types.empty() ? Type{} : Type::data(one_of(module_->data_types).name);
    }
  }

  std::vector<Type> types(size_t count, int depth) {
    std::vector<Type> out;
    for (size_t i = 0; i < count; ++i) out.push_back(type(depth));
    return out;
  }

  DType one_of_dtypes() { return all_dtypes()[pick(all_dtypes().size())].dtype; }

  void fill(Function& f) {
    visible_.clear();
    for (const auto& c : module_->constants()) visible_.push_back(&c->value);
    for (size_t i = pick(4); i > 0; --i) visible_.push_back(f.body.add_parameter(name(), type(3)));
    static const std::vector<std::string> facts{"N in 1..512", "N % 2 == 0", "M <= N", "N == 2*M", "M >= 3"};
    if (pick(2) == 0) f.facts.add(one_of(facts), "test");
    body(f.body, 3, pick(3));
    for (const Value* v : f.body.yields) {
      f.result_types.push_back(pick(2) ? v->type : Type{});
      f.result_names.push_back(pick(2) ? name() : "");
    }
  }

  void body(Region& region, int depth, size_t yields) {
    size_t outer = visible_.size();
    for (size_t i = pick(5); i > 0; --i) node(region, depth);
    for (size_t i = yields; i > 0 && !visible_.empty(); --i) region.yields.push_back(one_of(visible_));
    visible_.resize(outer);
  }

  void node(Region& region, int depth) {
    auto n = std::make_unique<Node>();
    bool nest = depth > 0 && pick(4) == 0 && !visible_.empty();
    n->op = testing::test_ops().find(nest ? "nest" : "any");
    for (size_t i = pick(4); i > 0 && !visible_.empty(); --i) n->operands.push_back(one_of(visible_));
    if (pick(3) == 0) n->source = name();
    size_t results = pick(3);
    if (nest) {
      for (size_t i = 1 + pick(3); i > 0; --i) {
        Region& inner = n->add_region();
        size_t outer = visible_.size();
        for (size_t p = pick(3); p > 0; --p) visible_.push_back(inner.add_parameter(name(), type(2)));
        body(inner, depth - 1, results);
        visible_.resize(outer);
      }
    } else {
      attributes(*n);
    }
    for (size_t i = 0; i < results; ++i) {
      Value* result = n->add_result(pick(4) ? name() : "", pick(2) ? type(2) : Type{});
      if (!result->name.empty()) visible_.push_back(result);
    }
    region.nodes.push_back(std::move(n));
  }

  void attributes(Node& n) {
    static const std::vector<float> floats{0,     -0.0f,    1,         0.1f,     -2.5f, 1e-30f,
                                           3e38f, INFINITY, -INFINITY, 16777216, 1e-45f};
    static const std::vector<int64_t> ints{0, 1, -1, INT64_MAX, INT64_MIN, 42};
    auto list = [&](auto items, auto&& make) {
      for (size_t i = pick(4); i > 0; --i) items.push_back(make());
      return items;
    };
    if (pick(4) == 0) n.attrs.set("i", one_of(ints));
    if (pick(4) == 0) n.attrs.set("f", one_of(floats));
    if (pick(4) == 0) n.attrs.set("s", name());
    if (pick(4) == 0) n.attrs.set("is", list(std::vector<int64_t>{}, [&] { return one_of(ints); }));
    if (pick(4) == 0) n.attrs.set("fs", list(std::vector<float>{}, [&] { return one_of(floats); }));
    if (pick(4) == 0) n.attrs.set("ss", list(std::vector<std::string>{}, [&] { return name(); }));
    if (pick(4) == 0) n.attrs.set("t", tensor(one_of_dtypes()));
    if (pick(4) == 0) n.attrs.set("ty", type(3));
    if (pick(4) == 0) n.attrs.set("fn", FunctionRef{one_of_functions()});
  }

  std::string one_of_functions() { return module_->functions()[pick(module_->functions().size())]->name; }

  std::mt19937_64 random_;
  std::unique_ptr<Module> module_;
  std::vector<Value*> visible_;
};

void expect_same_constants(const Module& a, const Module& b) {
  ASSERT_EQ(a.constants().size(), b.constants().size());
  for (size_t i = 0; i < a.constants().size(); ++i) {
    Tensor x = a.constants()[i]->tensor();
    Tensor y = b.constants()[i]->tensor();
    ASSERT_EQ(x.dtype(), y.dtype());
    if (x.dtype() == DType::str)
      EXPECT_EQ(widen<std::string>(x), widen<std::string>(y));
    else
      EXPECT_EQ(std::memcmp(x.bytes(), y.bytes(), x.byte_size()), 0)
          << name(x.dtype()) << " @" << a.constants()[i]->value.name;
  }
}

void round_trips(uint64_t seed) {
  auto module = Generator(seed).module();
  std::string text = print(*module);
  SCOPED_TRACE(fmt::format("SELKIE_SEED={}\n{}", seed, text));
  ASSERT_NO_THROW(verify(*module));
  std::unique_ptr<Module> again;
  try {
    again = parse(text, testing::test_ops(), "text");
    verify(*again);
  } catch (const Error& error) {
    FAIL() << error.what();
  }
  EXPECT_EQ(print(*again), text);
  expect_same_constants(*module, *again);
}

TEST(RoundTrip, RandomModules) {
  for (uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) round_trips(seed);
}

TEST(RoundTrip, RandomModulesOfAFreshSeed) {
  const char* given = std::getenv("SELKIE_SEED");
  uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  fmt::print("[   SEED   ] SELKIE_SEED={}\n", seed);
  for (uint64_t i = 0; i < 500 && !HasFailure(); ++i) round_trips(seed + i);
}

}  // namespace
}  // namespace selkie::ir
