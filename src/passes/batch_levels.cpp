// batch_levels: a loop that fills tables row by row, from rows that earlier trips wrote, runs level by level: all trips
// whose rows are there by then at once. Networks over trees and graphs, given as arrays of indices, are such loops.
#include <algorithm>
#include <set>

#include "ops/registry.h"
#include "passes/batched.h"
#include "passes/loops.h"
#include "passes/pass.h"

namespace selkie::passes {
namespace {

using ir::Known;
using ir::Node;
using ir::Region;
using ir::Value;

// What a loop carries or stacks, as a table to which each trip writes one row.
struct Table {
  enum class Form : uint8_t {
    sequence,  // of items, one more in each trip
    appended,  // a tensor with one row more in each trip
    replaced,  // a tensor of which one row is replaced in each trip
    stacked,   // an output of the loop
  };
  Form form;
  const Value* parameter = nullptr;  // none of an output
  Value* initial = nullptr;
  const Value* result = nullptr;
  const Node* writer = nullptr;
  const Value* row = nullptr;    // that is written,
  bool row_has_axis = false;     // with a first axis of one
  const Value* index = nullptr;  // of a row that is replaced
  DType dtype = DType::f32;
  ir::SymDims item = {};   // dims of a row,
  ir::SymDims first = {};  // and of the rows before the first trip together; empty if there are none
};

struct Read {
  const Node* node;
  const Value* index;
};

bool is(const Value* value, std::string_view op) { return value->node != nullptr && value->node->op->name == op; }

// What is asked of a loop before it is rewritten.
class LevelLoop {
 public:
  LevelLoop(sym::Context& symbols, const analysis::Rdp& rdp, const Region& around, const Node& loop)
      : symbols_(symbols), rdp_(rdp), around_(around), loop_(loop), body_(*loop.regions[0]) {}

  bool find() {
    if (!runs_to_its_end() || !find_tables()) return false;
    return find_reads() && are_alike() && are_indices_free() && are_rows_scattered();
  }
  const std::vector<Table>& tables() const { return tables_; }
  const std::vector<Read>& reads() const { return reads_; }
  // States that no trip changes.
  const std::vector<std::pair<const Value*, Value*>>& unchanged() const { return unchanged_; }
  const std::vector<const Value*>& unchanged_results() const { return unchanged_results_; }
  // Nodes that give an index, before anything is computed from rows.
  bool is_for_index(const Node& node) const { return index_nodes_.contains(&node); }
  bool is_written_by(const Node& node) const {
    return std::ranges::any_of(tables_, [&](const Table& t) { return t.writer == &node; });
  }

 private:
  const Known& known(const Value& value) const { return rdp_.known(value); }
  const ir::SymDims* dims(const Value& value) const {
    const ir::Type& type = known(value).type;
    return type.is_tensor() && type.dims ? &*type.dims : nullptr;
  }

  // As many trips as the first operand says, and nothing inside that is not the same each time.
  bool runs_to_its_end() const {
    if (loop_.op->name != "loop" || loop_.operands.empty() || loop_.operands[0] == nullptr) return false;
    const ir::SymDims* count = dims(*loop_.operands[0]);
    if (count == nullptr || !count->empty()) return false;
    return makes_all_trips(rdp_, loop_, *loop_form(loop_)) && rdp_.region(body_).entry == analysis::Entry::possible &&
           std::ranges::all_of(body_.nodes, [](const auto& node) { return node->regions.empty(); });
  }

  bool find_tables() {
    size_t states = loop_.operands.size() - std::min<size_t>(loop_.operands.size(), 2);
    for (size_t i = 0; i < loop_.results.size(); ++i) {
      const Value* yield = body_.yields[1 + i];
      const Value* parameter = i < states ? body_.parameters[2 + i].get() : nullptr;
      Value* initial = i < states ? loop_.operands[2 + i] : nullptr;
      if (parameter != nullptr && yield == parameter) {
        unchanged_.emplace_back(parameter, initial);
        unchanged_results_.push_back(loop_.results[i].get());
        continue;
      }
      std::optional<Table> table = parameter == nullptr ? stacked(yield) : state(parameter, yield);
      if (!table || (table->form != Table::Form::stacked && uses(yield) != 1)) return false;
      table->initial = initial;
      table->result = loop_.results[i].get();
      if (!has_plain_rows(*table)) return false;
      tables_.push_back(std::move(*table));
    }
    return true;
  }

  size_t uses(const Value* value) const {
    size_t count = static_cast<size_t>(std::ranges::count(body_.yields, value));
    for (const auto& node : body_.nodes) count += static_cast<size_t>(std::ranges::count(node->operands, value));
    return count;
  }

  static std::optional<Table> stacked(const Value* yield) { return Table{.form = Table::Form::stacked, .row = yield}; }

  std::optional<Table> state(const Value* parameter, const Value* yield) const {
    const Node* writer = yield->node;
    if (writer == nullptr || writer->operands.empty() || writer->operands[0] != parameter) return std::nullopt;
    Table table{.form = Table::Form::sequence, .parameter = parameter, .writer = writer};
    if (writer->op->name == "sequence_insert" && (writer->operands.size() < 3 || writer->operands[2] == nullptr)) {
      if (writer->static_operand(2) != nullptr) return std::nullopt;
      table.row = writer->operands[1];
      return table;
    }
    if (writer->op->name == "concat" && writer->operands.size() == 2) {
      const ir::SymDims* row = dims(*writer->operands[1]);
      if (row == nullptr || row->empty() || row->front().constant() != 1) return std::nullopt;
      if (int64_t axis = attribute(*writer, "axis"); axis != 0 && axis != -static_cast<int64_t>(row->size()))
        return std::nullopt;
      table.form = Table::Form::appended;
      table.row = writer->operands[1];
      table.row_has_axis = true;
      return table;
    }
    return replaced(std::move(table));
  }

  std::optional<Table> replaced(Table table) const {
    const Node& writer = *table.writer;
    if (writer.op->name != "scatter_nd" || writer.attrs.find("reduction") != nullptr) return std::nullopt;
    const ir::SymDims* index = dims(*writer.operands[1]);
    bool is_row = index != nullptr && (index->size() == 1 || index->size() == 2) &&
                  std::ranges::all_of(*index, [](sym::Expr d) { return d.constant() == 1; });
    if (!is_row) return std::nullopt;
    table.form = Table::Form::replaced;
    table.row = writer.operands[2];
    table.row_has_axis = index->size() == 2;
    table.index = writer.operands[1];
    return table;
  }

  // Rows of one shape, which is that of the rows that are there before the first trip, and known before it.
  bool has_plain_rows(Table& table) {
    const ir::SymDims* row = dims(*table.row);
    if (row == nullptr || known(*table.row).type.dtype == DType::str) return false;
    table.dtype = known(*table.row).type.dtype;
    table.item.assign(row->begin() + (table.row_has_axis ? 1 : 0), row->end());
    if (!std::ranges::all_of(table.item, [](sym::Expr d) { return d.constant().has_value(); })) return false;
    std::optional<ir::SymDims> first = first_rows(table);
    if (!first) return false;
    table.first = std::move(*first);
    return table.first.empty() ||
           std::equal(table.first.begin() + 1, table.first.end(), table.item.begin(), table.item.end());
  }

  // The dims of the rows that are there before the first trip; null if they are of no use.
  std::optional<ir::SymDims> first_rows(const Table& table) const {
    if (table.form == Table::Form::stacked) return ir::SymDims{};
    if (table.form == Table::Form::sequence) return first_items(*table.initial);
    const ir::SymDims* rows = dims(*table.initial);
    return rows == nullptr || rows->empty() ? std::nullopt : std::optional(*rows);
  }

  std::optional<ir::SymDims> first_items(const Value& sequence) const {
    if (is(&sequence, "sequence_empty")) return ir::SymDims{};
    if (!is(&sequence, "split_to_sequence") && !is(&sequence, "sequence_construct")) return std::nullopt;
    const Node& made = *sequence.node;
    const ir::SymDims* part = dims(*made.operands[0]);
    if (part == nullptr) return std::nullopt;
    ir::SymDims all = *part;
    if (made.op->name == "sequence_construct") {
      bool are_equal =
          std::ranges::all_of(made.operands, [&](const Value* v) { return dims(*v) != nullptr && *dims(*v) == *part; });
      if (!are_equal) return std::nullopt;
      all.insert(all.begin(), symbols_.constant(static_cast<int64_t>(made.operands.size())));
      return all;
    }
    bool is_by_ones = made.operands.size() < 2 || (made.operands[1] == nullptr && made.static_operand(1) == nullptr);
    if (!is_by_ones || attribute(made, "axis") != 0 || all.empty()) return std::nullopt;
    if (attribute(made, "keepdims") != 0) all.insert(all.begin() + 1, symbols_.constant(1));
    return all;
  }

  const Table* table_of(const Value* parameter) const {
    for (const Table& table : tables_)
      if (parameter != nullptr && table.parameter == parameter) return &table;
    return nullptr;
  }

  // Tables are used by what takes rows of them, and nothing else.
  bool find_reads() {
    for (const auto& node : body_.nodes) {
      for (size_t i = 0; i < node->operands.size(); ++i) {
        const Table* table = table_of(node->operands[i]);
        if (table == nullptr || (table->writer == node.get() && i == 0)) continue;
        bool takes_row = table->form == Table::Form::sequence
                             ? node->op->name == "sequence_at"
                             : node->op->name == "gather" && attribute(*node, "axis") == 0;
        if (!takes_row || i != 0 || node->operands[1] == nullptr) return false;
        const ir::SymDims* index = dims(*node->operands[1]);
        if (index == nullptr || (table->form == Table::Form::sequence && !index->empty())) return false;
        reads_.push_back({.node = node.get(), .index = node->operands[1]});
      }
    }
    return !reads_.empty();
  }

  // All tables that are read have as many rows, and get them at the same places, so that one order serves all.
  bool are_alike() const {
    const Table* first = nullptr;
    const sym::Facts& facts = rdp_.region(around_).facts;
    for (const Table& table : tables_) {
      if (table.form == Table::Form::stacked) continue;
      if (first == nullptr) {
        first = &table;
        continue;
      }
      bool replaces = table.form == Table::Form::replaced;
      if (replaces != (first->form == Table::Form::replaced) || table.index != first->index) return false;
      if (table.first.empty() != first->first.empty()) return false;
      if (!table.first.empty() && facts.prove_equal(table.first.front(), first->first.front()) != sym::Truth::yes)
        return false;
    }
    return true;
  }

  // Which rows are read and written does not depend on any row.
  bool are_indices_free() {
    std::set<const Value*> from_rows;
    for (const auto& node : body_.nodes) {
      bool reads = std::ranges::any_of(reads_, [&](const Read& r) { return r.node == node.get(); });
      bool depends = std::ranges::any_of(node->operands, [&](const Value* v) { return from_rows.contains(v); });
      if (reads || depends)
        for (const auto& result : node->results) from_rows.insert(result.get());
    }
    std::set<const Value*> wanted;
    for (const Read& read : reads_) wanted.insert(read.index);
    for (const Table& table : tables_)
      if (table.index != nullptr) wanted.insert(table.index);
    if (std::ranges::any_of(wanted, [&](const Value* v) { return from_rows.contains(v); })) return false;
    for (size_t i = body_.nodes.size(); i-- > 0;) {
      const Node& node = *body_.nodes[i];
      if (std::ranges::none_of(node.results, [&](const auto& r) { return wanted.contains(r.get()); })) continue;
      index_nodes_.insert(&node);
      wanted.insert(node.operands.begin(), node.operands.end());
    }
    return true;
  }

  // Where each trip reads what the one before it wrote, there is nothing to be won.
  bool are_rows_scattered() const {
    return std::ranges::any_of(reads_, [&](const Read& read) {
      const std::optional<ir::Contents>& contents = known(*read.index).contents;
      return !contents || !contents->complete();
    });
  }

  sym::Context& symbols_;
  const analysis::Rdp& rdp_;
  const Region& around_;
  const Node& loop_;
  const Region& body_;
  std::vector<Table> tables_;
  std::vector<Read> reads_;
  std::vector<std::pair<const Value*, Value*>> unchanged_;
  std::vector<const Value*> unchanged_results_;
  std::set<const Node*> index_nodes_;
};

// Writes the loop over levels and what it needs before it.
class Rewriter {
 public:
  Rewriter(ir::Module& module, const analysis::Rdp& rdp, const LevelLoop& form, Node& loop)
      : module_(module), rdp_(rdp), form_(form), loop_(loop), old_body_(*loop.regions[0]) {}

  // The nodes that take the place of the loop's; none if a node of the body has no form for many trips.
  std::optional<std::vector<std::unique_ptr<Node>>> run() {
    NodeAdder before(module_, before_, loop_.source);
    if (!add_levels(before)) return std::nullopt;
    std::vector<Value*> operands{before.value("sub", {before.value("size", {starts_}), before.scalar(1)}), nullptr};
    for (const Table& table : form_.tables()) operands.push_back(whole_table(before, table));
    Node& loop = before.add("loop", std::move(operands), form_.tables().size());
    if (!add_body(loop)) return std::nullopt;
    for (size_t i = 0; i < form_.tables().size(); ++i) finish(before, form_.tables()[i], loop.results[i].get());
    for (size_t i = 0; i < form_.unchanged().size(); ++i)
      replaced_[form_.unchanged_results()[i]] = form_.unchanged()[i].second;
    return std::move(before_.nodes);
  }
  const std::unordered_map<const Value*, Value*>& replaced() const { return replaced_; }
  // Sequences that the tables are split into, and the tables.
  const std::unordered_map<const Value*, Value*>& sequences() const { return sequences_; }

 private:
  // Indices of all trips, and from these the order.
  bool add_levels(NodeAdder& before) {
    trips_ = before.value("range", {before.scalar(0), loop_.operands[0], before.scalar(1)});
    Batched all(before, rdp_);
    all.set(*old_body_.parameters[0], trips_);
    all.set_same(*old_body_.parameters[1], module_.add_constant("true", Tensor::scalar_bool(true)));
    for (auto [parameter, initial] : form_.unchanged()) all.set_same(*parameter, initial);
    for (const auto& node : old_body_.nodes)
      if (form_.is_for_index(*node) && !all.add(*node)) return false;
    auto of_trips = [&](const Value* index) { return all.find(index); };
    const Table* first = nullptr;
    for (const Table& table : form_.tables())
      if (table.form != Table::Form::stacked && first == nullptr) first = &table;
    length_ = rows_before(before, *first);
    if (first->form == Table::Form::replaced) {
      Value* index = of_trips(first->index);
      if (index == nullptr) return false;  // one row again and again
      writes_ = before.value("reshape", {index, before.ints({-1})});
    }
    std::vector<Value*> operands{length_, writes_};
    std::vector<const Value*> indices;
    for (const Read& read : form_.reads()) {
      if (std::ranges::find(indices, read.index) != indices.end()) continue;
      indices.push_back(read.index);
      operands.push_back(of_trips(read.index));
      if (operands.back() == nullptr) return false;  // the same row in each trip
    }
    Node& levels = before.add("levels", std::move(operands), 2 + indices.size());
    order_ = levels.results[0].get();
    starts_ = levels.results[1].get();
    for (size_t i = 0; i < indices.size(); ++i) rows_[indices[i]] = levels.results[2 + i].get();
    return true;
  }

  // The rows that are there before the first trip, as a tensor; null if there are none.
  static Value* first_rows(NodeAdder& before, const Table& table) {
    if (table.first.empty()) return nullptr;
    if (table.form != Table::Form::sequence) return table.initial;
    const Node& made = *table.initial->node;
    if (made.op->name == "sequence_construct") {
      std::vector<Value*> rows;
      for (Value* item : made.operands) rows.push_back(before.value("unsqueeze", {item, before.ints({0})}));
      return rows.size() == 1 ? rows[0] : along_first(before, std::move(rows));
    }
    Value* rows = made.operands[0];
    return attribute(made, "keepdims") != 0 ? before.value("unsqueeze", {rows, before.ints({1})}) : rows;
  }

  static Value* along_first(NodeAdder& before, std::vector<Value*> parts) {
    Node& whole = before.add("concat", std::move(parts));
    whole.attrs.set("axis", int64_t{0});
    return whole.results[0].get();
  }

  Value* rows_before(NodeAdder& before, const Table& table) {
    Value* rows = first_rows(before, table);
    if (rows == nullptr) return before.scalar(0);
    return before.value("gather", {before.value("shape", {rows}), before.scalar(0)});
  }

  // With room for what all trips write.
  Value* whole_table(NodeAdder& before, const Table& table) {
    if (table.form == Table::Form::replaced) return table.initial;
    std::vector<int64_t> item;
    for (sym::Expr d : table.item) item.push_back(*d.constant());
    Value* shape = before.value("shape", {trips_});
    if (!item.empty()) shape = along_first(before, {shape, before.ints(item)});
    Value* zero = module_.add_constant("zero", Tensor(table.dtype, {}));
    Value* rest = before.value("expand", {zero, shape});
    Value* first = first_rows(before, table);
    return first == nullptr ? rest : along_first(before, {first, rest});
  }

  bool add_body(Node& loop) {
    Region& body = loop.add_region();
    NodeAdder inside(module_, body, loop_.source);
    Value* level = body.add_parameter("level", ir::Type::tensor(DType::i64, ir::SymDims{}));
    Value* go = body.add_parameter("go", ir::Type::tensor(DType::boolean, ir::SymDims{}));
    Value* first = inside.ints({0});
    auto start_of = [&](Value* of) {
      return inside.value("squeeze",
                          {inside.value("gather", {starts_, inside.value("unsqueeze", {of, first})}), first});
    };
    Value* end = start_of(inside.value("add", {level, inside.scalar(1)}));
    Value* places = inside.value("range", {start_of(level), end, inside.scalar(1)});
    Value* trips = inside.value("gather", {order_, places});
    Batched batched(inside, rdp_);
    batched.set(*old_body_.parameters[0], trips);
    batched.set_same(*old_body_.parameters[1], go);
    for (auto [parameter, initial] : form_.unchanged()) batched.set_same(*parameter, initial);
    std::map<const Value*, Value*> tables;
    for (const Table& table : form_.tables())
      tables[table.result] = body.add_parameter(table.parameter ? table.parameter->name : table.row->name, {});
    if (!add_nodes(inside, batched, tables, trips)) return false;
    body.yields.push_back(go);
    for (const Table& table : form_.tables()) {
      Value* changed = written(inside, batched, table, tables.at(table.result), trips);
      if (changed == nullptr) return false;
      body.yields.push_back(changed);
    }
    return true;
  }

  bool add_nodes(NodeAdder& inside, Batched& batched, const std::map<const Value*, Value*>& tables, Value* trips) {
    std::map<const Value*, Value*> rows;
    for (auto [index, all] : rows_) rows[index] = inside.value("gather", {all, trips});
    for (const auto& node : old_body_.nodes) {
      auto read = std::ranges::find(form_.reads(), node.get(), &Read::node);
      if (read != form_.reads().end()) {
        const Table& table = *std::ranges::find(form_.tables(), node->operands[0], &Table::parameter);
        batched.set(*node->results[0], inside.value("gather", {tables.at(table.result), rows.at(read->index)}));
      } else if (!form_.is_written_by(*node) && !batched.add(*node)) {
        return false;
      }
    }
    return true;
  }

  Value* written(NodeAdder& inside, Batched& batched, const Table& table, Value* rows, Value* trips) {
    Value* row = batched.find(table.row);
    if (row == nullptr) return nullptr;
    if (table.row_has_axis) row = inside.value("squeeze", {row, inside.ints({1})});
    Value* places = trips;
    if (table.form == Table::Form::replaced) places = inside.value("gather", {writes_, trips});
    if (table.form == Table::Form::sequence || table.form == Table::Form::appended)
      places = inside.value("add", {trips, length_});
    return inside.value("scatter_nd", {rows, inside.value("unsqueeze", {places, inside.ints({1})}), row});
  }

  void finish(NodeAdder& before, const Table& table, Value* rows) {
    if (table.form == Table::Form::sequence) {
      Node& split = before.add("split_to_sequence", {rows});
      split.attrs.set("keepdims", int64_t{0});
      sequences_[split.results[0].get()] = rows;
      rows = split.results[0].get();
    }
    replaced_[table.result] = rows;
  }

  ir::Module& module_;
  const analysis::Rdp& rdp_;
  const LevelLoop& form_;
  Node& loop_;
  const Region& old_body_;
  Region before_;
  Value* trips_ = nullptr;   // their numbers
  Value* length_ = nullptr;  // rows before the first trip
  Value* writes_ = nullptr;  // rows that are replaced
  Value* order_ = nullptr;
  Value* starts_ = nullptr;
  std::map<const Value*, Value*> rows_;  // that are read, in all trips, by their index
  std::unordered_map<const Value*, Value*> replaced_;
  std::unordered_map<const Value*, Value*> sequences_;
};

// An item of what was split into items is a row of what was split.
void take_rows(Region& region, const std::unordered_map<const Value*, Value*>& sequences, const analysis::Rdp& rdp) {
  ir::for_each_node(region, [&](Node& node, Region&) {
    if (node.op->name != "sequence_at" || node.operands[1] == nullptr) return;
    auto found = sequences.find(node.operands[0]);
    const ir::Type& position = rdp.known(*node.operands[1]).type;
    if (found == sequences.end() || !position.dims || !position.dims->empty()) return;
    node.op = ops::op_set().find("gather");
    node.operands[0] = found->second;
  });
}

bool batch(ir::Module& module, const analysis::Rdp& rdp, Region& region) {
  if (rdp.region(region).entry != analysis::Entry::possible) return false;
  bool changed = false;
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    Node& node = *region.nodes[i];
    for (auto& inner : node.regions) changed = batch(module, rdp, *inner) || changed;
    if (node.op->name != "loop") continue;
    LevelLoop form(module.symbols(), rdp, region, node);
    if (!form.find()) continue;
    Rewriter rewriter(module, rdp, form, node);
    auto nodes = rewriter.run();
    if (!nodes) continue;
    std::unique_ptr<Node> old = std::move(region.nodes[i]);
    region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(i));
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(i), std::make_move_iterator(nodes->begin()),
                        std::make_move_iterator(nodes->end()));
    i += nodes->size() - 1;
    ir::replace_uses(module.main().body, rewriter.replaced());
    take_rows(module.main().body, rewriter.sequences(), rdp);
    changed = true;
  }
  return changed;
}

}  // namespace

// loop(n, _, rows) body(i, go, rows) { a = gather(rows, index[i])  …  yield go, concat(rows, row) }
// => order, starts, index' = levels(length, _, index)
//    loop(levels, _, rows with room) body(level, …) { trips = order[starts[level] … starts[level + 1]]
//      a = gather(rows, gather(index', trips))  …  yield go, scatter_nd(rows, trips + length, row) }
bool batch_levels(ir::Module& module) {
  if (!has_loops(module.main().body)) return false;
  analysis::Rdp rdp(module);
  return batch(module, rdp, module.main().body);
}

}  // namespace selkie::passes
