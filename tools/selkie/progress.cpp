#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace selkie::cli {
namespace {

// Too early, an estimate would be that of the first run, which is slower than the others.
constexpr double least_share = 0.02;

std::string time_text(double seconds) {
  auto whole = static_cast<int64_t>(std::ceil(seconds));
  return whole < 120 ? fmt::format("{} s", whole) : fmt::format("{} min", (whole + 59) / 60);
}

}  // namespace

std::string progress_text(size_t step, size_t steps, const std::string& what, double share, double seconds) {
  constexpr size_t width = 24;
  share = std::clamp(share, 0.0, 1.0);
  auto full = static_cast<size_t>(share * width);
  std::string text =
      fmt::format("[{}{}] {} of {}", std::string(full, '#'), std::string(width - full, '.'), step, steps);
  if (!what.empty()) text += ", " + what;
  if (share >= least_share) text += fmt::format(", {} left", time_text(seconds / share * (1 - share)));
  return text;
}

ProgressBar::ProgressBar(size_t steps) : steps_(steps), visible_(steps > 0 && isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::show(size_t done, double part, const std::string& what) {
  if (!visible_) return;
  Clock::time_point now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now;
  double share = (static_cast<double>(done) + std::clamp(part, 0.0, 1.0)) / static_cast<double>(steps_);
  double seconds = std::chrono::duration<double>(now - start_).count();
  fmt::print(stderr, "\r{}\x1b[K", progress_text(std::min(done + 1, steps_), steps_, what, share, seconds));
  std::fflush(stderr);
}

}  // namespace selkie::cli
