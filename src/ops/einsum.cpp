// Einsum: sums of products of elements, written as an equation over letters.
#include <algorithm>
#include <array>
#include <map>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

// Axes of operands and result by letter. The axes of an ellipsis get letters of their own: control characters, numbered
// from the last axis backwards, so that they broadcast.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

constexpr char ellipsis_letter = 1;

std::string expand_term(std::string_view term, int64_t rank, size_t ellipsis_rank) {
  std::string out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.substr(i, 3) == "...") {
      for (size_t k = ellipsis_rank; k-- > 0;) out += static_cast<char>(ellipsis_letter + k);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      out += term[i];
    } else {
      fail("'{}' is not a term of an equation", term);
    }
  }
  if (rank >= 0 && static_cast<int64_t>(out.size()) != rank)
    fail("the term '{}' does not fit a tensor of rank {}", term, rank);
  return out;
}

// The terms left of the arrow.
std::vector<std::string> terms_of(std::string_view text) {
  std::vector<std::string> terms(1);
  for (char c : text.substr(0, text.find("->"))) {
    if (c == ',')
      terms.emplace_back();
    else if (c != ' ')
      terms.back() += c;
  }
  return terms;
}

Equation parse(std::string text, const std::vector<int64_t>& ranks) {
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::vector<std::string> terms = terms_of(text);
  if (terms.size() != ranks.size())
    fail("the equation '{}' has {} terms for {} operands", text, terms.size(), ranks.size());
  Equation out;
  size_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    size_t at = terms[i].find("...");
    int64_t letters = static_cast<int64_t>(terms[i].size()) - (at == std::string::npos ? 0 : 3);
    int64_t hidden = at == std::string::npos ? 0 : ranks[i] - letters;
    if (hidden < 0 || hidden > 24) fail("the term '{}' does not fit a tensor of rank {}", terms[i], ranks[i]);
    out.operands.push_back(expand_term(terms[i], ranks[i], static_cast<size_t>(hidden)));
    widest = std::max(widest, static_cast<size_t>(hidden));
  }
  if (arrow != std::string::npos) {
    out.result = expand_term(text.substr(arrow + 2), -1, widest);
    return out;
  }
  // Without an arrow: the ellipsis, then every letter that occurs once, sorted.
  out.result = expand_term("...", -1, widest);
  std::map<char, int> counts;
  for (const std::string& term : out.operands)
    for (char c : term) ++counts[c];
  for (auto [letter, count] : counts)
    if (count == 1 && std::isalpha(static_cast<unsigned char>(letter))) out.result += letter;
  return out;
}

void eval(EvalContext& e) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < e.operand_count(); ++i) ranks.push_back(e.tensor(i).rank());
  Equation equation = parse(e.attr_string("equation"), ranks);
  std::map<char, int64_t> size;
  for (size_t i = 0; i < e.operand_count(); ++i)
    for (size_t k = 0; k < equation.operands[i].size(); ++k) {
      int64_t dim = e.tensor(i).dims()[k];
      auto [at, fresh] = size.emplace(equation.operands[i][k], dim);
      if (!fresh && at->second != dim && at->second != 1 && dim != 1)
        fail("a letter of the equation stands for {} and for {}", at->second, dim);
      if (at->second == 1) at->second = dim;
    }
  Dims dims;
  std::string letters = equation.result;
  for (char c : letters) {
    if (!size.contains(c)) fail("the letter '{}' of the result is in no operand", c);
    if (std::count(letters.begin(), letters.end(), c) > 1) fail("the letter '{}' is in the result twice", c);
    dims.push_back(size[c]);
  }
  Dims all = dims;
  for (auto [c, dim] : size)
    if (equation.result.find(c) == std::string::npos) {
      letters += c;
      all.push_back(dim);
    }
  // Under the index of all letters, each operand moves along its own; a letter that repeats walks a diagonal.
  auto strides_under = [&](const std::string& term, std::span<const int64_t> own_dims) {
    std::vector<int64_t> own = strides_of(own_dims);
    std::vector<int64_t> out(letters.size(), 0);
    for (size_t k = 0; k < term.size(); ++k)
      if (own_dims[k] != 1) out[letters.find(term[k])] += own[k];
    return out;
  };
  Tensor shape_check(e.tensor(0).dtype(), dims);
  dispatch_number(e.tensor(0).dtype(), [&](auto tag) {
    using W = typename decltype(tag)::type;
    using A = std::conditional_t<std::is_same_v<W, int64_t>, uint64_t, W>;
    std::vector<std::vector<W>> values;
    std::vector<std::vector<int64_t>> strides;
    for (size_t i = 0; i < e.operand_count(); ++i) {
      values.push_back(widen<W>(e.tensor(i)));
      strides.push_back(strides_under(equation.operands[i], e.tensor(i).dims()));
    }
    std::vector<A> sums(static_cast<size_t>(shape_check.count()), A{});
    std::vector<int64_t> result_strides = strides_under(equation.result, dims);
    for (Walk<1> walk(all, {result_strides}); !walk.done(); walk.next()) {
      A term{1};
      for (size_t i = 0; i < values.size(); ++i) {
        int64_t at = 0;
        for (size_t k = 0; k < letters.size(); ++k) at += walk.index()[k] * strides[i][k];
        term *= static_cast<A>(values[i][static_cast<size_t>(at)]);
      }
      sums[static_cast<size_t>(walk.offset(0))] += term;
    }
    std::vector<W> results(sums.begin(), sums.end());
    e.set(0, narrow<W>(results, e.tensor(0).dtype(), dims));
  });
}

// The equation, where ranks or terms without an ellipsis tell how many axes each operand has.
std::optional<Equation> equation_of(const ir::ShapeContext& c) {
  const std::string& text = c.attr_string("equation");
  std::vector<std::string> terms = terms_of(text);
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < c.operand_count(); ++i) {
    if (c.dims(i))
      ranks.push_back(static_cast<int64_t>(c.rank(i)));
    else if (i < terms.size() && terms[i].find("...") == std::string::npos)
      ranks.push_back(static_cast<int64_t>(terms[i].size()));
    else
      return std::nullopt;
  }
  return parse(text, ranks);
}

// What the axes of one letter are in the operands. Those that are 1 follow the others.
struct Letter {
  std::vector<sym::Expr> dims;
  bool complete = true;  // no operand with the letter is of unknown dims
};

std::map<char, Letter> letters_of(const ir::ShapeContext& c, const Equation& equation) {
  std::map<char, Letter> letters;
  for (size_t i = 0; i < equation.operands.size(); ++i)
    for (size_t k = 0; k < equation.operands[i].size(); ++k) {
      Letter& letter = letters[equation.operands[i][k]];
      if (c.dims(i))
        letter.dims.push_back((*c.dims(i))[k]);
      else
        letter.complete = false;
    }
  return letters;
}

sym::Expr dim_of(const ForwardContext& c, const Letter& letter, size_t axis) {
  for (sym::Expr d : letter.dims)
    if (c.excludes(d, 1)) return d;
  if (!letter.complete) return c.unknown(0, axis);
  SymDims all{c.constant(1)};
  for (sym::Expr d : letter.dims) all = *broadcast(c, all, SymDims{d});
  return all[0];
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<Equation> equation = equation_of(c);
  if (!equation) return {Type::tensor(c.dtype(0))};
  std::map<char, Letter> letters = letters_of(c, *equation);
  SymDims dims;
  for (char letter : equation->result) {
    if (!letters.contains(letter)) fail("the letter '{}' of the result is in no operand", letter);
    dims.push_back(dim_of(c, letters[letter], dims.size()));
  }
  return {Type::tensor(c.dtype(0), dims)};
}

// Axes of one letter are equal, as far as they cannot be 1, and all 1 where the result's is.
void backward(BackwardContext& c) {
  std::optional<Equation> equation = equation_of(c);
  if (!equation) return;
  for (size_t i = 0; i < c.operand_count(); ++i) c.set_rank(i, equation->operands[i].size());
  const std::optional<SymDims> out = c.result_dims(0);
  for (const auto& [name, letter] : letters_of(c, *equation)) {
    size_t axis = equation->result.find(name);
    sym::Expr leader = axis != std::string::npos && out && axis < out->size() ? (*out)[axis] : sym::Expr();
    bool all_one = leader && leader.constant() == 1;
    for (sym::Expr d : letter.dims) {
      if (!all_one && !c.excludes(d, 1) && letter.dims.size() > 1) continue;
      if (leader) c.equal(leader, d);
      leader = d;
    }
  }
}

// The size of a letter that is summed over: that of an axis which is not 1, or of all where they agree.
sym::Expr summed_size(const LowerContext& c, const Letter& letter) {
  for (sym::Expr d : letter.dims)
    if (c.excludes(d, 1)) return d;
  for (sym::Expr d : letter.dims)
    if (!c.proves_equal(d, letter.dims[0])) c.refuse("a letter may stand for 1 and for more");
  return letter.dims[0];
}

void lower(LowerContext& c) {
  std::optional<Equation> equation = equation_of(c);
  if (!equation) c.refuse("a rank is not known");
  std::map<char, Letter> letters = letters_of(c, *equation);
  std::string summed;
  SymDims extents;
  for (const auto& [name, letter] : letters) {
    auto uses = std::ranges::count(equation->result, name);
    if (uses > 1) c.refuse("a letter is in the result twice");
    if (uses == 1) continue;
    summed += name;
    extents.push_back(summed_size(c, letter));
  }
  c.define(0, [&c, equation = *equation, summed, extents](const Index& at) {
    DType dtype = compute_dtype(c.dtype(0));
    auto term = [&](const Index& k) {
      kir::Value product;
      for (size_t i = 0; i < equation.operands.size(); ++i) {
        Index from;
        for (size_t axis = 0; axis < equation.operands[i].size(); ++axis) {
          char name = equation.operands[i][axis];
          size_t place = summed.find(name);
          bool is_summed = place != std::string::npos;
          if (!is_summed) place = equation.result.find(name);
          sym::Expr whole = is_summed ? extents[place] : c.result_dims()[place];
          sym::Expr own = c.dims(i)->at(axis);
          from.push_back(broadcast_index(c, {own}, {whole}, {is_summed ? k[place] : at[place]})[0]);
        }
        kir::Value x = cast(c.operand(i, from), dtype);
        product = product ? product * x : x;
      }
      return product;
    };
    if (summed.empty()) return cast(term({}), c.result_dtype());
    return cast(c.builder().reduce(kir::Op::add, c.builder().number(dtype, 0), extents, term), c.result_dtype());
  });
}

}  // namespace

OpDef einsum_op() {
  return {
      .name = "einsum",
      .onnx = {"", "Einsum", {12}},
      .doc = "sums of products of elements, written as an equation such as \"ij,jk->ik\"",
      .operands = {{"first", numeric_tensor}, {"rest", numeric_tensor, variadic}},
      .results = {{"output", numeric_tensor}},
      .attrs = {required_attr("equation", AttrKind::text)},
      .dynamism = isdos(),
      .mapping = Mapping::many_to_many,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no equations"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .samples = {{"$(f32[2, 3], f32[3, 4]) {equation = \"ij,jk->ik\"}", "f32[2, 4]"},
                  {"$(i32[2, 2]{1, 2, 3, 4}) {equation = \"ii\"}", "i32[]{5}"},
                  {"$(f32[5, 2, 3], f32[1, 3, 4]) {equation = \"...ij,...jk\"}", "f32[5, 2, 4]"},
                  {"$(f32[2, 0], f32[0, 3]) {equation = \"ij,jk->ik\"}", "f32[2, 3]{0, 0, 0, 0, 0, 0}"},
                  {"$(f32[1, 2], f32[3, 4]) {equation = \"ab, bc -> ca\"}", "error: stands for 2 and for 3"},
                  {"$(f32[2, 1], f32[3, 0]) {equation = \"ab,bc->bca\"}", "f32[3, 0, 2]"},
                  {"$(f32[1, 3]) {equation = \"ii->i\"}", "f32[3]"},
                  {"$(f32[4, 1, 2], f32[3, 1]) {equation = \"...i,...j->j...\"}", "f32[1, 4, 3]"},
                  {"$(f32[], f32[2]) {equation = \",i\"}", "f32[2]"},
                  {"$(f32[2, 3], f32[4, 5]) {equation = \"ij,jk->ik\"}", "error: stands for 3 and for 4"},
                  {"$(f32[2]) {equation = \"ij->i\"}", "error: does not fit a tensor of rank 1"},
                  {"$(f32[2]) {equation = \"i->k\"}", "error: is in no operand"}},
  };
}

}  // namespace selkie::ops
