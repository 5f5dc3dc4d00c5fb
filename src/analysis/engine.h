// The worklist of RDP. Private to analysis/.
#pragma once

#include <set>

#include "analysis/rdp.h"

namespace selkie::analysis {

// A node may be visited this often on average before regions and calls are given up; a module of nested loops would
// otherwise take time exponential in their depth.
inline constexpr int64_t visits_per_node = 64;
inline constexpr int64_t free_visits = 100'000;
// Forward and backward sweeps over one region. What is found is valid after each.
inline constexpr int max_sweeps = 8;
// Regions and calls inside each other; what is deeper is not followed, so that the stack suffices.
inline constexpr int max_depth = 200;

struct RegionState : RegionFacts {
  using RegionFacts::RegionFacts;
  const ir::Region* region = nullptr;
  RegionState* parent = nullptr;
  uint64_t facts_stamp = 0;  // changes with the facts
  // The analysis need not be repeated while these stay the same.
  std::vector<ir::Known> parameters;
  std::vector<ir::Known> captured;
  uint64_t parent_stamp = 0;
  bool tentative = false;  // entered without assuming that it is
  bool with_requirements = true;
  std::optional<std::vector<ir::Known>> yields;
  bool analysed = false;
};

// What earlier attempts at the analysis failed on.
struct Caution {
  std::set<const ir::Node*> passed_over;  // nothing is claimed from these
  std::set<const ir::Node*> unassuming;  // these may require what they need to run, but nothing for the analysis's sake
};

class Rdp::Engine {
 public:
  // `checked` as Rdp has it.
  Engine(ir::Module& module, Caution caution, const std::vector<std::string>& checked);

  void run();
  // The node of the main function at which `run` failed.
  const ir::Node* failed_node() const { return failed_node_; }
  // Nodes that required something for the analysis's sake.
  const std::set<const ir::Node*>& assuming() const { return assuming_; }
  ir::Known view(const ir::Value* value, const sym::Facts& facts);
  const ir::Known& stored(const ir::Value* value);
  RegionState& state(const ir::Region& region);
  RegionState* find_state(const ir::Region& region);

  ir::Module& module;
  sym::Context& symbols;
  std::unordered_map<const ir::Value*, ir::Known> known;
  std::unordered_map<const ir::Value*, Origin> origins;
  std::unordered_map<const ir::Node*, NodeClass> classes;
  std::unordered_map<uint64_t, SymbolInfo> symbol_infos;
  std::unordered_map<const ir::Value*, std::vector<sym::Expr>> symbols_of_values;
  std::vector<Check> entry_checks;
  std::vector<Check> later_checks;

 private:
  friend class Visit;

  // Sweeps over the nodes until nothing changes; the parameters are set.
  void analyse(RegionState& state);
  bool sweep(RegionState& state, bool forward);
  std::optional<std::vector<ir::Known>> run_region(const ir::Node& node, size_t index, RegionState& outer,
                                                   std::vector<ir::Known> parameters,
                                                   const std::function<void(sym::Facts&)>& assume, bool tentative);
  std::vector<ir::Known> call(const ir::Node& node, RegionState& outer, std::string_view function,
                              std::vector<ir::Known> arguments);
  sym::Facts facts_inside(const ir::Node& node, const ir::Region& region, const RegionState& outer,
                          const std::vector<ir::Known>& parameters);
  void complete(RegionState& state, const ir::Node& node, const std::vector<ir::Known>& parameters);
  void describe_dead(RegionState& state, RegionState& outer, std::vector<ir::Known> parameters);
  void forget(const ir::Region& region);
  void drop(const ir::Region& region);
  const std::vector<const ir::Value*>& captured(const ir::Region& region);

  void merge(const ir::Value& value, ir::Known found, RegionState& state, Origin origin, const std::string& source);
  void merge_types(const ir::Value& value, ir::Type& known, const ir::Type& found, RegionState& state,
                   const std::string& source);
  void merge_contents(ir::Known& known, const ir::Contents& found, RegionState& state, const std::string& source);
  void state_equal(sym::Expr a, sym::Expr b, RegionState& state, const std::string& source);
  bool require(Check check, RegionState& state);
  void require_declared_results(const ir::Function& function, RegionState& state);

  sym::Expr symbol_for(const std::tuple<const void*, size_t, size_t>& key, std::string_view hint, SymbolInfo info,
                       const ir::Region& region);
  void bound(sym::Expr symbol, SymbolInfo& info, const ir::Bounds& bounds, RegionState& state,
             const std::string& source);
  const ir::SymDims& name_dims(const ir::Value& value, size_t rank, RegionState& state, const ir::Node& user);
  void name_input_elements(const ir::Value& parameter, ir::Known& declared);
  sym::Expr element_symbol(const ir::Value& value, DType dtype, size_t index, const std::string& hint);
  bool visible(sym::Expr e, const ir::Region& region) const;
  // Whether which trip of a loop it is matters: an assumption that holds in some trips only would refuse programs.
  bool tells_trip(sym::Expr e) const;
  // The region in which a value is defined.
  const ir::Region& home(const ir::Value& value) const;

  void classify(const ir::Region& region);
  NodeClass classify(const ir::Node& node);
  // n where e is p − n, the two parts of one element; else null.
  sym::Expr negative_part(sym::Expr e) const;
  bool from_shapes(const ir::Value& value) const;
  // Says what a symbol that is no input's stands for, unless that would lead back to it.
  void define(sym::Expr symbol, sym::Expr meaning);
  // The expression in terms of the inputs, as far as definitions tell.
  sym::Expr in_inputs(sym::Expr e) const;
  void collect_entry_checks();
  void finish(const ir::Region& region);

  std::unordered_map<const ir::Region*, std::unique_ptr<RegionState>> states_;
  std::unordered_map<const ir::Region*, std::vector<const ir::Value*>> captured_;
  std::unordered_map<const ir::Node*, const ir::Region*> homes_;
  std::map<std::tuple<const void*, size_t, size_t>, sym::Expr> symbols_by_key_;
  std::unordered_map<uint64_t, sym::Expr> definitions_;  // of a value's own symbols, by what its node gives
  std::set<uint64_t> undetermined_;                      // symbols that the last visit of their node asked for
  std::map<std::string, std::set<const ir::Node*>, std::less<>> call_sites_;
  std::vector<std::string> call_stack_;
  std::set<std::string, std::less<>> checked_;  // functions whose declared results are true
  const ir::Region* main_body_ = nullptr;
  Caution caution_;
  std::set<const ir::Node*> assuming_;
  const ir::Node* failed_node_ = nullptr;
  uint64_t clock_ = 0;
  int depth_ = 0;
  int64_t visits_left_ = 0;
  bool changed_ = false;
};

// One application of a node's hooks.
class Visit final : public ir::ShapeServices {
 public:
  Visit(Rdp::Engine& engine, const ir::Node& node, RegionState& state);

  void forward();
  void backward();
  void value();
  void claim_nothing();

  sym::Expr unknown_dim(size_t result, size_t axis, const ir::Bounds& bounds) override;
  sym::Expr trips(const ir::Bounds& bounds) override;
  void define_trips(sym::Expr trips) override;
  sym::Expr trip_index() override;
  sym::Expr varying_dim(size_t parameter, size_t axis) override;
  std::optional<ir::SymElements> name_elements(size_t operand) override;
  std::optional<std::vector<ir::Known>> run_region(size_t region, std::vector<ir::Known> parameters, bool tentative,
                                                   const std::function<void(sym::Facts&)>& assume) override;
  const sym::Facts& region_facts(size_t region) const override;
  bool adopt_assumptions(size_t region) override;
  std::vector<ir::Known> call(std::string_view function, std::vector<ir::Known> arguments) override;
  std::vector<ir::Known> declared_results(const ir::Function& function);
  bool is_given(sym::Expr e) const override;
  bool visible(sym::Expr e) const override;
  ir::Bounds visible_bounds(sym::Expr e, size_t region) const override;
  void require_equal(sym::Expr a, sym::Expr b) override;
  bool require_less_equal(sym::Expr a, sym::Expr b, std::string_view why) override;
  const ir::SymDims& require_rank(size_t operand, size_t rank) override;

 private:
  void load_operands();
  void load_results();
  void state_results(std::vector<ir::Type> types, std::vector<std::optional<ir::Contents>> contents);
  const std::string& source() const;
  sym::Expr name_element(const ir::Value& value, DType dtype, size_t index);
  bool fold();

  Rdp::Engine& engine_;
  const ir::Node& node_;
  RegionState& state_;
  std::vector<ir::Known> operands_;
  std::vector<ir::Known> results_;
  mutable std::string source_;
};

}  // namespace selkie::analysis
