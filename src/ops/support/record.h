// What every operator file includes: the record type, the names it is written with, and the usual reasons for hooks
// that later work brings.
#pragma once

#include "base/convert.h"
#include "ir/eval_context.h"
#include "ir/op_def.h"
#include "ir/shape_context.h"
#include "ops/support/shape.h"
#include "ops/support/transfer.h"
#include "ops/support/upgrades.h"

namespace selkie::ops {

using ir::absent;
using ir::Arity;
using ir::AttrKind;
using ir::BackwardContext;
using ir::Container;
using ir::edo;
using ir::EvalContext;
using ir::float_attr;
using ir::ForwardContext;
using ir::int_attr;
using ir::ints_attr;
using ir::isdo;
using ir::isdos;
using ir::isvdos;
using ir::Mapping;
using ir::OpDef;
using ir::optional_attr;
using ir::required_attr;
using ir::string_attr;
using ir::SymDims;
using ir::Type;
using ir::TypeVar;
using ir::UpgradeContext;
using ir::ValueContext;
using enum ir::Arity;

namespace later {
inline constexpr ir::Absent rdp = absent("comes with RDP: symbolic rank and dimension propagation");
inline constexpr ir::Absent cpu = absent("comes with the CPU backend");
inline constexpr ir::Absent training = absent("comes with differentiation");
}  // namespace later

// Type rules that many records share.
inline constexpr TypeVar any_tensor{"T", dtypes::all};
inline constexpr TypeVar mixed_tensors{"", dtypes::all};  // of different dtypes side by side
inline constexpr TypeVar float_tensor{"T", dtypes::floats};
inline constexpr TypeVar numeric_tensor{"T", dtypes::numeric};
inline constexpr TypeVar i64_tensor{"i64", dtypes::i64};
inline constexpr TypeVar bool_tensor{"bool", dtypes::boolean};
inline constexpr TypeVar index_tensor{"Tind", dtypes::indices};

}  // namespace selkie::ops
