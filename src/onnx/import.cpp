#include "onnx/import.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "ir/signature.h"
#include "ir/upgrade_context.h"
#include "ir/verify.h"
#include "onnx/order.h"
#include "onnx/tensors.h"

namespace selkie::onnx {
namespace {

using ir::Value;

// Names of values, those of the graph around it, too.
class Scope {
 public:
  explicit Scope(const Scope* outer = nullptr) : outer_(outer) {}

  // Null if there is none of that name.
  Value* find(Bytes name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_)
      if (auto at = scope->own_.find(name); at != scope->own_.end()) return at->second;
    return nullptr;
  }
  void set(Bytes name, Value* value) { own_[name] = value; }

 private:
  const Scope* outer_;
  std::map<Bytes, Value*> own_;
};

using Opsets = std::map<std::string, int64_t, std::less<>>;
using AttributeBindings = std::map<Bytes, const AttributeProto*>;  // what a call gives a function's attributes

// Functions that call each other may nest this deep.
constexpr size_t max_function_depth = 100;
// A function is imported once for each list of attribute values; a hostile model could make that grow without end.
constexpr size_t max_functions = 10'000;

std::string_view canonical_domain(Bytes domain) { return domain == "ai.onnx" ? "" : domain; }
std::string_view shown_domain(std::string_view domain) { return domain.empty() ? "ai.onnx" : domain; }

class Importer {
 public:
  Importer(const ModelProto& model, const ir::OpSet& ops, DataSource& source)
      : model_(model), ops_(ops), source_(source), module_(std::make_unique<ir::Module>()) {}

  std::unique_ptr<ir::Module> run() {
    if (!model_.graph) fail("the model has no graph");
    Opsets opsets = opsets_of(model_.opsets);
    if (model_.ir_version < 3 && !opsets.contains("")) opsets[""] = 1;
    const GraphProto& graph = *model_.graph;
    ir::Function& main = module_->add_function("main");
    Frame frame{.opsets = opsets};
    Scope scope;
    std::set<Bytes> initializers = declare_initializers(graph, scope);
    for (const ValueInfo& input : graph.inputs) {
      if (scope.find(input.name) != nullptr) continue;  // an initialiser of that name fixes the input
      if (input.name.empty()) fail("an input of the graph has no name");
      Value* parameter = main.body.add_parameter(std::string(input.name), type_of(input));
      scope.set(input.name, parameter);
    }
    check_distinct(graph.inputs);
    body(graph.nodes, graph.value_infos, graph.outputs, initializers, main.body, scope, frame);
    for (const ValueInfo& output : graph.outputs) {
      main.body.yields.push_back(lookup(scope, output.name, "the graph's output"));
      main.result_names.emplace_back(output.name);
      // Exporters leave stale dims here, and no runtime enforces them: the analysis finds the true ones.
      main.result_types.push_back(type_of(output));
      main.result_types.back().dims.reset();
    }
    return std::move(module_);
  }

 private:
  // What the nodes of one graph or function body share.
  struct Frame {
    Opsets opsets;
    AttributeBindings attributes = {};
    int depth = 1;  // of regions
  };

  static Opsets opsets_of(const std::vector<OpsetId>& ids) {
    Opsets out;
    for (const OpsetId& id : ids) {
      std::string domain(canonical_domain(id.domain));
      if (domain.empty() && id.version > newest_opset)
        fail("the model uses opset {} of ai.onnx, but the newest known one is {}", id.version, newest_opset);
      out[domain] = id.version;
    }
    return out;
  }

  static void check_distinct(const std::vector<ValueInfo>& inputs) {
    std::set<Bytes> names;
    for (const ValueInfo& input : inputs)
      if (!names.insert(input.name).second) fail("the graph has two inputs named '{}'", input.name);
  }

  // Adds the initialisers of a graph to its scope, where they shadow outer values, and returns their names.
  std::set<Bytes> declare_initializers(const GraphProto& graph, Scope& scope) {
    std::set<Bytes> own;
    auto declare = [&](Bytes name, Value* value) {
      if (name.empty()) fail("an initialiser has no name");
      if (!own.insert(name).second) fail("initialiser '{}' is defined twice", name);
      scope.set(name, value);
    };
    for (const TensorProto& tensor : graph.initializers) {
      ir::Constant& constant = module_->add_constant(tensor.name);
      fill_constant(constant, tensor, source_, module_->symbols());
      declare(tensor.name, &constant.value);
    }
    for (const SparseTensorProto& tensor : graph.sparse_initializers)
      declare(tensor.values.name, module_->add_constant(tensor.values.name, to_tensor(tensor, source_)));
    return own;
  }

  ir::Type type_of(const ValueInfo& info) {
    try {
      return info.type ? type_of(*info.type, info.name) : ir::Type{};
    } catch (Error& error) {
      error.note(fmt::format("in the type of '{}'", info.name));
      throw;
    }
  }

  ir::Type type_of(const TypeProto& proto, Bytes name) {
    using Kind = TypeProto::Kind;
    auto element = [&] { return proto.element ? type_of(*proto.element, name) : ir::Type{}; };
    switch (proto.kind) {
      case Kind::none:
        return {};
      case Kind::sequence:
        return ir::Type::seq(element());
      case Kind::optional:
        return ir::Type::opt(element());
      case Kind::map:
        return ir::Type::map(dtype_from_onnx(proto.elem_type).value_or(DType::i64), element());
      case Kind::sparse_tensor:
        fail("sparse tensors as inputs or outputs are not supported");
      case Kind::tensor:
        break;
    }
    if (proto.elem_type == 0) return {};
    std::optional<DType> dtype = dtype_from_onnx(proto.elem_type);
    if (!dtype) fail("{} is not an element type", proto.elem_type);
    if (!proto.shape) return ir::Type::tensor(*dtype);
    ir::SymDims dims;
    for (const Dimension& dim : *proto.shape) {
      // Some exporters write an unknown dim as -1, or as the name "?", which then says nothing of others of that name.
      if (dim.value && *dim.value >= 0)
        dims.push_back(module_->symbols().constant(*dim.value));
      else if (!dim.value && !dim.param.empty() && dim.param != "?")
        dims.push_back(module_->symbols().symbol(dim.param));
      else
        dims.push_back(module_->symbols().fresh(fmt::format("{}_{}", name, dims.size())));
    }
    return ir::Type::tensor(*dtype, std::move(dims));
  }

  static Value* lookup(const Scope& scope, Bytes name, std::string_view what) {
    Value* found = scope.find(name);
    if (found == nullptr) fail("{} '{}' is not defined by any node, input or initialiser", what, name);
    return found;
  }

  // Imports nodes in dependence order into `region`; `scope` gains their results.
  void body(const std::vector<NodeProto>& nodes, const std::vector<ValueInfo>& infos,
            const std::vector<ValueInfo>& outputs, const std::set<Bytes>& initializers, ir::Region& region,
            Scope& scope, const Frame& frame) {
    std::map<Bytes, const ValueInfo*> declared;
    for (const ValueInfo& info : infos) declared.emplace(info.name, &info);
    for (const ValueInfo& info : outputs) declared.emplace(info.name, &info);
    check_single_definitions(nodes, region, scope, initializers);
    for (size_t index : dependence_order(nodes)) {
      const NodeProto& proto = nodes[index];
      std::string source = proto.name.empty() ? fmt::format("{}_{}", proto.op_type, index) : std::string(proto.name);
      try {
        std::vector<Value*> results = node(proto, source, declared, region, scope, frame);
        for (size_t i = 0; i < results.size(); ++i) {
          if (!proto.outputs[i].empty()) scope.set(proto.outputs[i], results[i]);
        }
      } catch (Error& error) {
        error.note(fmt::format("in node '{}' ({})", source, proto.op_type));
        throw;
      }
    }
  }

  // A name has one definition per graph: a node, an input or an initialiser of the same graph. Names of outer graphs
  // may be shadowed.
  static void check_single_definitions(const std::vector<NodeProto>& nodes, const ir::Region& region,
                                       const Scope& scope, const std::set<Bytes>& initializers) {
    std::map<Bytes, const NodeProto*> definitions;
    for (const NodeProto& node : nodes) {
      for (Bytes output : node.outputs) {
        if (output.empty()) continue;
        auto [at, fresh] = definitions.emplace(output, &node);
        if (!fresh)
          fail("value '{}' is defined twice: by node '{}' ({}) and by node '{}' ({})", output, at->second->name,
               at->second->op_type, node.name, node.op_type);
        if (initializers.contains(output))
          fail("value '{}' is defined twice: as an initialiser and by node '{}' ({})", output, node.name, node.op_type);
        if (const Value* outer = scope.find(output); outer != nullptr && outer->region == &region)
          fail("value '{}' is defined twice: as an input and by node '{}' ({})", output, node.name, node.op_type);
      }
    }
  }

  std::vector<Value*> node(const NodeProto& proto, const std::string& source,
                           const std::map<Bytes, const ValueInfo*>& declared, ir::Region& region, Scope& scope,
                           const Frame& frame) {
    std::string_view domain = canonical_domain(proto.domain);
    // A Constant is a literal: the tensor moves to the module, where it needs no copy.
    if (domain.empty() && proto.op_type == "Constant" && proto.outputs.size() == 1)
      return {constant_node(proto, frame)};
    const ir::OpDef* op = ops_.find_onnx(domain, proto.op_type);
    const FunctionProto* callee = find_function(domain, proto);
    if (op == nullptr && callee == nullptr)
      fail("unknown operator '{}' of domain '{}'", proto.op_type, shown_domain(domain));
    auto n = std::make_unique<ir::Node>();
    n->op = callee != nullptr ? ops_.find("call") : op;
    n->source = source;
    for (Bytes input : proto.inputs) n->operands.push_back(input.empty() ? nullptr : lookup(scope, input, "operand"));
    for (Bytes output : proto.outputs) {
      auto at = declared.find(output);
      n->add_result(std::string(output), output.empty() || at == declared.end() ? ir::Type{} : type_of(*at->second));
    }
    std::vector<Value*> results;
    for (auto& result : n->results) results.push_back(result.get());
    std::vector<std::unique_ptr<ir::Node>> followers;
    if (callee != nullptr) {
      call(*callee, proto, *n, frame);
    } else {
      attributes(proto, *n, scope, frame);
      followers = upgrade(n, region, frame);
    }
    region.nodes.push_back(std::move(n));
    for (auto& follower : followers) region.nodes.push_back(std::move(follower));
    return results;
  }

  // Brings a node to the newest form of its operator; returns nodes that belong after it.
  std::vector<std::unique_ptr<ir::Node>> upgrade(std::unique_ptr<ir::Node>& n, ir::Region& region, const Frame& frame) {
    const ir::OpDef& op = *n->op;
    auto at = frame.opsets.find(op.onnx.domain);
    // A domain that is used but not imported: the newest form is the best guess.
    int version = at == frame.opsets.end() ? std::numeric_limits<int>::max()
                                           : static_cast<int>(std::min<int64_t>(at->second, 1 << 20));
    if (!op.onnx.versions.empty() && op.onnx.domain.empty() && version < op.onnx.versions.front())
      fail("'{}' came with opset {}, but the model uses opset {}", op.onnx.name, op.onnx.versions.front(), version);
    ir::UpgradeContext context(*module_, region, n, ops_, version);
    for (const ir::Upgrade& row : op.upgrades)
      if (row.version > version) row.apply(context);
    while (!n->operands.empty() && n->operands.back() == nullptr) n->operands.pop_back();
    // Operands before a variadic one have fixed places, even if they are left out.
    const auto& records = n->op->operands;
    if (!records.empty() && records.back().arity == ir::Arity::variadic && n->operands.size() + 1 < records.size())
      n->operands.resize(records.size() - 1, nullptr);
    return context.take_followers();
  }

  const AttributeProto* resolve(const AttributeProto& proto, const Frame& frame) const {
    if (proto.ref_name.empty()) return &proto;
    auto at = frame.attributes.find(proto.ref_name);
    return at == frame.attributes.end() ? nullptr : at->second;  // null: not given at the call, so left out here too
  }

  void attributes(const NodeProto& proto, ir::Node& n, const Scope& scope, const Frame& frame) {
    std::vector<const AttributeProto*> graphs(n.op->regions.size(), nullptr);
    for (const AttributeProto& given : proto.attributes) {
      const AttributeProto* a = resolve(given, frame);
      if (a == nullptr) continue;
      if (a->type == AttributeProto::graph) {
        auto at = std::find_if(n.op->regions.begin(), n.op->regions.end(),
                               [&](const auto& r) { return r.onnx == given.name; });
        if (at == n.op->regions.end()) fail("the operator takes no graph '{}'", given.name);
        if (!a->g) fail("graph attribute '{}' is empty", given.name);
        graphs[static_cast<size_t>(at - n.op->regions.begin())] = a;
      } else {
        if (n.attrs.find(given.name)) fail("attribute '{}' is given twice", given.name);
        n.attrs.set(given.name, attribute(*a));
      }
    }
    for (size_t i = 0; i < graphs.size(); ++i) {
      const ir::RegionDef& def = n.op->regions[i];
      if (graphs[i] == nullptr && !def.optional) fail("graph attribute '{}' is missing", def.onnx);
      if (graphs[i] != nullptr)
        subgraph(*graphs[i]->g, n.add_region(), scope, frame);
      else
        pass_through(n.add_region(), def.parameters);
    }
  }

  ir::Attribute attribute(const AttributeProto& a) {
    switch (a.type) {
      case AttributeProto::float_:
        return a.f;
      case AttributeProto::int_:
        return a.i;
      case AttributeProto::string:
        return std::string(a.s);
      case AttributeProto::floats:
        return a.float_list;
      case AttributeProto::ints:
        return a.int_list;
      case AttributeProto::strings:
        return std::vector<std::string>(a.string_list.begin(), a.string_list.end());
      case AttributeProto::tensor:
        if (a.t) return to_tensor(*a.t, source_);
        break;
      case AttributeProto::sparse_tensor:
        if (a.sparse) return to_tensor(*a.sparse, source_);
        break;
      case AttributeProto::type_proto:
        if (a.tp) return type_of(*a.tp, a.name);
        break;
      default:
        break;
    }
    fail("attribute '{}' has no value of a known type", a.name);
  }

  static void pass_through(ir::Region& region, int parameters) {
    for (int i = 0; i < parameters; ++i) region.yields.push_back(region.add_parameter("x", {}));
  }

  void subgraph(const GraphProto& graph, ir::Region& region, const Scope& outer, const Frame& frame) {
    Scope scope(&outer);
    Frame inner = frame;
    if (++inner.depth > ir::max_region_depth) fail("subgraphs are nested more than {} deep", ir::max_region_depth);
    check_distinct(graph.inputs);
    for (const ValueInfo& input : graph.inputs)
      scope.set(input.name, region.add_parameter(std::string(input.name), type_of(input)));
    std::set<Bytes> initializers = declare_initializers(graph, scope);
    body(graph.nodes, graph.value_infos, graph.outputs, initializers, region, scope, inner);
    for (const ValueInfo& output : graph.outputs)
      region.yields.push_back(lookup(scope, output.name, "the subgraph's output"));
  }

  Value* constant_node(const NodeProto& proto, const Frame& frame) {
    const AttributeProto* a = nullptr;
    for (const AttributeProto& given : proto.attributes)
      if (const AttributeProto* resolved = resolve(given, frame)) a = resolved;
    if (a == nullptr) fail("a constant without a value");
    if (a->type == AttributeProto::tensor && a->t) {
      ir::Constant& constant = module_->add_constant(proto.outputs[0]);
      fill_constant(constant, *a->t, source_, module_->symbols());
      return &constant.value;
    }
    ir::Attribute value = attribute(*a);
    Tensor tensor = std::visit(
        [&](const auto& v) -> Tensor {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, Tensor>)
            return v;
          else if constexpr (std::is_same_v<T, int64_t>)
            return Tensor::scalar_i64(v);
          else if constexpr (std::is_same_v<T, float>)
            return Tensor::from<float>(DType::f32, {}, {&v, 1});
          else if constexpr (std::is_same_v<T, std::string>)
            return Tensor::from<std::string>(DType::str, {}, {&v, 1});
          else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
            return Tensor::of_i64(v);
          else if constexpr (std::is_same_v<T, std::vector<float>>)
            return Tensor::from<float>(DType::f32, {static_cast<int64_t>(v.size())}, v);
          else if constexpr (std::is_same_v<T, std::vector<std::string>>)
            return Tensor::from<std::string>(DType::str, {static_cast<int64_t>(v.size())}, v);
          else
            fail("a constant cannot be {}", ir::name(ir::kind_of(value)));
        },
        value);
    return module_->add_constant(proto.outputs[0], std::move(tensor));
  }

  // Functions of the model. One with attributes is imported once for each list of attribute values that calls give.
  const FunctionProto* find_function(std::string_view domain, const NodeProto& node) const {
    for (const FunctionProto& f : model_.functions)
      if (canonical_domain(f.domain) == domain && f.name == node.op_type && f.overload == node.overload) return &f;
    return nullptr;
  }

  void call(const FunctionProto& callee, const NodeProto& proto, ir::Node& n, const Frame& frame) {
    if (!open_functions_.insert(&callee).second)
      fail("function '{}' calls itself, which ONNX does not allow", callee.name);
    if (open_functions_.size() > max_function_depth)
      fail("functions call each other more than {} deep", max_function_depth);
    if (proto.inputs.size() > callee.inputs.size() || proto.outputs.size() > callee.outputs.size())
      fail("function '{}' takes {} inputs and gives {} outputs", callee.name, callee.inputs.size(),
           callee.outputs.size());
    n.operands.resize(callee.inputs.size(), nullptr);
    for (size_t i = n.results.size(); i < callee.outputs.size(); ++i) n.add_result("");
    Frame inner{.opsets = opsets_of(callee.opsets.empty() ? model_.opsets : callee.opsets)};
    std::string key =
        fmt::format("{}.{}{}", shown_domain(canonical_domain(callee.domain)), callee.name, callee.overload);
    for (const AttributeProto& fallback : callee.attribute_defaults) inner.attributes[fallback.name] = &fallback;
    for (const AttributeProto& given : proto.attributes)
      if (const AttributeProto* a = resolve(given, frame)) inner.attributes[given.name] = a;
    std::string name = key;
    // Bindings are compared by identity of their text in the file, which is exact if not minimal.
    std::vector<const void*> binding;
    for (const auto& [attr, value] : inner.attributes) binding.push_back(value);
    auto& instances = instances_[key];
    auto at = instances.find(binding);
    if (at == instances.end()) {
      if (!instances.empty()) name += fmt::format("_{}", instances.size());
      at = instances.emplace(binding, name).first;
      import_function(callee, name, inner);
    }
    open_functions_.erase(&callee);
    n.attrs.set("callee", ir::FunctionRef{at->second});
  }

  void import_function(const FunctionProto& proto, const std::string& name, const Frame& frame) {
    if (module_->functions().size() >= max_functions)
      fail("the model's functions have more than {} instances", max_functions);
    ir::Function& function = module_->add_function(name);
    Scope scope;
    for (Bytes input : proto.inputs) {
      if (scope.find(input) != nullptr) fail("function '{}' has two inputs named '{}'", proto.name, input);
      scope.set(input, function.body.add_parameter(std::string(input), {}));
    }
    body(proto.nodes, proto.value_infos, {}, {}, function.body, scope, frame);
    for (Bytes output : proto.outputs) {
      function.body.yields.push_back(lookup(scope, output, "the function's output"));
      function.result_names.emplace_back(output);
      function.result_types.emplace_back();
    }
  }

  const ModelProto& model_;
  const ir::OpSet& ops_;
  DataSource& source_;
  std::unique_ptr<ir::Module> module_;
  std::map<std::string, std::map<std::vector<const void*>, std::string>> instances_;
  std::set<const FunctionProto*> open_functions_;  // whose bodies are being imported
};

std::unique_ptr<ir::Module> import_model(Bytes bytes, const ir::OpSet& ops, DataSource source) {
  ModelProto model = read_model(bytes);
  std::unique_ptr<ir::Module> module = Importer(model, ops, source).run();
  ir::verify(*module);
  return module;
}

}  // namespace

std::unique_ptr<ir::Module> import_file(const std::string& path, const ir::OpSet& ops) {
  auto file = MappedFile::open(path);
  Bytes bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  try {
    return import_model(bytes, ops, DataSource(file, std::filesystem::path(path).parent_path().string()));
  } catch (Error& error) {
    error.note(fmt::format("in model '{}'", path));
    throw;
  }
}

std::unique_ptr<ir::Module> import_bytes(std::string_view bytes, const ir::OpSet& ops, const std::string& folder) {
  return import_model(bytes, ops, DataSource(nullptr, folder));
}

}  // namespace selkie::onnx
