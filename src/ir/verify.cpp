#include "ir/verify.h"

#include <set>
#include <unordered_set>

#include "ir/signature.h"

namespace selkie::ir {
namespace {

class Verifier {
 public:
  Verifier(const Module& module, size_t limit) : module_(module), limit_(limit) {}

  std::vector<std::string> run() {
    if (module_.find_function("main") == nullptr) report("the module has no function @main");
    std::set<std::string_view> names;
    for (const auto& f : module_.functions())
      if (!names.insert(f->name).second) report("function @{} is defined twice", f->name);
    for (const DataType& type : module_.data_types)
      for (const DataConstructor& c : type.constructors)
        for (const Type& field : c.fields) check_type(field, "constructor " + c.name);
    for (const auto& c : module_.constants()) {
      visible_.insert(&c->value);
      if (c->value.constant != c.get()) report("constant @{} does not know itself", c->value.name);
    }
    for (const auto& f : module_.functions()) function(*f);
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(fmt::format_string<Args...> format, Args&&... args) {
    if (messages_.size() < limit_) messages_.push_back(where_ + fmt::format(format, std::forward<Args>(args)...));
  }

  void function(const Function& f) {
    where_ = "function @" + f.name + ": ";
    for (const Type& type : f.result_types) check_type(type, "a result");
    if (f.body.parent != nullptr) report("the body has a parent node");
    region(f.body, 1);
    where_ = "function @" + f.name + ": ";
    if (f.body.yields.size() != f.result_types.size())
      report("{} values are returned, but {} are declared", f.body.yields.size(), f.result_types.size());
    for (size_t i = 0; i < std::min(f.body.yields.size(), f.result_types.size()); ++i) {
      const Value* v = f.body.yields[i];
      if (v && !compatible(v->type, f.result_types[i]))
        report("result {} is declared {}, but %{} is {}", i, to_string(f.result_types[i]), v->name, to_string(v->type));
    }
    where_.clear();
  }

  void region(const Region& r, int depth) {
    if (depth > max_region_depth) {
      report("regions are nested more than {} deep", max_region_depth);
      return;
    }
    std::vector<const Value*> entered;
    auto enter = [&](const Value* v) {
      if (!visible_.insert(v).second) report("value %{} is defined twice", v->name);
      entered.push_back(v);
    };
    for (const auto& p : r.parameters) {
      check_type(p->type, "parameter %" + p->name);
      if (p->region != &r) report("parameter %{} belongs to another region", p->name);
      enter(p.get());
    }
    std::string outer = where_;
    for (const auto& n : r.nodes) {
      where_ = outer + n->describe() + ": ";
      node(*n, depth);
      for (const auto& result : n->results) {
        if (result->node != n.get()) report("result %{} belongs to another node", result->name);
        enter(result.get());
      }
    }
    where_ = outer;
    for (const Value* v : r.yields) {
      if (v == nullptr)
        report("a result of the region is left out");
      else if (!visible_.contains(v))
        report("value %{} is not defined where the region returns it", v->name);
    }
    for (const Value* v : entered) visible_.erase(v);
  }

  void node(const Node& n, int depth) {
    const OpDef& op = *n.op;
    if (auto problem = arity_problem(op.operands, n.operands.size(), "operands")) report("{}", *problem);
    if (auto problem = arity_problem(op.results, n.results.size(), "results")) report("{}", *problem);
    std::map<std::string_view, std::pair<DType, std::string_view>> bound;
    for (size_t i = 0; i < n.operands.size(); ++i) operand(n, i, bound);
    for (size_t i = 0; i < n.results.size(); ++i) {
      check_type(n.results[i]->type, "result %" + n.results[i]->name);
      if (const Operand* record = operand_record(op.results, i)) typed(*record, n.results[i]->type, "result", bound);
    }
    attributes(n);
    regions(n, depth);
  }

  using Bound = std::map<std::string_view, std::pair<DType, std::string_view>>;

  void operand(const Node& n, size_t i, Bound& bound) {
    const Operand* record = operand_record(n.op->operands, i);
    if (record == nullptr) return;
    const Value* v = n.operands[i];
    if (v == nullptr) {
      if (n.static_operand(i) != nullptr) return;
      // Among arguments of any kind there may be some that a function does without.
      bool may_be =
          record->arity == Arity::optional || (record->arity == Arity::variadic && record->container == Container::any);
      if (!may_be) report("operand '{}' is missing", record->name);
      return;
    }
    if (!visible_.contains(v)) report("operand '{}' uses %{}, which is not defined there", record->name, v->name);
    typed(*record, v->type, "operand", bound);
  }

  // Holds a known type against the record: container, dtype, and one dtype per type variable.
  void typed(const Operand& record, const Type& type, std::string_view what, Bound& bound) {
    if (type.is_unknown() || record.container == Container::any) return;
    static constexpr Type::Kind kinds[] = {Type::Kind::tensor, Type::Kind::seq, Type::Kind::opt, Type::Kind::map};
    if (type.kind != kinds[static_cast<size_t>(record.container)]) {
      report("{} '{}' must be {}, but is {}", what, record.name, name(record.container), to_string(type));
      return;
    }
    if (!type.is_tensor()) return;
    if (!record.type.dtypes.contains(type.dtype)) {
      report("{} '{}' is of type {}, but must be one of {}", what, record.name, selkie::name(type.dtype),
             to_string(record.type.dtypes));
      return;
    }
    if (record.type.name.empty()) return;
    auto [at, fresh] = bound.emplace(record.type.name, std::pair(type.dtype, record.name));
    if (!fresh && at->second.first != type.dtype)
      report("{} '{}' is of type {}, but must be {} like '{}'", what, record.name, selkie::name(type.dtype),
             selkie::name(at->second.first), at->second.second);
  }

  void attributes(const Node& n) {
    for (const auto& [name, value] : n.attrs) {
      const AttrDef* def = n.op->find_attr(name);
      if (std::holds_alternative<SymbolicInts>(value)) {
        static_operand(n, name);
        continue;
      }
      if (def == nullptr)
        report("the operator has no attribute '{}'", name);
      else if (def->kind != kind_of(value))
        report("attribute '{}' must be {}, but is {}", name, ir::name(def->kind), ir::name(kind_of(value)));
      if (const auto* callee = std::get_if<FunctionRef>(&value); callee && !module_.find_function(callee->name))
        report("attribute '{}' names @{}, which is not a function", name, callee->name);
      if (const auto* type = std::get_if<Type>(&value)) check_type(*type, "attribute " + name);
    }
    for (const AttrDef& def : n.op->attrs)
      if (def.required && !n.attrs.find(def.name)) report("attribute '{}' is required", def.name);
  }

  // Symbolic integers stand for an operand of their name that is left out.
  void static_operand(const Node& n, std::string_view name) {
    for (size_t i = 0; i < std::min(n.operands.size(), n.op->operands.size()); ++i)
      if (n.op->operands[i].name == name && n.operands[i] == nullptr) return;
    report("attribute '{}' does not stand for an operand that is left out", name);
  }

  void regions(const Node& n, int depth) {
    const auto& defs = n.op->regions;
    bool variadic = !defs.empty() && defs.back().variadic;
    if (variadic ? n.regions.size() < defs.size() : n.regions.size() != defs.size())
      report("{} regions given, but {} are needed", n.regions.size(), defs.size());
    for (size_t i = 0; i < n.regions.size(); ++i) {
      const Region& r = *n.regions[i];
      if (r.parent != &n) report("region {} belongs to another node", i);
      if (!defs.empty()) {
        const RegionDef& def = defs[std::min(i, defs.size() - 1)];
        size_t takes = def.takes_operands ? n.operands.size() : static_cast<size_t>(def.parameters);
        size_t yields = n.results.size() + static_cast<size_t>(def.extra_yields);
        if (!def.variadic && r.parameters.size() != takes)
          report("region '{}' has {} parameters, but must have {}", def.name, r.parameters.size(), takes);
        if (r.yields.size() != yields)
          report("region '{}' returns {} values, but must return {}", def.name, r.yields.size(), yields);
      }
      region(r, depth + 1);
    }
  }

  void check_type(const Type& type, const std::string& what) {
    if (type.kind == Type::Kind::data && module_.find_data_type(type.name) == nullptr)
      report("{} has type {}, which is not defined", what, type.name);
    if (type.is_tensor() && type.dims)
      for (sym::Expr e : *type.dims)
        if (e.constant().value_or(0) < 0) report("{} has the negative dimension {}", what, *e.constant());
    for (const Type& part : type.parts) check_type(part, what);
  }

  const Module& module_;
  size_t limit_;
  std::string where_;
  std::vector<std::string> messages_;
  std::unordered_set<const Value*> visible_;
};

}  // namespace

std::vector<std::string> problems(const Module& module, size_t limit) { return Verifier(module, limit).run(); }

void verify(const Module& module) {
  std::vector<std::string> found = problems(module);
  if (found.empty()) return;
  Error error(found[0]);
  for (size_t i = 1; i < found.size(); ++i) error.note("also: " + found[i]);
  throw error;
}

}  // namespace selkie::ir
