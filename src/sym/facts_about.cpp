// The part of facts that says something about given expressions.
#include <algorithm>
#include <unordered_set>

#include "sym/facts.h"

namespace selkie::sym {

// Follows facts from symbol to symbol, and copies those that were reached.
class Facts::Selection {
 public:
  explicit Selection(const Facts& all) : all_(all) {}

  void reach(Expr e) {
    std::vector<Expr> symbols;
    collect_symbols(e, symbols);
    for (Expr s : symbols)
      if (seen_.insert(s.id()).second) open_.push_back(s);
  }

  void follow() {
    do {
      while (!open_.empty()) {
        Expr symbol = open_.back();
        open_.pop_back();
        follow(symbol);
      }
      reach_compounds();
    } while (!open_.empty());
  }

  Facts copy() {
    Facts out(*all_.context_);
    for (uint32_t index : in_order(definitions_)) {
      Definition fact = all_.definitions_[index];
      fact.evidence = renamed(fact.evidence, out);
      out.definitions_.push_back(std::move(fact));
      out.index_definition(static_cast<uint32_t>(out.definitions_.size() - 1));
    }
    for (uint32_t index : in_order(bounds_)) {
      Bound fact = all_.bounds_[index];
      fact.lo_evidence = renamed(fact.lo_evidence, out);
      fact.hi_evidence = renamed(fact.hi_evidence, out);
      auto own = static_cast<uint32_t>(out.bounds_.size());
      out.bound_of_[fact.form.id()] = own;
      out.index_symbols(fact.form, &Occurrences::bounds, own);
      out.bounds_.push_back(std::move(fact));
    }
    for (uint32_t index : in_order(congruences_)) {
      Congruence fact = all_.congruences_[index];
      fact.evidence = renamed(fact.evidence, out);
      auto own = static_cast<uint32_t>(out.congruences_.size());
      out.congruence_of_[fact.form.id()] = own;
      out.index_symbols(fact.form, &Occurrences::congruences, own);
      out.congruences_.push_back(std::move(fact));
    }
    return out;
  }

 private:
  using Indices = std::unordered_set<uint32_t>;

  static std::vector<uint32_t> in_order(const Indices& indices) {
    std::vector<uint32_t> out(indices.begin(), indices.end());
    std::ranges::sort(out);
    return out;
  }

  void follow(Expr symbol) {
    if (auto found = all_.definition_of_.find(symbol.id()); found != all_.definition_of_.end()) keep(found->second);
    auto found = all_.occurrences_.find(symbol.id());
    if (found == all_.occurrences_.end()) return;
    for (uint32_t index : found->second.bounds)
      if (all_.bounds_[index].alive && bounds_.insert(index).second) reach(all_.bounds_[index].form);
    for (uint32_t index : found->second.congruences)
      if (all_.congruences_[index].alive && congruences_.insert(index).second) reach(all_.congruences_[index].form);
  }

  void keep(uint32_t definition) {
    const Definition& fact = all_.definitions_[definition];
    if (fact.alive && definitions_.insert(definition).second) reach(fact.value);
  }

  // What is defined and no symbol counts if all its symbols were reached.
  void reach_compounds() {
    for (uint32_t index : all_.compounds_) {
      if (!all_.definitions_[index].alive) continue;
      std::vector<Expr> symbols;
      collect_symbols(all_.definitions_[index].key, symbols);
      if (std::ranges::all_of(symbols, [&](Expr s) { return seen_.contains(s.id()); })) keep(index);
    }
  }

  Evidence renamed(const Evidence& from, Facts& out) {
    Evidence own;
    for (uint32_t index : from) {
      auto [at, fresh] = sources_.try_emplace(index);
      if (fresh) at->second = out.evidence(all_.sources_[index])[0];
      own.push_back(at->second);
    }
    std::ranges::sort(own);
    return own;
  }

  const Facts& all_;
  std::unordered_set<uint64_t> seen_;  // symbols
  std::vector<Expr> open_;
  Indices definitions_, bounds_, congruences_;
  std::unordered_map<uint32_t, uint32_t> sources_;
};

Facts Facts::about(std::span<const Expr> expressions) const {
  Selection selection(*this);
  for (Expr e : expressions) selection.reach(e);
  selection.follow();
  return selection.copy();
}

}  // namespace selkie::sym
