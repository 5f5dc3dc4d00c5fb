// TreeEnsemble of ai.onnx.ml: trees whose inner nodes and leaves are listed apart.
#include <cmath>

#include "ops/support/blank.h"
#include "ops/support/forest.h"
#include "ops/support/ml.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

// A tensor attribute's elements; none without it.
std::vector<double> reals_of(const EvalContext& e, std::string_view name) {
  return e.has_attr(name) ? widen<double>(e.attr<Tensor>(name)) : std::vector<double>{};
}

// Sets of members, in the order of the nodes that test them, each ended by NaN.
std::vector<double> next_members(const std::vector<double>& all, size_t& at) {
  std::vector<double> members;
  while (at < all.size() && !std::isnan(all[at])) members.push_back(all[at++]);
  if (at == all.size()) fail("attribute 'membership_values' has fewer sets than there are nodes that test members");
  ++at;
  return members;
}

Forest forest_of(const EvalContext& e) {
  std::vector<double> splits = reals_of(e, "nodes_splits");
  std::vector<double> modes = reals_of(e, "nodes_modes");
  std::vector<double> members = reals_of(e, "membership_values");
  std::vector<int64_t> missing = ints_of(e, "nodes_missing_value_tracks_true");
  const auto& features = e.attr_ints("nodes_featureids");
  const auto& on_true = e.attr_ints("nodes_truenodeids");
  const auto& on_false = e.attr_ints("nodes_falsenodeids");
  const auto& true_leaf = e.attr_ints("nodes_trueleafs");
  const auto& false_leaf = e.attr_ints("nodes_falseleafs");
  size_t count = features.size();
  for (size_t size : {splits.size(), modes.size(), on_true.size(), on_false.size(), true_leaf.size(), false_leaf.size(),
                      missing.empty() ? count : missing.size()})
    if (size != count) fail("the attributes 'nodes_*' have {} and {} elements", count, size);
  Forest forest;
  size_t member_at = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6)) fail("attribute 'nodes_modes' has {}, which does not exist", modes[i]);
    if (on_true[i] < 0 || on_false[i] < 0) fail("node {} has a negative child", i);
    auto test = static_cast<TreeTest>(modes[i]);
    forest.nodes.push_back({test, features[i], splits[i],
                            test == TreeTest::member ? next_members(members, member_at) : std::vector<double>{},
                            !missing.empty() && missing[i] != 0, true_leaf[i] != 0 ? ~on_true[i] : on_true[i],
                            false_leaf[i] != 0 ? ~on_false[i] : on_false[i]});
  }
  std::vector<double> weights = reals_of(e, "leaf_weights");
  const auto& targets = e.attr_ints("leaf_targetids");
  if (weights.size() != targets.size())
    fail("the attributes 'leaf_*' have {} and {} elements", weights.size(), targets.size());
  for (size_t i = 0; i < weights.size(); ++i) forest.leaves.push_back({{targets[i], weights[i]}});
  forest.roots = e.attr_ints("tree_roots");
  for (int64_t root : forest.roots)
    if (root < 0) fail("attribute 'tree_roots' has {}", root);
  return forest;
}

void eval(EvalContext& e) {
  const Tensor& x = e.tensor(0);
  if (x.rank() != 2) fail("shape {} is not [N, F]", to_string(x.dims()));
  Rows rows = rows_of(x);
  int64_t targets = e.attr_int("n_targets");
  int64_t aggregate = e.attr_int("aggregate_function");
  int64_t transform = e.attr_int("post_transform");
  if (targets < 1) fail("attribute 'n_targets' is {}, but must be positive", targets);
  if (aggregate < 0 || aggregate > 3) fail("attribute 'aggregate_function' is {}, which does not exist", aggregate);
  if (transform < 0 || transform > 4) fail("attribute 'post_transform' is {}, which does not exist", transform);
  Forest forest = forest_of(e);
  forest.check(rows.width, targets);
  std::vector<double> out;
  out.reserve(affordable({std::max<int64_t>(rows.count, 1), targets}, sizeof(double)));
  for (int64_t row = 0; row < rows.count; ++row) {
    std::vector<double> votes = forest.votes(rows[row], targets, static_cast<Aggregate>(aggregate));
    apply_transform(static_cast<PostTransform>(transform), votes);
    out.insert(out.end(), votes.begin(), votes.end());
  }
  e.set(0, narrow<double>(out, x.dtype(), {rows.count, targets}));
}

}  // namespace

OpDef tree_ensemble_op() {
  TypeVar type{"T", dtypes::f16_f32_f64};
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "tree_ensemble";
  op.onnx = {ml_domain, "TreeEnsemble", {5}};
  op.doc = "what an ensemble of decision trees gives for each row";
  op.operands = {{"x", type}};
  op.results = {{"y", type}};
  op.attrs = {int_attr("aggregate_function", 1),
              required_attr("leaf_targetids", AttrKind::integers),
              required_attr("leaf_weights", AttrKind::tensor),
              optional_attr("membership_values", AttrKind::tensor),
              int_attr("n_targets", 1),
              required_attr("nodes_falseleafs", AttrKind::integers),
              required_attr("nodes_falsenodeids", AttrKind::integers),
              required_attr("nodes_featureids", AttrKind::integers),
              optional_attr("nodes_hitrates", AttrKind::tensor),
              optional_attr("nodes_missing_value_tracks_true", AttrKind::integers),
              required_attr("nodes_modes", AttrKind::tensor),
              required_attr("nodes_splits", AttrKind::tensor),
              required_attr("nodes_trueleafs", AttrKind::integers),
              required_attr("nodes_truenodeids", AttrKind::integers),
              int_attr("post_transform", 0),
              required_attr("tree_roots", AttrKind::integers)};
  op.forward = [](const ForwardContext& c) -> std::vector<Type> {
    return {scores_type(c, 0, c.dtype(0), c.constant(c.attr_int("n_targets")))};
  };
  op.backward = backward_rank<0, 2>;
  op.eval = eval;
  op.samples = {
      {"$(f32[3, 1]{0, 1, nan}) {tree_roots = [0], nodes_modes = u8[1]{1}, nodes_splits = f32[1]{0.5}, "
       "nodes_featureids = [0], nodes_truenodeids = [0], "
       "nodes_falsenodeids = [1], nodes_trueleafs = [1], nodes_falseleafs = [1], leaf_weights = f32[2]{5, "
       "6}, leaf_targetids = [0, 1], n_targets = 2, "
       "nodes_missing_value_tracks_true = [1]}",
       "f32[3, 2]{5, 0, 0, 6, 5, 0}"},
      {"$(f32[0, 1]) {tree_roots = [], nodes_modes = u8[0]{}, nodes_splits = f32[0]{}, nodes_featureids = [], "
       "nodes_truenodeids = [], nodes_falsenodeids = [], "
       "nodes_trueleafs = [], nodes_falseleafs = [], leaf_weights = f32[0]{}, leaf_targetids = []}",
       "f32[0, 1]"},
      {"$(f32[1, 1]) {tree_roots = [0], nodes_modes = u8[1]{1}, nodes_splits = f32[1]{0.5}, nodes_featureids "
       "= [0], nodes_truenodeids = [0], "
       "nodes_falsenodeids = [0], nodes_trueleafs = [0], nodes_falseleafs = [0], leaf_weights = f32[0]{}, "
       "leaf_targetids = []}",
       "error: a tree has a cycle"},
      {"$(f32[1, 1]) {tree_roots = [0], nodes_modes = u8[1]{6}, nodes_splits = f32[1]{0.5}, nodes_featureids "
       "= [0], nodes_truenodeids = [0], "
       "nodes_falsenodeids = [0], nodes_trueleafs = [1], nodes_falseleafs = [1], leaf_weights = f32[1]{1}, "
       "leaf_targetids = [0]}",
       "error: fewer sets"}};
  return op;
}

}  // namespace selkie::ops
