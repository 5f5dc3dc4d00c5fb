// Versions, errors and types of elements of the C API.
#include "api/entry.h"

#include <new>

#include "api/failure.h"
#include "base/dtype.h"

#define SELKIE_TEXT_OF(x) #x
#define SELKIE_VERSION_TEXT(major, minor, patch) \
  SELKIE_TEXT_OF(major) "." SELKIE_TEXT_OF(minor) "." SELKIE_TEXT_OF(patch)

namespace selkie::api {
namespace {

constexpr std::string_view header_version =
    SELKIE_VERSION_TEXT(SELKIE_VERSION_MAJOR, SELKIE_VERSION_MINOR, SELKIE_VERSION_PATCH);
static_assert(header_version == SELKIE_VERSION, "selkie.h and CMakeLists.txt must have the same version");

static_assert(SELKIE_F32 == static_cast<int>(DType::f32) && SELKIE_BF16 == static_cast<int>(DType::bf16) &&
              SELKIE_I2 == static_cast<int>(DType::i2));

thread_local std::string last_error;

selkie_status failed(selkie_status status, const char* text) noexcept {
  try {
    last_error = text;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return status;
}

selkie_status status_of(Phase phase) {
  switch (phase) {
    case Phase::model:
      return SELKIE_BAD_MODEL;
    case Phase::input:
      return SELKIE_BAD_INPUT;
    case Phase::run:
      return SELKIE_RUN_FAILED;
  }
  return SELKIE_INTERNAL;
}

}  // namespace

selkie_status status_of_thrown(selkie_status of_error) noexcept {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return failed(refusal.status, refusal.what());
  } catch (const Failure& failure) {
    return failed(status_of(failure.phase), failure.what());
  } catch (const LimitError& error) {
    return failed(SELKIE_LIMIT_REACHED, error.what());
  } catch (const Error& error) {
    return failed(of_error, error.what());
  } catch (const std::bad_alloc&) {
    return failed(SELKIE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(SELKIE_INTERNAL, error.what());
  } catch (...) {
    return failed(SELKIE_INTERNAL, "something was thrown that is no std::exception");
  }
}

}  // namespace selkie::api

using namespace selkie;

const char* selkie_version(void) { return SELKIE_VERSION; }

uint32_t selkie_version_number(void) {
  return SELKIE_VERSION_MAJOR * 10000 + SELKIE_VERSION_MINOR * 100 + SELKIE_VERSION_PATCH;
}

const char* selkie_status_name(selkie_status status) {
  constexpr const char* names[] = {
      "ok",         "invalid argument", "not found",        "bad model",     "bad input",
      "run failed", "limit reached",    "buffer too small", "out of memory", "internal error"};
  return status >= 0 && static_cast<size_t>(status) < std::size(names) ? names[status] : "unknown status";
}

const char* selkie_last_error(void) { return api::last_error.c_str(); }

const char* selkie_dtype_name(selkie_dtype dtype) {
  std::optional<DType> known = dtype_from_onnx(dtype);
  return known ? name(*known).data() : nullptr;  // of a literal, which ends with a zero
}

size_t selkie_dtype_size(selkie_dtype dtype) {
  std::optional<DType> known = dtype_from_onnx(dtype);
  return known && *known != DType::str ? element_size(*known) : 0;
}
