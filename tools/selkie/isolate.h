// Runs jobs in child processes, so that a crash or a hang of one ends only that one.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace selkie::cli {

// What a job said, or how its process ended if it said nothing.
struct Outcome {
  bool finished = false;  // the job returned; `text` is what it returned
  std::string text;       // else: "crashed with signal 11", "timed out after 60 s", …
};

// Calls job(i) for i in 0…count−1, `jobs` at a time, each in a process of its own, and report(i, outcome) in this one
// as each ends. Jobs return a text of any length.
void run_isolated(size_t count, int jobs, double timeout_s, const std::function<std::string(size_t)>& job,
                  const std::function<void(size_t, const Outcome&)>& report);

}  // namespace selkie::cli
