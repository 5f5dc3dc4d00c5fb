#include "ir/parse.h"

#include <fstream>
#include <sstream>

#include "ir/text_reader.h"
#include "ir/verify.h"

namespace selkie::ir {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const OpSet& ops, const std::string& file, std::unique_ptr<Module> into)
      : reader_(text, file), ops_(ops), module_(into ? std::move(into) : std::make_unique<Module>()) {
    for (const auto& constant : module_->constants()) constants_[constant->value.name] = &constant->value;
  }

  std::unique_ptr<Module> run() {
    while (!reader_.at_end()) {
      if (reader_.accept("data"))
        data_type();
      else if (reader_.accept("const"))
        constant();
      else if (reader_.accept("func"))
        function();
      else
        reader_.fail_here("'data', 'const' or 'func' expected");
    }
    return std::move(module_);
  }

 private:
  Type type() { return reader_.type(module_->symbols()); }

  void data_type() {
    DataType result{.name = reader_.identifier()};
    if (dtype_from_name(result.name) || module_->find_data_type(result.name))
      reader_.fail_here(fmt::format("the type name '{}' is taken", result.name));
    reader_.expect("{");
    while (!reader_.accept("}")) {
      if (!result.constructors.empty()) reader_.expect(",");
      DataConstructor constructor{.name = reader_.identifier()};
      reader_.expect("(");
      while (!reader_.accept(")")) {
        if (!constructor.fields.empty()) reader_.expect(",");
        constructor.fields.push_back(type());
      }
      result.constructors.push_back(std::move(constructor));
    }
    module_->data_types.push_back(std::move(result));
  }

  void constant() {
    reader_.expect("@");
    std::string name = reader_.name();
    if (constants_.contains(name)) reader_.fail_here(fmt::format("constant @{} is defined twice", name));
    reader_.expect(":");
    Type declared = type();
    Dims dims;
    try {
      dims = fixed_dims(declared);
      element_count(dims);
    } catch (const Error& error) {
      reader_.fail_here(error.message());
    }
    reader_.expect("=");
    Constant& c = module_->add_constant(name);
    constants_[name] = &c.value;
    c.value.type = declared;
    c.dtype = declared.dtype;
    c.dims = dims;
    if (reader_.accept("file"))
      external(c);
    else
      c.in_memory = reader_.elements(declared.dtype, std::move(dims));
  }

  void external(Constant& c) {
    reader_.expect("(");
    std::string path = reader_.string();
    reader_.expect(",");
    int64_t offset = reader_.integer();
    reader_.expect(",");
    int64_t size = reader_.integer();
    reader_.expect(")");
    c.file = MappedFile::open(path);
    auto bytes = c.file->bytes();
    auto length = static_cast<int64_t>(bytes.size());
    if (offset < 0 || size < 0 || size > length || offset > length - size)
      reader_.fail_here(fmt::format("file '{}' has no {} bytes at {}", path, size, offset));
    if (c.dtype == DType::str) reader_.fail_here("strings cannot be read from a file");
    c.raw = bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
    int64_t count = element_count(c.dims);
    int64_t bits = info(c.dtype).bits;
    if (count > size * 8 / bits)
      reader_.fail_here(fmt::format("{} bytes are too few for {}", size, to_string(c.value.type)));
  }

  void function() {
    reader_.expect("@");
    std::string name = reader_.name();
    if (module_->find_function(name)) reader_.fail_here(fmt::format("function @{} is defined twice", name));
    Function& f = module_->add_function(name);
    values_.clear();
    parameters(f.body);
    reader_.expect("->");
    reader_.expect("(");
    while (!reader_.accept(")")) {
      if (!f.result_types.empty()) reader_.expect(",");
      result_declaration(f);
    }
    if (reader_.accept("where")) {
      while (true) {
        std::string text(reader_.until(",{"));
        try {
          f.facts.add(text, "the where clause of @" + name);
        } catch (const Error& error) {
          reader_.fail_here(error.what());
        }
        if (!reader_.accept(",")) break;
      }
    }
    body(f.body, "return");
  }

  // `name: type` or just a type.
  void result_declaration(Function& f) {
    bool quoted = reader_.peek("\"");
    TextReader before = reader_;
    if (quoted || reader_.at_identifier() || reader_.at_number()) {
      std::string name = reader_.name();
      if (reader_.accept(":")) {
        f.result_names.push_back(std::move(name));
        f.result_types.push_back(type());
        return;
      }
      reader_ = before;
    }
    f.result_names.emplace_back();
    f.result_types.push_back(type());
  }

  void parameters(Region& region) {
    reader_.expect("(");
    while (!reader_.accept(")")) {
      if (!region.parameters.empty()) reader_.expect(",");
      reader_.expect("%");
      std::string name = reader_.name();
      reader_.expect(":");
      define(region.add_parameter(name, type()));
    }
  }

  void define(Value* value) {
    if (!values_.emplace(value->name, value).second)
      reader_.fail_here(fmt::format("value %{} is defined twice", value->name));
    defined_.push_back(value->name);
  }

  Value* use() {
    if (reader_.accept("_")) return nullptr;
    bool is_constant = reader_.accept("@");
    if (!is_constant) reader_.expect("%");
    std::string name = reader_.name();
    auto& table = is_constant ? constants_ : values_;
    auto at = table.find(name);
    if (at == table.end())
      reader_.fail_here(fmt::format("{}{} is not defined here", is_constant ? "constant @" : "value %", name));
    return at->second;
  }

  // Values defined inside go out of scope at the end.
  void body(Region& region, std::string_view end) {
    if (++depth_ > max_region_depth) reader_.fail_here("regions are nested too deeply");
    size_t outer = defined_.size();
    reader_.expect("{");
    while (!reader_.accept(end)) node(region);
    if (!reader_.peek("}")) {
      do region.yields.push_back(use());
      while (reader_.accept(","));
    }
    for (Value* v : region.yields)
      if (v == nullptr) reader_.fail_here("a value expected, not _");
    reader_.expect("}");
    for (; defined_.size() > outer; defined_.pop_back()) values_.erase(defined_.back());
    --depth_;
  }

  void node(Region& region) {
    auto n = std::make_unique<Node>();
    std::vector<std::string> result_names;
    while (reader_.peek("%") || reader_.peek("_")) {
      result_names.push_back(reader_.accept("_") ? "" : (reader_.expect("%"), reader_.name()));
      if (!reader_.accept(",")) {
        reader_.expect("=");
        break;
      }
    }
    std::string op = reader_.identifier();
    n->op = ops_.find(op);
    if (n->op == nullptr) reader_.fail_here(fmt::format("unknown operator '{}'", op));
    reader_.expect("(");
    while (!reader_.accept(")")) {
      if (!n->operands.empty()) reader_.expect(",");
      n->operands.push_back(use());
    }
    if (reader_.accept("{")) attributes(*n);
    if (reader_.accept("from")) n->source = reader_.string();
    const auto& defs = n->op->regions;
    while (!defs.empty() && reader_.accept(defs[std::min(n->regions.size(), defs.size() - 1)].name)) {
      size_t outer = defined_.size();
      Region& inner = n->add_region();
      parameters(inner);
      body(inner, "yield");
      for (; defined_.size() > outer; defined_.pop_back()) values_.erase(defined_.back());
    }
    for (std::string& name : result_names) n->add_result(std::move(name));
    if (reader_.accept(":")) {
      for (size_t i = 0; i < n->results.size(); ++i) {
        if (i > 0) reader_.expect(",");
        n->results[i]->type = type();
      }
    }
    for (auto& r : n->results)
      if (!r->name.empty()) define(r.get());
    region.nodes.push_back(std::move(n));
  }

  void attributes(Node& n) {
    bool first = true;
    while (!reader_.accept("}")) {
      if (!first) reader_.expect(",");
      first = false;
      std::string name = reader_.name();
      if (n.attrs.find(name)) reader_.fail_here(fmt::format("attribute '{}' is given twice", name));
      reader_.expect("=");
      const AttrDef* def = n.op->find_attr(name);
      n.attrs.set(name, attribute(def ? std::optional(def->kind) : std::nullopt));
    }
  }

  Attribute attribute(std::optional<AttrKind> declared) {
    if (reader_.peek("\"")) return reader_.string();
    if (reader_.accept("@")) return FunctionRef{reader_.name()};
    if (reader_.accept("[")) return list(declared);
    if (reader_.at_number()) return scalar();
    if (reader_.accept("sym")) return symbolic();
    Type t = type();
    if (!t.is_tensor() || !(reader_.peek("{") || reader_.peek("hex"))) return t;
    try {
      return reader_.elements(t.dtype, fixed_dims(t));
    } catch (const Error& error) {
      reader_.fail_here(error.message());
    }
  }

  // After "sym": [N, 2] or (N).
  Attribute symbolic() {
    SymbolicInts out{.elements = {}, .scalar = reader_.accept("(")};
    std::string_view close = out.scalar ? ")" : "]";
    if (!out.scalar) reader_.expect("[");
    while (!reader_.accept(close)) {
      if (!out.elements.empty()) reader_.expect(",");
      try {
        out.elements.push_back(sym::parse(module_->symbols(), reader_.until(out.scalar ? ",)" : ",]")));
      } catch (const Error& error) {
        reader_.fail_here(error.message());
      }
    }
    if (out.scalar && out.elements.size() != 1) reader_.fail_here("sym(…) holds one expression");
    return out;
  }

  Attribute scalar() {
    TextReader before = reader_;
    std::string word = reader_.number();
    if (word.find_first_of(".eifn") == std::string::npos) {
      reader_ = before;
      return reader_.integer();
    }
    char* end = nullptr;
    float value = std::strtof(word.c_str(), &end);
    if (end != word.c_str() + word.size()) reader_.fail_here(fmt::format("'{}' is not a number", word));
    return value;
  }

  Attribute list(std::optional<AttrKind> declared) {
    std::vector<Attribute> items;
    while (!reader_.accept("]")) {
      if (!items.empty()) reader_.expect(",");
      items.push_back(reader_.peek("\"") ? Attribute(reader_.string()) : scalar());
      if (items.back().index() != items.front().index()) reader_.fail_here("a list holds one kind of item");
    }
    // An empty list says nothing about its items; the record does.
    AttrKind kind = !items.empty()                ? kind_of(items[0])
                    : declared == AttrKind::reals ? AttrKind::real
                    : declared == AttrKind::texts ? AttrKind::text
                                                  : AttrKind::integer;
    auto collect = [&]<class T>(std::vector<T> out) {
      for (Attribute& item : items) out.push_back(std::get<T>(std::move(item)));
      return Attribute(std::move(out));
    };
    if (kind == AttrKind::real) return collect(std::vector<float>{});
    if (kind == AttrKind::text) return collect(std::vector<std::string>{});
    return collect(std::vector<int64_t>{});
  }

  TextReader reader_;
  const OpSet& ops_;
  std::unique_ptr<Module> module_;
  std::map<std::string, Value*> constants_;
  std::map<std::string, Value*> values_;  // in scope
  std::vector<std::string> defined_;      // names in `values_`, in order of definition
  int depth_ = 0;
};

}  // namespace

std::unique_ptr<Module> parse(std::string_view text, const OpSet& ops, const std::string& file,
                              std::unique_ptr<Module> into) {
  return Parser(text, ops, file, std::move(into)).run();
}

std::unique_ptr<Module> parse_file(const std::string& path, const OpSet& ops) {
  std::ifstream in(path);
  if (!in) fail("cannot open '{}'", path);
  std::stringstream text;
  text << in.rdbuf();
  std::unique_ptr<Module> module = parse(text.str(), ops, path);
  verify(*module);
  return module;
}

}  // namespace selkie::ir
