#include "compiler/layouts.h"

#include <algorithm>

#include "ir/control.h"

namespace selkie::compiler {
namespace {

using codegen::channels_last;
using codegen::Layout;
using codegen::NodeForm;
using codegen::permuted;
using codegen::Placement;
using codegen::reshaped;
using codegen::simplified;
using codegen::SymDims;
using ir::Node;
using ir::Value;

class LayoutChooser {
 public:
  LayoutChooser(const std::set<const Node*>& computable, const std::function<bool(const Node&)>& is_compiled,
                const analysis::Rdp& rdp, codegen::Stitcher& stitcher)
      : computable_(computable), is_compiled_(is_compiled), rdp_(rdp), stitcher_(stitcher) {}

  Placement run(const ir::Region& region) {
    give_plain(region);
    collect_wants(region);
    place_values(region);
    return std::move(placement_);
  }

 private:
  void give_plain(const ir::Region& region) {
    for (const Value* value : region.yields) want(value, {});
    outputs_.insert(region.yields.begin(), region.yields.end());
  }

  void collect_wants(const ir::Region& region) {
    for (size_t i = region.nodes.size(); i-- > 0;) {
      const Node& node = *region.nodes[i];
      pass_wants(node);
      if (is_compiled_(node)) collect_inside(node);
    }
  }

  // Arms of a branch give what its users want, which is also wanted from outside.
  void collect_inside(const Node& node) {
    bool is_branch = node.op->control(node).kind == ir::ControlForm::Kind::branch;
    for (const auto& inner : node.regions) {
      if (!is_branch) give_plain(*inner);
      for (size_t i = 0; is_branch && i < inner->yields.size(); ++i)
        if (auto wanted = wants_.find(node.results[i].get()); wanted != wants_.end())
          want(inner->yields[i], Layout(wanted->second));
      collect_wants(*inner);
    }
  }

  void place_values(const ir::Region& region) {
    for (const auto& node : region.nodes) {
      if (computable_.contains(node.get()))
        for (const auto& result : node->results) place(*node, *result);
      if (!is_compiled_(*node)) continue;
      for (const auto& inner : node->regions) place_values(*inner);
      if (node->op->control(*node).kind == ir::ControlForm::Kind::branch) place_joined(*node);
    }
  }

  // As its users want it, else as both arms have it.
  void place_joined(const Node& node) {
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Value& result = *node.results[i];
      if (!may_move(result) || outputs_.contains(&result)) continue;
      bool can_be_joined = std::ranges::all_of(node.regions, [&](const auto& arm) {
        return arm->yields[i]->constant != nullptr || same_rank(*arm->yields[i], result);
      });
      if (!can_be_joined) continue;
      auto given = [&](size_t arm) { return placement_.layout(*node.regions[arm]->yields[i]); };
      if (auto wanted = wants_.find(&result); wanted != wants_.end())
        set(result, wanted->second);
      else if (given(0) == given(1))
        set(result, given(0));
    }
  }

  const ir::Type& type(const Value& value) { return rdp_.known(value).type; }
  const SymDims& dims(const Value& value) { return *type(value).dims; }
  // Floats are stored in other layouts, and images of what convolutions of integers read and write: what is read
  // element by element on the host stays plain.
  bool may_move(const Value& value) {
    if (value.constant != nullptr || !type(value).is_tensor() || !type(value).dims) return false;
    constexpr DTypeSet of_images{DType::u8, DType::i8, DType::i32};
    bool is_image = of_images.contains(type(value).dtype) && dims(value).size() > 2 && !rdp_.known(value).contents;
    return is_image || is_float(type(value).dtype);
  }
  bool same_rank(const Value& a, const Value& b) { return may_move(a) && dims(a).size() == dims(b).size(); }

  void want(const Value* value, const Layout& layout) {
    if (value == nullptr || !may_move(*value)) return;
    auto [at, fresh] = wants_.try_emplace(value, layout);
    if (!fresh && at->second.empty()) at->second = layout;
  }

  // From the layouts that the results of a node should have to those of its operands.
  void pass_wants(const Node& node) {
    if (!computable_.contains(&node)) {
      for (const Value* operand : node.operands) want(operand, {});
      return;
    }
    const NodeForm& form = stitcher_.form(node);
    const Value& result = *node.results[0];
    if (form.convolution) return want(node.operands[0], channels_last(dims(*node.operands[0])));
    if (form.product) {
      if (form.product->a.rows.size() > 1) want(node.operands[0], {});
      return;
    }
    if (form.attention) return;
    if (form.recurrent) {
      for (const Value* operand : node.operands) want(operand, {});
      return;
    }
    auto wanted = wants_.find(&result);
    if (wanted == wants_.end() || !may_move(result)) return;
    if (form.permutation) {
      std::vector<int64_t> back(form.permutation->size());
      for (size_t i = 0; i < back.size(); ++i)
        back[static_cast<size_t>((*form.permutation)[i])] = static_cast<int64_t>(i);
      return want(node.operands[0], permuted(wanted->second, back, dims(result)));
    }
    if (form.reshapes) {
      if (!may_move(*node.operands[0])) return;
      auto before = reshaped(wanted->second, dims(result), dims(*node.operands[0]), stitcher_.facts_of(node));
      if (before) want(node.operands[0], *before);
      return;
    }
    for (const Value* operand : node.operands)
      if (operand != nullptr && same_rank(*operand, result)) want(operand, simplified(wanted->second, dims(*operand)));
  }

  // Of the same memory seen as the result of a transpose or a reshape.
  std::optional<Layout> view_layout(const Node& node, const NodeForm& form) {
    const Value& first = *node.operands[0];
    if (!may_move(first) && (form.permutation || first.constant == nullptr)) return std::nullopt;
    const Layout& before = placement_.layout(first);
    if (form.permutation) return permuted(before, *form.permutation, dims(first));
    return reshaped(before, dims(first), dims(*node.results[0]), stitcher_.facts_of(node));
  }

  void place(const Node& node, const Value& result) {
    const NodeForm& form = stitcher_.form(node);
    if (!may_move(result)) {
      if (form.reshapes && placement_.layout(*node.operands[0]).empty()) placement_.views.insert(&node);
      return;
    }
    std::optional<Layout> layout;
    if (form.permutation || form.reshapes) layout = view_layout(node, form);
    if (layout) {
      placement_.views.insert(&node);
      return set(result, *layout);
    }
    if (form.convolution) return set(result, channels_last(dims(result)));
    if (outputs_.contains(&result)) return;
    auto wanted = wants_.find(&result);
    if (form.recurrent) return;
    if (form.attention) {
      if (wanted != wants_.end() &&
          codegen::strides(wanted->second, dims(result), stitcher_.symbols())[3].constant() == 1)
        set(result, wanted->second);
      return;
    }
    if (form.product) {
      if (wanted != wants_.end() && product_writes(*form.product, wanted->second, dims(result), stitcher_.symbols()))
        set(result, wanted->second);
      return;
    }
    if (wanted != wants_.end()) return set(result, wanted->second);
    for (const Value* operand : node.operands)
      if (operand != nullptr && same_rank(*operand, result) && !placement_.layout(*operand).empty())
        return set(result, simplified(placement_.layout(*operand), dims(result)));
  }

  void set(const Value& value, const Layout& layout) {
    if (!layout.empty()) placement_.layouts[&value] = layout;
  }

  const std::set<const Node*>& computable_;
  const std::function<bool(const Node&)>& is_compiled_;
  const analysis::Rdp& rdp_;
  codegen::Stitcher& stitcher_;
  std::map<const Value*, Layout> wants_;
  std::set<const Value*> outputs_;
  Placement placement_;
};

}  // namespace

Placement choose_layouts(const ir::Region& region, const std::set<const Node*>& computable,
                         const std::function<bool(const Node&)>& is_compiled, const analysis::Rdp& rdp,
                         codegen::Stitcher& stitcher) {
  return LayoutChooser(computable, is_compiled, rdp, stitcher).run(region);
}

bool is_one_line(const SymDims& strides, const SymDims& dims, std::span<const size_t> axes) {
  std::optional<size_t> before;
  for (size_t axis : axes) {
    if (dims[axis].constant() == 1) continue;
    if (before && strides[*before] != strides[axis] * dims[axis]) return false;
    before = axis;
  }
  return true;
}

bool product_writes(const ir::ProductForm& form, const Layout& layout, const SymDims& dims, sym::Context& symbols) {
  SymDims strides = codegen::strides(layout, dims, symbols);
  auto innermost = [&](size_t axis) { return dims[axis].constant() == 1 || strides[axis].constant() == 1; };
  return is_one_line(strides, dims, form.c.rows) && std::ranges::all_of(form.c.columns, innermost);
}

}  // namespace selkie::compiler
