// Operators on tensors of strings: StringConcat, StringNormalizer, StringSplit, RegexFullMatch.
#include <set>

#include "ops/support/blank.h"
#include "ops/support/elementwise.h"
#include "ops/support/regex.h"
#include "ops/support/utf8.h"

namespace selkie::ops {
namespace {

constexpr TypeVar text{"T", dtypes::string};

std::vector<std::string> split_at_delimiter(const std::string& s, const std::string& delimiter, size_t most) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (size_t next; parts.size() < most && (next = s.find(delimiter, at)) != std::string::npos;
       at = next + delimiter.size())
    parts.push_back(s.substr(at, next - at));
  parts.push_back(s.substr(at));
  return parts;
}

// Runs of white space separate; the rest after `most` splits keeps its own white space.
std::vector<std::string> split_at_spaces(const std::string& s, size_t most) {
  constexpr const char* spaces = " \t\n\v\f\r";
  std::vector<std::string> parts;
  size_t at = s.find_first_not_of(spaces);
  while (at != std::string::npos) {
    size_t end = parts.size() < most ? s.find_first_of(spaces, at) : std::string::npos;
    parts.push_back(s.substr(at, end == std::string::npos ? end : end - at));
    at = end == std::string::npos ? end : s.find_first_not_of(spaces, end);
  }
  return parts;
}

void split(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  const std::string& delimiter = e.attr_string("delimiter");
  int64_t limit = e.attr_int("maxsplit");
  size_t most = limit < 0 ? std::string::npos : static_cast<size_t>(limit);
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> counts;
  for (const std::string& s : x.values<std::string>()) {
    rows.push_back(delimiter.empty() ? split_at_spaces(s, most) : split_at_delimiter(s, delimiter, most));
    counts.push_back(static_cast<int64_t>(rows.back().size()));
  }
  int64_t width = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  Dims dims = x.dims();
  dims.push_back(width);
  Tensor out(DType::str, std::move(dims));
  for (size_t i = 0; i < rows.size(); ++i)
    std::move(rows[i].begin(), rows[i].end(), out.mutable_data<std::string>() + static_cast<int64_t>(i) * width);
  e.set(0, std::move(out));
  e.set(1, narrow<int64_t>(counts, DType::i64, x.dims()));
}

void normalize(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 1 && !(x.rank() == 2 && x.dim(0) == 1))
    fail("shape {} is neither [C] nor [1, C]", to_string(x.dims()));
  const std::string& action = e.attr_string("case_change_action");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    fail("attribute 'case_change_action' is \"{}\", but must be NONE, LOWER or UPPER", action);
  bool sensitive = e.attr_int("is_case_sensitive") != 0;
  auto key = [&](const std::string& s) { return sensitive ? s : to_lower(s); };
  std::set<std::string> stops;
  for (const std::string& s : e.attr<std::vector<std::string>>("stopwords")) stops.insert(key(s));
  std::vector<std::string> kept;
  for (const std::string& s : x.values<std::string>())
    if (!stops.contains(key(s))) kept.push_back(action == "LOWER" ? to_lower(s) : action == "UPPER" ? to_upper(s) : s);
  if (kept.empty()) kept.emplace_back();
  Dims dims(static_cast<size_t>(x.rank()), 1);
  dims.back() = static_cast<int64_t>(kept.size());
  e.set(0, narrow<std::string>(kept, DType::str, std::move(dims)));
}

void match(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  Regex regex(e.attr_string("pattern"));
  std::vector<uint8_t> matches;
  for (const std::string& s : x.values<std::string>()) matches.push_back(regex.matches(s));
  e.set(0, narrow<uint8_t>(matches, DType::boolean, x.dims()));
}

// At least one string is left, and at most as many as there were.
std::vector<Type> forward_normalizer(const ForwardContext& c) {
  if (!c.dims(0) || c.rank(0) == 0) return {Type::tensor(DType::str)};
  sym::Expr all = sym::max(c.dims(0)->back(), 1);
  SymDims dims(c.rank(0), c.constant(1));
  bool drops = !std::get<std::vector<std::string>>(*c.find_attr("stopwords")).empty();
  dims.back() = drops ? c.unknown(0, dims.size() - 1, {.least = c.constant(1), .most = all}) : all;
  return {Type::tensor(DType::str, dims)};
}

// Either [C] or [1, C].
void backward_normalizer(BackwardContext& c) {
  if (c.result_dims(0)) c.set_rank(0, c.result_dims(0)->size());
  if (c.dims(0) && c.rank(0) == 2) c.equal(c.dims(0)->at(0), c.constant(1));
}

std::vector<Type> forward_split(const ForwardContext& c) {
  std::vector<Type> types{Type::tensor(DType::str), Type::tensor(DType::i64, c.dims(0))};
  if (!c.dims(0)) return types;
  int64_t limit = c.attr_int("maxsplit");
  constexpr int64_t unlimited = int64_t{1} << 40;
  ir::Bounds bounds;
  if (limit >= 0 && limit < unlimited) bounds.most = c.constant(limit + 1);
  types[0].dims = *c.dims(0);
  types[0].dims->push_back(c.unknown(0, c.rank(0), bounds));
  return types;
}

void backward_split(BackwardContext& c) {
  if (c.result_dims(1))
    c.set_dims(0, *c.result_dims(1));
  else if (c.result_dims(0) && !c.result_dims(0)->empty())
    c.set_dims(0, std::span(*c.result_dims(0)).first(c.result_dims(0)->size() - 1));
}

OpDef string_record() {
  OpDef op = blank_record();
  op.lower = absent("strings are handled by the reference evaluator");
  op.grad = absent("strings have no derivative");
  return op;
}

OpDef string_concat() {
  OpDef op = string_record();
  op.name = "string_concat";
  op.onnx = {"", "StringConcat", {20}};
  op.doc = "x followed by y, element-wise with broadcasting";
  op.operands = {{"x", text}, {"y", text}};
  op.results = {{"z", text}};
  op.mapping = Mapping::one_to_one;
  op.forward = broadcast_all;
  op.backward = backward_broadcast;
  op.eval = [](EvalContext& e) {
    auto join = [](const std::string& a, const std::string& b) { return a + b; };
    e.set(0, map_pairs<std::string>(e.tensor(0), e.tensor(1), DType::str, join));
  };
  op.samples = {{R"($(str[2]{"a", "b"}, str[2]{"c", ""}))", R"(str[2]{"ac", "b"})"},
                {R"($(str[2, 1]{"a", "b"}, str[1]{"c"}))", R"(str[2, 1]{"ac", "bc"})"},
                {"$(str[2, 0], str[2, 1])", "str[2, 0]"},
                {"$(str[2], str[3])", "error: do not broadcast"},
                {"$(f32[2], str[2])", "error: must be one of"}};
  return op;
}

OpDef string_normalizer() {
  OpDef op = string_record();
  op.name = "string_normalizer";
  op.onnx = {"", "StringNormalizer", {10}};
  op.doc = "drops stop words and changes the case of the others";
  op.operands = {{"x", text}};
  op.results = {{"y", text}};
  op.attrs = {string_attr("case_change_action", "NONE"),
              int_attr("is_case_sensitive", 0),
              optional_attr("locale", AttrKind::text),
              {"stopwords", AttrKind::texts, false, std::vector<std::string>{}}};
  op.dynamism = edo({"x"});
  op.forward = forward_normalizer;
  op.backward = backward_normalizer;
  op.eval = normalize;
  op.samples = {{R"($(str[3]{"Monday", "is", "Ärger"}) {stopwords = ["IS"], case_change_action = "UPPER"})",
                 R"(str[2]{"MONDAY", "ÄRGER"})"},
                {R"($(str[1, 2]{"a", "A"}) {stopwords = ["a"], is_case_sensitive = 1})", R"(str[1, 1]{"A"})"},
                {R"($(str[1, 0]))", R"(str[1, 1]{""})"},
                {R"($(str[1]{"a"}) {stopwords = ["a"]})", R"(str[1]{""})"},
                {R"($(str[3]))", "str[3]"},
                {"$(str[2, 2])", "error: neither [C] nor [1, C]"},
                {R"($(str[2]) {case_change_action = "TITLE"})", "error: must be NONE, LOWER or UPPER"}};
  return op;
}

OpDef string_split() {
  OpDef op = string_record();
  op.name = "string_split";
  op.onnx = {"", "StringSplit", {20}};
  op.doc = "the parts between delimiters along a new last axis, padded with empty strings, and their number";
  op.operands = {{"x", text}};
  op.results = {{"y", text}, {"z", i64_tensor}};
  op.attrs = {string_attr("delimiter", ""), int_attr("maxsplit", -1)};
  op.dynamism = edo({"x"});
  op.forward = forward_split;
  op.backward = backward_split;
  op.eval = split;
  op.samples = {{R"($(str[2]{"a,b", ",c,,"}) {delimiter = ","})",
                 R"(str[2, 4]{"a", "b", "", "", "", "c", "", ""}, i64[2]{2, 4})"},
                {R"($(str[]{"  a b  c "}))", R"(str[3]{"a", "b", "c"}, i64[]{3})"},
                {R"($(str[1]{"a b  c "}) {maxsplit = 1})", R"(str[1, 2]{"a", "b  c "}, i64[1]{2})"},
                {"$(str[2, 0])", "str[2, 0, 0], i64[2, 0]"},
                {R"($(str[1]{" "}) {maxsplit = 0})", "str[1, 0], i64[1]{0}"},
                {"$(f32[1])", "error: must be one of"}};
  return op;
}

OpDef regex_full_match() {
  OpDef op = string_record();
  op.name = "regex_full_match";
  op.onnx = {"", "RegexFullMatch", {20}};
  op.doc = "whether each string as a whole matches a regular expression (RE2's syntax)";
  op.operands = {{"x", {"T1", dtypes::string}}};
  op.results = {{"y", bool_tensor}};
  op.attrs = {string_attr("pattern", "")};
  op.mapping = Mapping::one_to_one;
  op.forward = shaped_like_first(DType::boolean);
  op.backward = backward_same;
  op.eval = match;
  op.samples = {
      {R"($(str[3]{"www.a.com", "www.a.org", "www.a.comx"}) {pattern = "www\\.[\\w.-]+\\.\\bcom\\b"})",
       "bool[3]{true, false, false}"},
      {R"($(str[4]{"", "ab", "abab", "aba"}) {pattern = "(?:ab)*"})", "bool[4]{true, true, true, false}"},
      {R"($(str[4]{"aaa", "aa", "AAAA", "aaaaa"}) {pattern = "(?i)a{3,4}?"})", "bool[4]{true, false, true, false}"},
      {R"($(str[3]{"x|é", "x|ée", "y"}) {pattern = "^(?P<n>x[|][^a-z\\d])|\\x79$"})", "bool[3]{true, false, true}"},
      {R"($(str[2]{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "aa"}) {pattern = "((a*)*)*"})", "bool[2]{false, true}"},
      {"$(str[0, 2])", "bool[0, 2]"},
      {R"($(str[1]) {pattern = "a("})", "error: a ) is missing"},
      {R"($(str[1]) {pattern = "(a{1000}){1000}"})", "error: too large"},
      {R"($(str[1]) {pattern = "*a"})", "error: nothing to repeat"},
      {R"($(str[1]) {pattern = "(a)\\1"})", "error: escape"}};
  return op;
}

}  // namespace

std::vector<OpDef> string_family() {
  return {regex_full_match(), string_concat(), string_normalizer(), string_split()};
}

}  // namespace selkie::ops
