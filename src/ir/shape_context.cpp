#include "ir/shape_context.h"

#include <algorithm>
#include <cmath>

#include "base/convert.h"

namespace selkie::ir {
namespace {

const Type unknown_type;
const Known unknown_value;

// The largest n such that all integers up to n are exact in a dtype; 0 where contents are not followed.
int64_t exact_integers(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return int64_t{1} << 24;
    case DType::f64:
      return int64_t{1} << 53;
    case DType::i32:
      return (int64_t{1} << 31) - 1;
    case DType::boolean:
      return 1;
    case DType::i64:
      return std::numeric_limits<int64_t>::max();
    default:
      return 0;
  }
}

// Floats are quotients by powers of two; those that need more bits do not occur in shape arithmetic.
constexpr int max_denominator_bits = 40;

std::optional<Contents> contents_of_floats(const Tensor& tensor, sym::Context& symbols) {
  std::vector<double> values = widen<double>(tensor);
  int bits = 0;
  double largest = 0;
  for (double v : values) {
    if (!std::isfinite(v)) return std::nullopt;
    largest = std::max(largest, std::fabs(v));
    while (bits <= max_denominator_bits && std::ldexp(v, bits) != std::floor(std::ldexp(v, bits))) ++bits;
  }
  if (bits > max_denominator_bits || std::ldexp(largest, bits) >= 0x1p53) return std::nullopt;
  Contents out{.denominator = int64_t{1} << bits};
  for (double v : values) out.elements.push_back(symbols.constant(static_cast<int64_t>(std::ldexp(v, bits))));
  return out;
}

}  // namespace

bool Contents::complete() const {
  return std::all_of(elements.begin(), elements.end(), [](sym::Expr e) { return static_cast<bool>(e); });
}

const Known& ShapeContext::known(size_t i) const { return i < operands_.size() ? operands_[i] : unknown_value; }

std::optional<SymElements> ShapeContext::contents(size_t i) const {
  const std::optional<Contents>& found = known(i).contents;
  if (!found || found->denominator != 1 || found->rounded || !found->complete() || is_float(dtype(i)))
    return std::nullopt;
  return found->elements;
}

std::optional<std::vector<int64_t>> ShapeContext::numbers(size_t i) const {
  std::optional<SymElements> elements = contents(i);
  if (!elements) return std::nullopt;
  std::vector<int64_t> out;
  for (sym::Expr e : *elements) {
    if (!e.constant()) return std::nullopt;
    out.push_back(*e.constant());
  }
  return out;
}

const Contents* ShapeContext::rationals(size_t i) const {
  const std::optional<Contents>& found = known(i).contents;
  return found && found->complete() && !found->rounded ? &*found : nullptr;
}

const Attribute* ShapeContext::find_attr(std::string_view name) const {
  if (const Attribute* found = attrs_.find(name)) return found;
  const AttrDef* def = op_.find_attr(name);
  CHECK(def != nullptr, "{} has no attribute '{}'", op_.name, name);
  return def->fallback ? &*def->fallback : nullptr;
}

bool ShapeContext::excludes(sym::Expr e, int64_t value) const {
  sym::Range range = facts_.range(e);
  return (range.lo && *range.lo > value) || (range.hi && *range.hi < value);
}

SymDims ForwardContext::unknown_dims(size_t result, size_t rank) const {
  SymDims dims;
  for (size_t axis = 0; axis < rank; ++axis) dims.push_back(unknown(result, axis));
  return dims;
}

void ForwardContext::set_contents(size_t result, std::optional<Contents> contents) const {
  if (contents_.size() <= result) contents_.resize(result + 1);
  contents_[result] = std::move(contents);
}

const Type& BackwardContext::result(size_t i) const { return i < results_.size() ? results_[i].type : unknown_type; }

void BackwardContext::set_dims(size_t operand, std::span<const sym::Expr> dims) {
  if (!has(operand)) return;
  const SymDims own = services_.require_rank(operand, dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i]) equal(own[i], dims[i]);
}

const Contents* ValueContext::partial(size_t i) const {
  const std::optional<Contents>& found = known(i).contents;
  return found ? &*found : nullptr;
}

std::optional<Dims> ValueContext::small_dims(size_t result) const { return ir::small_dims(results_[result].type); }

void ValueContext::set(size_t result, Contents contents) {
  if (result >= results_.size()) return;
  if (contents_.size() <= result) contents_.resize(result + 1);
  contents_[result] = std::move(contents);
}

bool ValueContext::exact(sym::Expr e, DType dtype) {
  int64_t most = exact_integers(dtype);
  if (most == 0) return false;
  if (dtype == DType::i64) return true;
  sym::Range range = facts_.range(e);
  // What certainly lies beyond is not followed; what only may is required to stay below.
  if ((range.lo && *range.lo > most) || (range.hi && *range.hi < -most)) return false;
  static constexpr std::string_view why = "where the analysis of shapes through this dtype is exact";
  bool below = range.hi && *range.hi <= most;
  bool above = range.lo && *range.lo >= -most;
  if (!below && !services_.require_less_equal(e, constant(most), why)) return false;
  return above || services_.require_less_equal(constant(-most), e, why);
}

std::optional<Dims> small_dims(const Type& type) {
  if (!type.is_tensor() || !type.dims) return std::nullopt;
  Dims dims;
  int64_t count = 1;
  for (sym::Expr e : *type.dims) {
    std::optional<int64_t> value = e.constant();
    if (!value || *value < 0 || *value > max_known_elements) return std::nullopt;
    dims.push_back(*value);
    count = std::min(count, max_known_elements + 1) * *value;
  }
  return count <= max_known_elements ? std::optional(dims) : std::nullopt;
}

std::optional<Contents> contents_of(const Tensor& tensor, sym::Context& symbols) {
  if (tensor.count() > max_known_elements || exact_integers(tensor.dtype()) == 0) return std::nullopt;
  if (is_float(tensor.dtype())) return contents_of_floats(tensor, symbols);
  Contents out;
  for (int64_t v : widen<int64_t>(tensor)) out.elements.push_back(symbols.constant(v));
  return out;
}

std::optional<Tensor> tensor_of(const Known& known) {
  std::optional<Dims> dims = small_dims(known.type);
  if (!dims || !known.contents || known.contents->rounded) return std::nullopt;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  for (sym::Expr e : known.contents->elements) {
    if (!e || !e.constant()) return std::nullopt;
    integers.push_back(*e.constant());
    reals.push_back(static_cast<double>(*e.constant()) / static_cast<double>(known.contents->denominator));
  }
  if (static_cast<int64_t>(integers.size()) != element_count(*dims)) return std::nullopt;
  if (is_float(known.type.dtype)) return narrow<double>(reals, known.type.dtype, *dims);
  return narrow<int64_t>(integers, known.type.dtype, *dims);
}

Known known_of(const SymbolicInts& given, sym::Context& symbols) {
  SymDims dims;
  if (!given.scalar) dims.push_back(symbols.constant(static_cast<int64_t>(given.elements.size())));
  return {.type = Type::tensor(DType::i64, std::move(dims)), .contents = Contents{.elements = given.elements}};
}

}  // namespace selkie::ir
