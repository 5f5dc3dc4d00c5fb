// NonMaxSuppression: boxes that do not overlap a better one of their class.
#include <algorithm>
#include <array>

#include "ops/support/record.h"

namespace selkie::ops {
namespace {

struct Box {
  double x0, y0, x1, y1;
};

// Corners in any order, or centre and size.
Box box_of(const float* corners, bool centre) {
  const double v[] = {corners[0], corners[1], corners[2], corners[3]};
  if (centre) return {v[0] - v[2] / 2, v[1] - v[3] / 2, v[0] + v[2] / 2, v[1] + v[3] / 2};
  return {std::min(v[1], v[3]), std::min(v[0], v[2]), std::max(v[1], v[3]), std::max(v[0], v[2])};
}

double overlap(const Box& a, const Box& b) {
  double w = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  double h = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (w <= 0 || h <= 0) return 0;
  double both = (a.x1 - a.x0) * (a.y1 - a.y0) + (b.x1 - b.x0) * (b.y1 - b.y0) - w * h;
  return both <= 0 ? 0 : w * h / both;
}

void eval(EvalContext& e) {
  const Tensor& boxes = e.tensor(0);
  const Tensor& scores = e.tensor(1);
  if (boxes.rank() != 3 || boxes.dim(2) != 4)
    fail("boxes must have shape [batch, boxes, 4], but have {}", to_string(boxes.dims()));
  if (scores.rank() != 3 || scores.dim(0) != boxes.dim(0) || scores.dim(2) != boxes.dim(1))
    fail("scores must have shape [batch, classes, boxes] of boxes {}, but have {}", to_string(boxes.dims()),
         to_string(scores.dims()));
  int64_t most = e.has(2) ? int_of(e.tensor(2)) : 0;
  double iou = e.has(3) ? double_of(e.tensor(3)) : 0;
  if (iou < 0 || iou > 1) fail("iou_threshold {} is outside 0..1", iou);
  bool centre = e.attr_int("center_point_box") != 0;
  std::optional<double> least = e.has(4) ? std::optional(double_of(e.tensor(4))) : std::nullopt;
  int64_t count = boxes.dim(1);
  std::vector<int64_t> kept, order;
  std::vector<Box> chosen;
  for (int64_t batch = 0; batch < boxes.dim(0); ++batch)
    for (int64_t cls = 0; cls < scores.dim(1); ++cls) {
      const float* score = scores.data<float>() + (batch * scores.dim(1) + cls) * count;
      order.clear();
      for (int64_t i = 0; i < count; ++i)
        if (!least || score[i] > *least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score[a] > score[b]; });
      chosen.clear();
      for (int64_t i : order) {
        if (static_cast<int64_t>(chosen.size()) >= most) break;
        Box box = box_of(boxes.data<float>() + (batch * count + i) * 4, centre);
        if (std::any_of(chosen.begin(), chosen.end(), [&](const Box& other) { return overlap(box, other) > iou; }))
          continue;
        chosen.push_back(box);
        kept.insert(kept.end(), {batch, cls, i});
      }
    }
  e.set(0, narrow<int64_t>(kept, DType::i64, {static_cast<int64_t>(kept.size() / 3), 3}));
}

std::vector<Type> forward(const ForwardContext& c) {
  // At most max_output_boxes_per_class for each batch and class, and no box twice.
  ir::Bounds bounds;
  if (c.dims(1) && c.rank(1) == 3) {
    const SymDims& scores = *c.dims(1);
    std::optional<ir::SymElements> limit = c.has(2) ? c.elements(2) : ir::SymElements{c.constant(0)};
    sym::Expr each = limit && limit->size() == 1 ? sym::min(sym::max(limit->at(0), 0), scores[2]) : scores[2];
    bounds.most = scores[0] * scores[1] * each;
  }
  return {Type::tensor(DType::i64, SymDims{c.unknown(0, 0, bounds), c.constant(3)})};
}

// boxes are [batch, boxes, 4], scores [batch, classes, boxes].
void backward(BackwardContext& c) {
  c.set_rank(0, 3);
  c.set_rank(1, 3);
  const SymDims boxes = *c.dims(0);
  const SymDims scores = *c.dims(1);
  c.equal(boxes[0], scores[0]);
  c.equal(boxes[1], scores[2]);
  c.equal(boxes[2], c.constant(4));
}

}  // namespace

OpDef non_max_suppression_op() {
  return {
      .name = "non_max_suppression",
      .onnx = {"", "NonMaxSuppression", {10, 11}},
      .doc = "boxes in order of score that overlap no better one of their class, as [batch, class, box] triples",
      .operands = {{"boxes", {"f32", dtypes::f32}},
                   {"scores", {"f32", dtypes::f32}},
                   {"max_output_boxes_per_class", i64_tensor, optional},
                   {"iou_threshold", {"f32", dtypes::f32}, optional},
                   {"score_threshold", {"f32", dtypes::f32}, optional}},
      .results = {{"selected_indices", i64_tensor}},
      .attrs = {int_attr("center_point_box", 0)},
      .dynamism = edo({"boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"}),
      .mapping = Mapping::opaque,
      .forward = forward,
      .backward = backward,
      .value = absent("shape arithmetic has no boxes"),
      .eval = eval,
      .lower = absent("how many results there are shows only while they are found"),
      .grad = absent("the result is an integer"),
      .samples = {{"$(f32[1, 2, 4]{0, 0, 1, 1, 0, 0, 1, 0.9}, f32[1, 1, 2]{0.5, 0.9}, i64[]{5}, f32[]{0.5})",
                   "i64[1, 3]{0, 0, 1}"},
                  {"$(f32[1, 2, 4], f32[1, 1, 2])", "i64[0, 3]"},
                  {"$(f32[0, 2, 4], f32[0, 1, 2], i64[]{1})", "i64[0, 3]"},
                  {"$(f32[1, 2, 4], f32[1, 1, 3])", "error: scores must have shape"},
                  {"$(f32[1, 2, 3], f32[1, 1, 2])", "error: boxes must have shape"}},
  };
}

}  // namespace selkie::ops
