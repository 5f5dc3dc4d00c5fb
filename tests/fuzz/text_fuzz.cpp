// libFuzzer target: any text either parses or gives an Error, and what verifies prints to a text that reads back equal.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace selkie;
  MemoryBudget::Scope scope(std::make_shared<MemoryBudget>(int64_t{1} << 28));
  std::string text;
  try {
    auto module = ir::parse({reinterpret_cast<const char*>(data), size}, ops::op_set());
    ir::verify(*module);
    text = ir::print(*module);
  } catch (const Error&) {
    return 0;
  }
  if (ir::print(*ir::parse(text, ops::op_set())) != text) std::abort();
  return 0;
}
