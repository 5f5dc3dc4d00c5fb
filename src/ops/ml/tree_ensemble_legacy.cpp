// TreeEnsembleClassifier and TreeEnsembleRegressor of ai.onnx.ml: trees whose nodes are named by tree and number.
#include <map>
#include <set>

#include "ops/support/blank.h"
#include "ops/support/forest.h"
#include "ops/support/ml.h"
#include "ops/support/zeros.h"

namespace selkie::ops {
namespace {

using NodeName = std::pair<int64_t, int64_t>;  // tree, node

// A list of floats, or of doubles in the attribute of the same name with "_as_tensor".
std::vector<double> reals_of(const EvalContext& e, const std::string& name) {
  if (e.has_attr(name + "_as_tensor") && e.attr<Tensor>(name + "_as_tensor").count() > 0)
    return widen<double>(e.attr<Tensor>(name + "_as_tensor"));
  std::vector<float> list = floats_of(e, name);
  return {list.begin(), list.end()};
}

void check_size(std::string_view name, size_t size, size_t wanted) {
  if (size != wanted) fail("attribute '{}' has {} elements, but must have {}", name, size, wanted);
}

// The votes at each leaf, from attributes that start with "class_" or "target_".
std::map<NodeName, std::vector<TreeVote>> votes_of(const EvalContext& e, const std::string& prefix) {
  std::vector<int64_t> trees = ints_of(e, prefix + "treeids");
  std::vector<int64_t> nodes = ints_of(e, prefix + "nodeids");
  std::vector<int64_t> targets = ints_of(e, prefix + "ids");
  std::vector<double> weights = reals_of(e, prefix + "weights");
  check_size(prefix + "nodeids", nodes.size(), trees.size());
  check_size(prefix + "ids", targets.size(), trees.size());
  check_size(prefix + "weights", weights.size(), trees.size());
  std::map<NodeName, std::vector<TreeVote>> votes;
  for (size_t i = 0; i < trees.size(); ++i) votes[{trees[i], nodes[i]}].push_back({targets[i], weights[i]});
  return votes;
}

// The nodes as the attributes list them, leaves among them.
struct Listed {
  std::vector<int64_t> trees, ids, features, on_true, on_false, missing;
  std::vector<std::string> modes;
  std::vector<double> values;
};

Listed listed_nodes(const EvalContext& e) {
  Listed n{ints_of(e, "nodes_treeids"),
           ints_of(e, "nodes_nodeids"),
           ints_of(e, "nodes_featureids"),
           ints_of(e, "nodes_truenodeids"),
           ints_of(e, "nodes_falsenodeids"),
           ints_of(e, "nodes_missing_value_tracks_true"),
           {},
           reals_of(e, "nodes_values")};
  if (e.has_attr("nodes_modes")) n.modes = e.attr<std::vector<std::string>>("nodes_modes");
  size_t count = n.trees.size();
  check_size("nodes_nodeids", n.ids.size(), count);
  check_size("nodes_featureids", n.features.size(), count);
  check_size("nodes_truenodeids", n.on_true.size(), count);
  check_size("nodes_falsenodeids", n.on_false.size(), count);
  check_size("nodes_modes", n.modes.size(), count);
  check_size("nodes_values", n.values.size(), count);
  if (n.missing.empty()) n.missing.resize(count);
  check_size("nodes_missing_value_tracks_true", n.missing.size(), count);
  return n;
}

Forest forest_of(const EvalContext& e, const std::string& prefix) {
  Listed n = listed_nodes(e);
  std::map<NodeName, std::vector<TreeVote>> votes = votes_of(e, prefix);
  std::map<NodeName, int64_t> places;  // node, or ~leaf
  std::map<int64_t, int64_t> roots;    // of each tree, its first node
  int64_t nodes = 0;
  Forest forest;
  for (size_t i = 0; i < n.trees.size(); ++i) {
    NodeName id{n.trees[i], n.ids[i]};
    bool leaf = n.modes[i] == "LEAF";
    int64_t place = leaf ? ~static_cast<int64_t>(forest.leaves.size()) : nodes++;
    if (leaf) forest.leaves.push_back(votes[id]);
    if (!places.emplace(id, place).second) fail("node {} of tree {} is given twice", id.second, id.first);
    roots.emplace(id.first, place);
  }
  auto child = [&](size_t i, int64_t id) {
    auto found = places.find({n.trees[i], id});
    if (found == places.end()) fail("tree {} has no node {}", n.trees[i], id);
    return found->second;
  };
  for (size_t i = 0; i < n.trees.size(); ++i)
    if (n.modes[i] != "LEAF")
      forest.nodes.push_back({tree_test(n.modes[i]),
                              n.features[i],
                              n.values[i],
                              {},
                              n.missing[i] != 0,
                              child(i, n.on_true[i]),
                              child(i, n.on_false[i])});
  for (const auto& [tree, root] : roots) forest.roots.push_back(root);
  return forest;
}

// Adds the base values, which are one per target, one for all, or none.
void add_base(std::vector<double>& scores, const std::vector<double>& base) {
  if (base.size() > 1) check_size("base_values", base.size(), scores.size());
  for (size_t i = 0; i < scores.size() && !base.empty(); ++i) scores[i] += base[base.size() == 1 ? 0 : i];
}

Aggregate aggregate_of(const std::string& name) {
  constexpr std::string_view names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  auto at = std::find(std::begin(names), std::end(names), name);
  if (at == std::end(names))
    fail("attribute 'aggregate_function' is \"{}\", but must be AVERAGE, SUM, MIN or MAX", name);
  return static_cast<Aggregate>(at - std::begin(names));
}

void regress(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  Aggregate aggregate = aggregate_of(e.attr_string("aggregate_function"));
  int64_t targets = e.attr_int("n_targets");
  if (targets < 1) fail("attribute 'n_targets' is {}, but must be positive", targets);
  Forest forest = forest_of(e, "target_");
  forest.check(rows.width, targets);
  std::vector<double> base = reals_of(e, "base_values");
  std::vector<double> out;
  out.reserve(affordable({std::max<int64_t>(rows.count, 1), targets}, sizeof(double)));
  for (int64_t row = 0; row < rows.count; ++row) {
    std::vector<double> scores = forest.votes(rows[row], targets, aggregate);
    add_base(scores, base);
    apply_transform(transform, scores);
    out.insert(out.end(), scores.begin(), scores.end());
  }
  e.set(0, narrow<double>(out, DType::f32, {rows.count, targets}));
}

void classify(EvalContext& e) {
  Rows rows = rows_of(e.tensor(0));
  Labels labels = labels_of(e, "classlabels_int64s", "classlabels_strings");
  PostTransform transform = post_transform(e.attr_string("post_transform"));
  if (labels.size() == 0) fail("one of 'classlabels_int64s' and 'classlabels_strings' is needed");
  Forest forest = forest_of(e, "class_");
  forest.check(rows.width, static_cast<int64_t>(labels.size()));
  std::vector<double> base = reals_of(e, "base_values");
  std::set<int64_t> voted;
  for (const auto& leaf : forest.leaves)
    for (const TreeVote& vote : leaf) voted.insert(vote.target);
  // With votes for one class only, the other of two classes gets what is left.
  bool binary = voted.size() == 1 && labels.size() <= 2;
  std::vector<size_t> classes;
  std::vector<std::vector<double>> scores;
  for (int64_t row = 0; row < rows.count; ++row) {
    std::vector<double> row_scores = forest.votes(rows[row], static_cast<int64_t>(labels.size()), Aggregate::sum);
    add_base(row_scores, base);
    if (binary) {
      double score = row_scores[static_cast<size_t>(*voted.begin())];
      bool share = transform == PostTransform::none || transform == PostTransform::probit;
      row_scores = {share ? 1 - score : -score, score};
    }
    apply_transform(transform, row_scores);
    classes.push_back(largest(row_scores));
    scores.push_back(std::move(row_scores));
  }
  set_classes(e, labels, classes, scores, binary ? 2 : labels.size());
}

template <class T>
std::vector<T> list_of(const ir::ShapeContext& c, std::string_view name) {
  const ir::Attribute* given = c.find_attr(name);
  return given != nullptr ? std::get<std::vector<T>>(*given) : std::vector<T>{};
}

// Whether some vote stands at a leaf, where it counts.
bool has_votes(const ir::ShapeContext& c) {
  auto named = [&](std::string_view trees, std::string_view nodes, auto&& take) {
    std::vector<int64_t> tree = list_of<int64_t>(c, trees);
    std::vector<int64_t> node = list_of<int64_t>(c, nodes);
    for (size_t i = 0; i < std::min(tree.size(), node.size()); ++i) take(i, NodeName{tree[i], node[i]});
  };
  std::vector<std::string> modes = list_of<std::string>(c, "nodes_modes");
  std::set<NodeName> leaves;
  named("nodes_treeids", "nodes_nodeids", [&](size_t i, NodeName id) {
    if (i < modes.size() && modes[i] == "LEAF") leaves.insert(id);
  });
  bool found = false;
  named("class_treeids", "class_nodeids", [&](size_t, NodeName id) { found = found || leaves.contains(id); });
  return found;
}

// A single class that has votes gets a counterpart.
std::vector<Type> forward_classifier(const ForwardContext& c) {
  size_t labels = label_count(c, "classlabels_int64s", "classlabels_strings");
  if (labels == 1 && has_votes(c)) labels = 2;
  return classes_types(c, "classlabels_strings", c.constant(static_cast<int64_t>(labels)));
}

std::vector<Type> forward_regressor(const ForwardContext& c) {
  return {scores_type(c, 0, DType::f32, c.constant(c.attr_int("n_targets")))};
}

std::vector<ir::AttrDef> shared_attrs(std::vector<ir::AttrDef> more) {
  std::vector<ir::AttrDef> attrs{optional_attr("base_values", AttrKind::reals),
                                 optional_attr("base_values_as_tensor", AttrKind::tensor),
                                 optional_attr("nodes_falsenodeids", AttrKind::integers),
                                 optional_attr("nodes_featureids", AttrKind::integers),
                                 optional_attr("nodes_hitrates", AttrKind::reals),
                                 optional_attr("nodes_hitrates_as_tensor", AttrKind::tensor),
                                 optional_attr("nodes_missing_value_tracks_true", AttrKind::integers),
                                 optional_attr("nodes_modes", AttrKind::texts),
                                 optional_attr("nodes_nodeids", AttrKind::integers),
                                 optional_attr("nodes_treeids", AttrKind::integers),
                                 optional_attr("nodes_truenodeids", AttrKind::integers),
                                 optional_attr("nodes_values", AttrKind::reals),
                                 optional_attr("nodes_values_as_tensor", AttrKind::tensor),
                                 string_attr("post_transform", "NONE")};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

OpDef classifier() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "tree_ensemble_classifier";
  op.onnx = {ml_domain, "TreeEnsembleClassifier", {1, 3, 5}};
  op.doc = "the class that most trees' weights are for, and the scores";
  op.operands = {{"x", {"T1", ml_numbers}}};
  op.results = {{"y", {"T2", DTypeSet{DType::str, DType::i64}}}, {"z", {"f32", dtypes::f32}}};
  op.attrs = shared_attrs(
      {optional_attr("class_ids", AttrKind::integers), optional_attr("class_nodeids", AttrKind::integers),
       optional_attr("class_treeids", AttrKind::integers), optional_attr("class_weights", AttrKind::reals),
       optional_attr("class_weights_as_tensor", AttrKind::tensor),
       optional_attr("classlabels_int64s", AttrKind::integers), optional_attr("classlabels_strings", AttrKind::texts)});
  op.forward = forward_classifier;
  op.backward = require_rows;
  op.eval = classify;
  op.samples = {
      {"$(f32[2, 1]{0, 1}) {nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], "
       "nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], "
       "nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_treeids = "
       "[0, 0], class_nodeids = [1, 2], "
       "class_ids = [0, 1], class_weights = [0.75, 2.0], classlabels_strings = [\"a\", \"b\"]}",
       "str[2]{\"a\", \"b\"}, f32[2, 2]{0.75, 0, 0, 2}"},
      {"$(i64[1, 1]{1}) {nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = [\"LEAF\"], "
       "nodes_values = [0.0], nodes_truenodeids = [0], "
       "nodes_falsenodeids = [0], class_treeids = [0], class_nodeids = [0], class_ids = [0], class_weights = [0.75], "
       "classlabels_int64s = [5, 6], base_values = [0.125]}",
       "i64[1]{6}, f32[1, 2]{0.125, 0.875}"},
      {"$(f32[1]) {classlabels_int64s = [5]}", "i64[1], f32[1, 1]"},
      {"$(f32[2, 1]) {nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = [\"LEAF\"], "
       "nodes_values = [0.0], nodes_truenodeids = [0], "
       "nodes_falsenodeids = [0], class_treeids = [0], class_nodeids = [0], class_ids = [0], class_weights = [0.75], "
       "classlabels_int64s = [5]}",
       "i64[2], f32[2, 2]"},
      {"$(f32[1, 1]) {classlabels_int64s = [5, 6], nodes_treeids = [0]}", "error: 'nodes_nodeids' has 0 elements"},
      {"$(f32[1, 1])", "error: is needed"}};
  return op;
}

OpDef regressor() {
  OpDef op = blank_record(Mapping::many_to_many);
  op.name = "tree_ensemble_regressor";
  op.onnx = {ml_domain, "TreeEnsembleRegressor", {1, 3, 5}};
  op.doc = "what an ensemble of decision trees gives for each row and target";
  op.operands = {{"x", {"T", ml_numbers}}};
  op.results = {{"y", {"f32", dtypes::f32}}};
  op.attrs = shared_attrs(
      {string_attr("aggregate_function", "SUM"), int_attr("n_targets", 1),
       optional_attr("target_ids", AttrKind::integers), optional_attr("target_nodeids", AttrKind::integers),
       optional_attr("target_treeids", AttrKind::integers), optional_attr("target_weights", AttrKind::reals),
       optional_attr("target_weights_as_tensor", AttrKind::tensor)});
  op.forward = forward_regressor;
  op.backward = require_rows;
  op.eval = regress;
  op.samples = {{"$(f32[1, 1]) {nodes_treeids = [0, 1], nodes_nodeids = [0, 0], nodes_featureids = [0, 0], nodes_modes "
                 "= [\"LEAF\", \"LEAF\"], nodes_values = [0.0, 0.0], "
                 "nodes_truenodeids = [0, 0], nodes_falsenodeids = [0, 0], target_treeids = [0, 1], target_nodeids = "
                 "[0, 0], target_ids = [0, 0], target_weights = [1.0, 4.0], "
                 "aggregate_function = \"AVERAGE\", base_values = [1.0]}",
                 "f32[1, 1]{3.5}"},
                {"$(f32[0, 1])", "f32[0, 1]"},
                {"$(f32[1, 1]) {nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = "
                 "[\"BRANCH_LT\"], nodes_values = [0.0], nodes_truenodeids = [0], "
                 "nodes_falsenodeids = [0]}",
                 "error: a tree has a cycle"},
                {"$(f32[1, 1]) {aggregate_function = \"MEDIAN\"}", "error: must be AVERAGE"}};
  return op;
}

}  // namespace

std::vector<OpDef> ml_tree_ensemble_legacy_family() { return {classifier(), regressor()}; }

}  // namespace selkie::ops
