// A bar that tells how far a long command is and how long it will take, for people who watch a terminal.
#pragma once

#include <chrono>
#include <string>

namespace selkie::cli {

// Written to standard error, and only if that is a terminal; the line is cleared when the bar goes.
class ProgressBar {
 public:
  explicit ProgressBar(size_t steps);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // So many steps are done, and a part of the next, which `what` names. Draws a few times a second at most.
  void show(size_t done, double part, const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;

  size_t steps_;
  bool visible_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = {};
};

// "[#####.....] 3 of 7, S=128, 12 s left": `share` of the work took `seconds`.
std::string progress_text(size_t step, size_t steps, const std::string& what, double share, double seconds);

}  // namespace selkie::cli
