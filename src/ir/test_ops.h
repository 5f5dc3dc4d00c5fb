// A few operators for tests of the IR alone, which knows no real ones.
#pragma once

#include "ir/op_def.h"

namespace selkie::ir::testing {

inline OpDef test_op(std::string_view name, std::vector<Operand> operands, std::vector<Result> results) {
  Absent none = absent("a test");
  return {.name = name,
          .onnx = {},
          .doc = "a test",
          .operands = std::move(operands),
          .results = std::move(results),
          .dynamism = isdos(),
          .mapping = Mapping::opaque,
          .forward = none,
          .backward = none,
          .value = none,
          .eval = none,
          .lower = none,
          .grad = none,
          .samples = {}};
}

// neg(x) -> y of one dtype; any(…) -> (…) with an attribute of every kind; nest(…) -> (…) with regions of any number;
// both(c) with two regions `then` and `else`.
inline const OpSet& test_ops() {
  static const std::vector<OpDef> records = [] {
    TypeVar t{"T", dtypes::floats};
    Operand many{"many", {"A", dtypes::all}, Arity::variadic, Container::any};
    OpDef neg = test_op("neg", {{"x", t}}, {{"y", t}});
    OpDef any = test_op("any", {many}, {many});
    for (auto [name, kind] : {std::pair("i", AttrKind::integer),
                              {"f", AttrKind::real},
                              {"s", AttrKind::text},
                              {"is", AttrKind::integers},
                              {"fs", AttrKind::reals},
                              {"ss", AttrKind::texts},
                              {"t", AttrKind::tensor},
                              {"ty", AttrKind::type},
                              {"fn", AttrKind::function}})
      any.attrs.push_back(optional_attr(name, kind));
    OpDef nest = test_op("nest", {many}, {many});
    nest.regions = {{.name = "region", .variadic = true}};
    OpDef both = test_op("both", {{"c", {"B", dtypes::boolean}}}, {many});
    both.regions = {{.name = "then"}, {.name = "else"}};
    return std::vector<OpDef>{any, both, neg, nest};
  }();
  static const OpSet set([] {
    std::vector<const OpDef*> pointers;
    for (const OpDef& op : records) pointers.push_back(&op);
    return pointers;
  }());
  return set;
}

}  // namespace selkie::ir::testing
