#include "ir/print.h"

#include <set>

#include "ir/text_reader.h"

namespace selkie::ir {
namespace {

class Printer {
 public:
  void function(const Function& f) {
    out_ += "func @" + spell_name(f.name) + parameters(f.body) + " -> (";
    for (size_t i = 0; i < f.result_types.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (!f.result_names[i].empty()) out_ += spell_name(f.result_names[i]) + ": ";
      out_ += to_string(f.result_types[i]);
    }
    out_ += ")";
    std::vector<std::string> facts = f.facts.to_strings();
    for (size_t i = 0; i < facts.size(); ++i) out_ += (i == 0 ? " where " : ", ") + facts[i];
    body(f.body, "return");
    out_ += "\n";
  }

  void constant(const Constant& c) {
    out_ += "const @" + spell_name(c.value.name) + ": " + to_string(c.value.type) + " = ";
    if (!c.in_memory && c.file) {
      size_t offset = static_cast<size_t>(c.raw.data() - c.file->bytes().data());
      out_ += fmt::format("file({}, {}, {})", quote(c.file->path()), c.raw.empty() ? 0 : offset, c.raw.size());
    } else {
      out_ += spell_elements(c.tensor());
    }
    out_ += "\n";
  }

  void data_type(const DataType& type) {
    out_ += "data " + type.name + " { ";
    for (size_t i = 0; i < type.constructors.size(); ++i) {
      const DataConstructor& c = type.constructors[i];
      out_ += (i > 0 ? ", " : "") + c.name + "(" + types(c.fields) + ")";
    }
    out_ += " }\n";
  }

  std::string take() { return std::move(out_); }

 private:
  static std::string types(const std::vector<Type>& list) {
    std::string out;
    for (size_t i = 0; i < list.size(); ++i) out += (i > 0 ? ", " : "") + to_string(list[i]);
    return out;
  }

  // A name that no other value of the function has.
  std::string define(const Value& value) {
    std::string base = value.name.empty() ? "v" : value.name;
    std::string unique = base;
    for (int i = 1; !taken_.insert(unique).second; ++i) unique = fmt::format("{}_{}", base, i);
    names_[&value] = unique;
    return "%" + spell_name(unique);
  }

  std::string use(const Value* value) const {
    if (value == nullptr) return "_";
    if (value->constant != nullptr) return "@" + spell_name(value->name);
    auto at = names_.find(value);
    // Only a module that the verifier refuses has such a use; print it all the same.
    return at == names_.end() ? "%<undefined " + value->name + ">" : "%" + spell_name(at->second);
  }

  std::string uses(const std::vector<Value*>& values) const {
    std::string out;
    for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? ", " : "") + use(values[i]);
    return out;
  }

  std::string parameters(const Region& region) {
    std::string out = "(";
    for (size_t i = 0; i < region.parameters.size(); ++i) {
      const Value& p = *region.parameters[i];
      out += (i > 0 ? ", " : "") + define(p) + ": " + to_string(p.type);
    }
    return out + ")";
  }

  void body(const Region& region, std::string_view end) {
    out_ += " {\n";
    indent_ += 2;
    for (const auto& n : region.nodes) node(*n);
    out_.append(indent_, ' ');
    out_ += std::string(end) + (region.yields.empty() ? "" : " ") + uses(region.yields) + "\n";
    indent_ -= 2;
    out_.append(indent_, ' ');
    out_ += "}";
  }

  static std::string spell(const Attribute& attribute) {
    return std::visit(
        [](const auto& value) -> std::string {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int64_t>)
            return fmt::format("{}", value);
          else if constexpr (std::is_same_v<T, float>)
            return spell_float(value);
          else if constexpr (std::is_same_v<T, std::string>)
            return quote(value);
          else if constexpr (std::is_same_v<T, Tensor>) {
            return fmt::format("{}{}{}", selkie::name(value.dtype()), selkie::to_string(value.dims()),
                               spell_elements(value));
          } else if constexpr (std::is_same_v<T, Type>)
            return to_string(value);
          else if constexpr (std::is_same_v<T, FunctionRef>)
            return "@" + spell_name(value.name);
          else if constexpr (std::is_same_v<T, SymbolicInts>) {
            std::string out;
            for (sym::Expr e : value.elements) out += (out.empty() ? "" : ", ") + sym::to_string(e);
            return value.scalar ? "sym(" + out + ")" : "sym[" + out + "]";
          } else {
            std::string out;
            for (const auto& item : value) out += (out.empty() ? "" : ", ") + spell(Attribute(item));
            return "[" + out + "]";
          }
        },
        attribute);
  }

  void node(const Node& n) {
    out_.append(indent_, ' ');
    // Results get their names after the operands are spelled and the regions printed, as in the scope they enter.
    std::string call = std::string(n.op->name) + "(" + uses(n.operands) + ")";
    if (!n.attrs.empty()) {
      std::string attrs;
      for (const auto& [key, value] : n.attrs)
        attrs += (attrs.empty() ? "" : ", ") + spell_name(key) + " = " + spell(value);
      call += " {" + attrs + "}";
    }
    if (!n.source.empty()) call += " from " + quote(n.source);
    bool typed = false;
    std::vector<Type> result_types;
    std::string left;
    for (const auto& r : n.results) {
      left += (left.empty() ? "" : ", ") + (r->name.empty() && r->type.is_unknown() ? std::string("_") : define(*r));
      result_types.push_back(r->type);
      typed = typed || !r->type.is_unknown();
    }
    out_ += left + (left.empty() ? "" : " = ") + call;
    for (size_t i = 0; i < n.regions.size(); ++i) {
      const auto& defs = n.op->regions;
      out_ += " " + std::string(defs.empty() ? "region" : defs[std::min(i, defs.size() - 1)].name);
      out_ += parameters(*n.regions[i]);
      body(*n.regions[i], "yield");
    }
    if (typed) out_ += " : " + types(result_types);
    out_ += "\n";
  }

  std::string out_;
  size_t indent_ = 0;
  std::set<std::string> taken_;
  std::unordered_map<const Value*, std::string> names_;
};

}  // namespace

std::string print(const Function& function) {
  Printer printer;
  printer.function(function);
  return printer.take();
}

std::string print(const Module& module) {
  Printer header;
  for (const DataType& type : module.data_types) header.data_type(type);
  for (const auto& constant : module.constants()) header.constant(*constant);
  std::string out = header.take();
  for (const auto& function : module.functions()) out += (out.empty() ? "" : "\n") + print(*function);
  return out;
}

}  // namespace selkie::ir
