// Dtypes of the kernel IR as LLVM types: how values are held in registers and in memory, and casts between them.
// Narrow floats are computed with as f32 and rounded after every operation; booleans are bits, stored as bytes 0 and 1.
#pragma once

#include "codegen/cpu/number.h"

namespace selkie::codegen::cpu {

inline bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
inline bool is_signed(DType dtype) { return is_signed_integer(dtype); }

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype);
llvm::Type* memory_type(llvm::LLVMContext& context, DType dtype);

Number from_memory(const Isa& isa, DType dtype, Number value);
Number to_memory(const Isa& isa, DType dtype, Number value);

// The nearest value of a narrow float dtype; other dtypes stay as they are.
Number round_to(const Isa& isa, DType dtype, Number value);

Number cast(const Isa& isa, DType from, DType to, Number value);
// The same bits under another dtype of equal size.
Number reinterpret(const Isa& isa, DType from, DType to, Number value);

}  // namespace selkie::codegen::cpu
