// OpDef: everything Selkie knows about one operator, in one record. Nothing outside src/ops names an operator, except
// the passes that rewrite it.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "ir/attribute.h"

namespace selkie::ir {

class EvalContext;
class ForwardContext;
class UpgradeContext;
// Defined where their work is: RDP (backward, value), the kernel compiler (lower), differentiation (grad).
class BackwardContext;
class ValueContext;
class LowerContext;
class GradContext;
struct ControlForm;
struct Node;

// Why a hook is not there.
struct Absent {
  std::string_view reason;
};
constexpr Absent absent(std::string_view reason) { return {reason}; }

// A function of the record, or the reason why there is none. It has no default, so that a record that forgets one
// does not compile.
template <class Signature>
class Hook {
 public:
  Hook(Absent why) : reason_(why.reason) {}
  template <class F>
    requires std::is_invocable_v<F, typename std::function<Signature>::argument_type>
  Hook(F f) : function_(std::move(f)) {}

  explicit operator bool() const { return static_cast<bool>(function_); }
  std::string_view reason() const { return reason_; }
  decltype(auto) operator()(typename std::function<Signature>::argument_type context) const {
    return function_(context);
  }

 private:
  std::function<Signature> function_;
  std::string_view reason_;
};

// The dtypes that stand for one letter of an operator's type rule. Operands and results that share a name share the
// dtype at each node; without a name each has its own.
struct TypeVar {
  std::string_view name;
  DTypeSet dtypes;
};

enum class Arity : uint8_t { required, optional, variadic };  // variadic: zero or more, last in its list
enum class Container : uint8_t { tensor, seq, opt, map, any };

struct Operand {
  std::string_view name;
  TypeVar type;
  Arity arity = Arity::required;
  Container container = Container::tensor;
};
using Result = Operand;

// An attribute with its default; `required` ones have none, and an optional one may have none either.
struct AttrDef {
  std::string_view name;
  AttrKind kind;
  bool required = false;
  std::optional<Attribute> fallback = std::nullopt;
};
inline AttrDef int_attr(std::string_view name, int64_t fallback) { return {name, AttrKind::integer, false, fallback}; }
inline AttrDef float_attr(std::string_view name, float fallback) { return {name, AttrKind::real, false, fallback}; }
inline AttrDef string_attr(std::string_view name, std::string fallback) {
  return {name, AttrKind::text, false, std::move(fallback)};
}
inline AttrDef ints_attr(std::string_view name, std::vector<int64_t> fallback) {
  return {name, AttrKind::integers, false, std::move(fallback)};
}
inline AttrDef optional_attr(std::string_view name, AttrKind kind) { return {name, kind}; }
inline AttrDef required_attr(std::string_view name, AttrKind kind) { return {name, kind, true}; }

// A nested region. It takes `parameters` or one per operand of the node, and yields one value per result of the node
// plus `extra_yields`.
struct RegionDef {
  std::string_view name;
  std::string_view onnx = {};  // the ONNX attribute that holds the graph
  bool takes_operands = false;
  int extra_yields = 0;
  int parameters = 0;
  bool optional = false;  // a model may leave it out: then it yields its parameters
  bool variadic = false;  // any number of regions of this kind, whose parameters the operator itself checks
};

// How the output shape of an operator is determined (design §6), and by which operands' values.
enum class DynamismClass : uint8_t { isdo, isdos, isvdos, edo };
struct Dynamism {
  DynamismClass cls;
  std::vector<std::string_view> causes = {};  // names of operands whose *values* reach the output's shape
};
inline Dynamism isdo() { return {DynamismClass::isdo}; }
inline Dynamism isdos() { return {DynamismClass::isdos}; }
inline Dynamism isvdos(std::vector<std::string_view> causes) { return {DynamismClass::isvdos, std::move(causes)}; }
inline Dynamism edo(std::vector<std::string_view> causes) { return {DynamismClass::edo, std::move(causes)}; }
std::string_view name(DynamismClass cls);

// How output elements depend on input elements: what fusion asks.
enum class Mapping : uint8_t { one_to_one, one_to_many, many_to_many, reorganize, shuffle, opaque };
std::string_view name(Mapping mapping);

// Where an operator comes from in ONNX; no name: an operator of Selkie's own.
struct OnnxName {
  std::string_view domain;  // "" is ai.onnx
  std::string_view name;
  std::vector<int> versions = {};  // the opset versions in which ONNX changed it
};

// Brings a node of an opset older than `version` to the form of `version`.
struct Upgrade {
  int version;
  std::function<void(UpgradeContext&)> apply;
};

// A call in the text form and what it gives: types ("f32[2, 3]"), contents too ("f32[2]{4, 6}"), or "error: text" with
// a part of the message. Operands without contents are filled at random. Tests are generated from these.
struct Sample {
  std::string_view call;
  std::string_view expect;
};

struct OpDef {
  std::string_view name;  // in the text form
  OnnxName onnx;
  std::string_view doc;  // one sentence
  std::vector<Operand> operands;
  std::vector<Result> results;
  std::vector<AttrDef> attrs = {};
  std::vector<RegionDef> regions = {};
  Dynamism dynamism;
  Mapping mapping;
  bool deterministic = true;  // false: random numbers are part of the result
  Hook<std::vector<Type>(const ForwardContext&)> forward;
  Hook<void(BackwardContext&)> backward;
  Hook<void(ValueContext&)> value;
  Hook<void(EvalContext&)> eval;
  Hook<void(LowerContext&)> lower;
  Hook<void(GradContext&)> grad;
  // For operators whose regions are compiled: what is done with them (ir/control.h).
  ControlForm (*control)(const Node&) = nullptr;
  std::vector<Upgrade> upgrades = {};
  std::vector<Sample> samples;

  const AttrDef* find_attr(std::string_view name) const;
};

// The operators a module may use, found by name. `src/ops` makes it; parser and importer are given it.
class OpSet {
 public:
  explicit OpSet(std::vector<const OpDef*> ops);
  const OpDef* find(std::string_view name) const;
  const OpDef* find_onnx(std::string_view domain, std::string_view name) const;
  const std::vector<const OpDef*>& all() const { return ops_; }  // sorted by name

 private:
  std::vector<const OpDef*> ops_;
  std::vector<const OpDef*> by_onnx_name_;
};

}  // namespace selkie::ir
