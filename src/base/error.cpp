#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace selkie {

void report_bug(const char* file, int line, const char* condition, const std::string& detail) {
  std::fflush(stdout);
  std::fprintf(stderr, "selkie: internal error at %s:%d: %s does not hold%s%s\n", file, line, condition,
               detail.empty() ? "" : ": ", detail.c_str());
  std::fprintf(stderr, "This is a bug in Selkie. Please report it with the model and the command that shows it.\n");
#ifdef SELKIE_ABORT_ON_BUG
  std::abort();
#else
  std::_Exit(bug_exit_code);
#endif
}

}  // namespace selkie
