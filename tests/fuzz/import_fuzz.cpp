// libFuzzer target: any bytes as an ONNX model either import or give an Error, and what imports survives its text form.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/parse.h"
#include "ir/print.h"
#include "onnx/import.h"
#include "ops/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace selkie;
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 28));
  std::string text;
  try {
    text = ir::print(*onnx::import_bytes({reinterpret_cast<const char*>(data), size}, ops::op_set(), "no such folder"));
  } catch (const Error&) {
    return 0;
  }
  // What was imported is valid, so from here on an error is a bug.
  if (ir::print(*ir::parse(text, ops::op_set())) != text) std::abort();
  return 0;
}
