// Why a dim is what it is: the chain of nodes that it came through, from the node that is asked about to its source.
#include <algorithm>

#include "analysis/report.h"
#include "ir/signature.h"

namespace selkie::analysis {
namespace {

constexpr int most_steps = 12;

class Chain {
 public:
  explicit Chain(const Rdp& rdp) : rdp_(rdp) {}

  std::string dim(const ir::Value& value, size_t axis) {
    follow({&value, axis, false}, (*rdp_.known(value).type.dims)[axis]);
    return std::move(text_);
  }

 private:
  // A dim or an element of a value.
  struct Place {
    const ir::Value* value;
    size_t index;
    bool element;
  };

  void line(const std::string& text) { text_ += "      " + text + "\n"; }

  static std::string name_of(const ir::Node& node) {
    return fmt::format("{} ({})",
                       node.source.empty() && !node.results.empty() ? "%" + node.results[0]->name : node.source,
                       node.op->name);
  }
  static std::string describe(const Place& place) {
    return fmt::format("{} {} of '{}'", place.element ? "element" : "dim", place.index, place.value->name);
  }

  void follow(Place at, sym::Expr wanted) {
    int kept = 0;
    for (int steps = 0; steps < most_steps;) {
      const ir::Value& value = *at.value;
      if (value.node == nullptr) {
        note_kept(kept);
        parameter(at);
        break;
      }
      Origin origin = rdp_.origin(value);
      if (origin.rule == Origin::Rule::backward && origin.node != value.node) {
        note_kept(kept);
        line(fmt::format("{}: found backward from {}", describe(at),
                         origin.node ? name_of(*origin.node) : "the declared result"));
        break;
      }
      std::optional<Place> from = same_in_arms(at, wanted);
      if (!from) from = same_in_operands(at, wanted);
      if (!from) {
        note_kept(kept);
        computed(at, wanted);
        break;
      }
      bool plain = !at.element && !from->element && from->index == at.index;
      if (plain) {
        ++kept;
      } else {
        note_kept(std::exchange(kept, 0));
        line(fmt::format("{}: {} takes it from {}", describe(at), name_of(*value.node), describe(*from)));
        ++steps;
      }
      at = *from;
    }
    facts(wanted);
  }

  void note_kept(int kept) {
    if (kept > 0) line(fmt::format("kept by {} node{}", kept, kept == 1 ? "" : "s"));
  }

  void parameter(const Place& at) {
    const ir::Region* region = at.value->region;
    if (at.value->constant != nullptr)
      line(fmt::format("{}: a constant", describe(at)));
    else if (region != nullptr && region->parent != nullptr)
      line(fmt::format("{}: a parameter of a region of {}", describe(at), name_of(*region->parent)));
    else
      line(fmt::format("{}: an input", describe(at)));
  }

  // A number occurs in many places: it counts only where it stands in the same one.
  std::optional<Place> same_in_operands(const Place& at, sym::Expr wanted) {
    for (bool element : {false, true}) {
      for (const ir::Value* operand : at.value->node->operands) {
        if (operand == nullptr) continue;
        const ir::Known& known = rdp_.known(*operand);
        const ir::SymElements& list = element ? (known.contents ? known.contents->elements : none_)
                                              : (known.type.dims ? *known.type.dims : none_);
        for (size_t i = 0; i < list.size(); ++i)
          if (list[i] == wanted && (!wanted.is_constant() || (i == at.index && element == at.element)))
            return Place{operand, i, element};
      }
    }
    return std::nullopt;
  }

  // The result of a branch, as an arm that may be taken yields it.
  std::optional<Place> same_in_arms(const Place& at, sym::Expr wanted) {
    const ir::Node& node = *at.value->node;
    size_t index = 0;
    while (node.results[index].get() != at.value) ++index;
    for (const auto& region : node.regions) {
      if (!region->parameters.empty() || region->yields.size() != node.results.size()) continue;
      if (rdp_.region(*region).entry != Entry::possible) continue;
      const ir::Known& known = rdp_.known(*region->yields[index]);
      const ir::SymElements& list = at.element ? (known.contents ? known.contents->elements : none_)
                                               : (known.type.dims ? *known.type.dims : none_);
      if (at.index < list.size() && list[at.index] == wanted) return Place{region->yields[index], at.index, at.element};
    }
    return std::nullopt;
  }

  void computed(const Place& at, sym::Expr wanted) {
    const ir::Node& node = *at.value->node;
    std::string operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.operands[i] == nullptr) continue;
      const ir::Operand* record = ir::operand_record(node.op->operands, i);
      operands += fmt::format("{}{}: {}", operands.empty() ? "" : ", ", record->name,
                              to_string(rdp_.known(*node.operands[i]).type));
    }
    const SymbolInfo* info = wanted.is_symbol() ? rdp_.symbol(wanted) : nullptr;
    bool own = info != nullptr && info->node == &node;
    line(fmt::format("{}: {} {} from {}", describe(at), own ? "only running tells it:" : "computed by", name_of(node),
                     operands.empty() ? "nothing" : operands));
    if (own && info->bounds.most) line(fmt::format("at most {}", sym::to_string(info->bounds.most)));
  }

  void facts(sym::Expr wanted) {
    std::vector<std::string> sources = rdp_.region(rdp_.module().main().body).facts.sources_about(wanted);
    if (sources.empty()) return;
    std::string list;
    for (const std::string& source : sources) list += (list.empty() ? "" : ", ") + source;
    line("facts about it are from " + list);
  }

  const Rdp& rdp_;
  const ir::SymElements none_;
  std::string text_;
};

}  // namespace

std::string derivation(const Rdp& rdp, const NodeReport& node) {
  std::string out;
  for (const ValueReport& v : node.results) {
    out += fmt::format("  {}: {}{}\n", v.value->name, v.type, v.contents.empty() ? "" : " = " + v.contents);
    for (size_t i = 0; i < v.dims.size(); ++i) {
      out += fmt::format("    dim {} = {} ({})\n", i, v.dims[i].text, name(v.dims[i].kind));
      out += Chain(rdp).dim(*v.value, i);
    }
  }
  return out;
}

std::string node_text(const Report& report, const Rdp& rdp, std::string_view name) {
  std::string out;
  for (const NodeReport& n : report.nodes) {
    bool is_named =
        n.name == name || std::ranges::any_of(n.results, [&](const ValueReport& v) { return v.value->name == name; });
    if (!is_named) continue;
    out += fmt::format("{} ({}){}: {}\n", n.name, n.node->op->name, n.region.empty() ? "" : " in " + n.region,
                       ir::name(n.cls));
    for (std::string_view cause : n.causes) out += fmt::format("  its shape depends on the values of '{}'\n", cause);
    out += derivation(rdp, n);
  }
  return out;
}

}  // namespace selkie::analysis
