// Reshape: the same elements under a shape given at run time.
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  std::vector<int64_t> dims = ints_of(e.tensor(1));
  bool keep_zero = e.attr_int("allowzero") != 0;
  int64_t known = 1;
  int64_t inferred = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !keep_zero) {
      if (static_cast<int64_t>(i) >= data.rank())
        fail("dim {} of the shape is 0, but the data has only rank {}", i, data.rank());
      dims[i] = data.dim(static_cast<int64_t>(i));
    }
    if (dims[i] == -1) {
      if (inferred >= 0) fail("the shape has more than one -1");
      inferred = static_cast<int64_t>(i);
    } else if (dims[i] < 0) {
      fail("dim {} of the shape is {}", i, dims[i]);
    } else if (__builtin_mul_overflow(known, dims[i], &known)) {
      fail("a tensor of shape {} has too many elements", to_string(dims));
    }
  }
  if (inferred >= 0) {
    if (known == 0 ? data.count() != 0 : data.count() % known != 0)
      fail("{} elements of shape {} do not fit shape {}", data.count(), to_string(data.dims()), to_string(dims));
    dims[static_cast<size_t>(inferred)] = known == 0 ? 0 : data.count() / known;
  }
  e.set(0, data.reshaped(std::move(dims)));
}

std::vector<Type> forward(const ForwardContext& c) {
  std::optional<ir::SymElements> shape = c.contents(1);
  if (!shape) {
    if (!c.dims(1) || !c.dims(1)->at(0).constant()) return {Type::tensor(c.dtype(0))};
    SymDims dims;
    for (int64_t i = 0; i < *c.dims(1)->at(0).constant(); ++i) dims.push_back(c.symbols().fresh("reshape"));
    return {Type::tensor(c.dtype(0), dims)};
  }
  SymDims dims;
  sym::Expr known = c.constant(1);
  std::optional<size_t> inferred;
  for (size_t i = 0; i < shape->size(); ++i) {
    sym::Expr dim = (*shape)[i];
    if (dim.constant() == 0 && c.attr_int("allowzero") == 0) {
      if (!c.dims(0)) return {Type::tensor(c.dtype(0))};
      if (i >= c.dims(0)->size()) fail("dim {} of the shape is 0, but the data has only rank {}", i, c.dims(0)->size());
      dim = (*c.dims(0))[i];
    }
    if (dim.constant() == -1)
      inferred = i;
    else
      known = known * dim;
    dims.push_back(dim);
  }
  if (inferred) {
    sym::Expr total = c.constant(1);
    if (c.dims(0))
      for (sym::Expr d : *c.dims(0)) total = total * d;
    bool sure = c.dims(0) && known.constant() != 0;
    dims[*inferred] = sure ? sym::floordiv(total, known) : c.symbols().fresh("reshape");
  }
  return {Type::tensor(c.dtype(0), dims)};
}

}  // namespace

OpDef reshape_op() {
  return {
      .name = "reshape",
      .onnx = {"", "Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25}},
      .doc = "the same elements under another shape; 0 keeps a dim, -1 is what is left",
      .operands = {{"data", any_tensor}, {"shape", i64_tensor}},
      .results = {{"reshaped", any_tensor}},
      .attrs = {int_attr("allowzero", 0)},
      .dynamism = isvdos({"shape"}),
      .mapping = Mapping::reorganize,
      .forward = forward,
      .backward = later::rdp,
      .value = later::rdp,
      .eval = eval,
      .lower = later::cpu,
      .grad = later::training,
      .upgrades = {{5, all_of({attr_to_operand("shape", 1), drop_attrs({"consumed_inputs"})})}},
      .samples = {{"$(f32[2, 3], i64[2]{3, 2})", "f32[3, 2]"},
                  {"$(f32[2, 3, 4], i64[2]{0, -1})", "f32[2, 12]"},
                  {"$(f32[0, 3], i64[2]{3, 0}) {allowzero = 1}", "f32[3, 0]"},
                  {"$(f32[1], i64[0])", "f32[]"},
                  {"$(f32[2, 3], i64[1]{4})", "error: do not fit"},
                  {"$(f32[2, 3], i64[2]{-1, -1})", "error: more than one -1"}},
  };
}

}  // namespace selkie::ops
