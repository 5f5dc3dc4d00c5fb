// Dropout: while training, elements set to zero at random and the others scaled up; otherwise the operand itself.
#include <functional>
#include <random>

#include "ops/support/lower.h"
#include "ops/support/record.h"

namespace selkie::ops {
namespace {

constexpr DTypeSet reals = dtypes::floats | dtypes::float8;
constexpr TypeVar type{"T", reals};
constexpr TypeVar ratio_type{"T1", reals};

// Numbers in 0…1. A seed gives those of numpy's RandomState, in which ONNX's expected results are written: 53 bits from
// two draws of the Mersenne twister.
std::function<double()> uniform_source(EvalContext& e) {
  if (!e.has_attr("seed"))
    return [&random = e.services().random()] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::mt19937 random(static_cast<uint32_t>(e.attr_int("seed")));
  return [random]() mutable {
    uint64_t high = random() >> 5;
    return static_cast<double>((high << 26) + (random() >> 6)) * 0x1p-53;
  };
}

void eval(EvalContext& e) {
  const Tensor& data = e.tensor(0);
  double ratio = e.has(1) ? double_of(e.tensor(1)) : 0.5;
  bool training = e.has(2) && int_of(e.tensor(2)) != 0;
  if (!(ratio >= 0 && ratio < 1)) fail("the ratio is {}, but must be at least 0 and below 1", ratio);
  std::vector<uint8_t> mask(static_cast<size_t>(data.count()), 1);
  if (!training || ratio == 0) {
    e.set(0, data);
  } else {
    std::function<double()> uniform = uniform_source(e);
    std::vector<double> values = widen<double>(data);
    for (size_t i = 0; i < values.size(); ++i) {
      mask[i] = uniform() >= ratio;
      values[i] = mask[i] != 0 ? values[i] / (1 - ratio) : 0;
    }
    e.set(0, narrow<double>(values, data.dtype(), data.dims()));
  }
  e.set(1, narrow<uint8_t>(mask, DType::boolean, data.dims()));
}

std::vector<Type> forward(const ForwardContext& c) { return {c.type(0), Type::tensor(DType::boolean, c.dims(0))}; }

void backward(BackwardContext& c) {
  backward_same(c);
  if (c.result_dims(1)) c.set_dims(0, SymDims(*c.result_dims(1)));
}

// Outside training it is its operand.
void lower(LowerContext& c) {
  std::optional<Tensor> training = c.has(2) ? ir::tensor_of(c.known(2)) : Tensor::scalar_bool(false);
  std::optional<Tensor> ratio = c.has(1) ? ir::tensor_of(c.known(1)) : std::nullopt;
  if (!training || training->count() != 1 || int_of(*training) != 0) c.refuse("training, or not known to be none");
  if (c.has(1) && (!ratio || ratio->count() != 1 || !(double_of(*ratio) >= 0 && double_of(*ratio) < 1)))
    c.refuse("the ratio may be outside 0 to 1");
  if (c.result_count() == 1) c.set_view();
  c.define(0, [&c](const Index& at) { return c.operand(0, at); });
  if (c.result_count() > 1) c.define(1, [&c](const Index&) { return c.builder().number(DType::boolean, 1); });
}

// Until opset 7 nodes were in training mode unless `is_test` said otherwise.
void training_from_is_test(UpgradeContext& c) {
  const ir::Attribute* is_test = c.node().attrs.find("is_test");
  const auto* flag = is_test == nullptr ? nullptr : std::get_if<int64_t>(is_test);
  if (flag == nullptr || *flag == 0) c.set_operand(2, c.constant(Tensor::scalar_bool(true)));
  drop_attrs({"is_test", "consumed_inputs"})(c);
}

// Before opset 10 the mask had the dtype of the data.
void mask_of_data_type(UpgradeContext& c) {
  if (c.node().results.size() > 1) c.convert_result(1, "cast_like", {c.node().operands.at(0)});
}

}  // namespace

OpDef dropout_op() {
  return {
      .name = "dropout",
      .onnx = {"", "Dropout", {1, 6, 7, 10, 12, 13, 22}},
      .doc = "in training mode a share of the elements set to zero at random, the others divided by what is left",
      .operands = {{"data", type}, {"ratio", ratio_type, optional}, {"training_mode", bool_tensor, optional}},
      .results = {{"output", type}, {"mask", bool_tensor, optional}},
      .attrs = {optional_attr("seed", AttrKind::integer)},
      .dynamism = isdos(),
      .mapping = Mapping::one_to_one,
      .deterministic = false,
      .forward = forward,
      .backward = backward,
      .value = absent("random numbers do not occur in shape arithmetic"),
      .eval = eval,
      .lower = lower,
      .grad = later::training,
      .upgrades = {{7, training_from_is_test}, {10, mask_of_data_type}, {12, attr_to_operand("ratio", 1)}},
      .samples = {{"$(f32[2]{1, 2})", "f32[2]{1, 2}, bool[2]{true, true}"},
                  {"$(f32[2]{1, 2}, f32[]{0}, bool[]{true})", "f32[2]{1, 2}, bool[2]{true, true}"},
                  {"$(f32[3, 4], f32[]{0.5}, bool[]{true}) {seed = 7}", "f32[3, 4], bool[3, 4]"},
                  {"$(f32[0])", "f32[0]"},
                  {"$(f32[2], f32[]{1}, bool[]{true})", "error: the ratio is 1"}},
  };
}

}  // namespace selkie::ops
