// Threads that share the tasks of one kernel at a time, each with scratch memory of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/memory.h"

namespace selkie::runtime {

// Memory in large pages that is used again and again, and grows.
class alignas(64) Scratch {
 public:
  // Undefined; aligned to a cache line.
  std::byte* provide(size_t bytes);

 private:
  Reserve memory_;
  size_t used_ = 0;
};

class Workers {
 public:
  // The caller is one of the threads: with one, everything runs on the caller's.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int threads() const { return static_cast<int>(scratch_.size()); }

  // body(begin, end, scratch) for parts of 0 … tasks - 1, until all are done: on the caller's thread and on those
  // others that come in time. One that the system does not let run, since something else has its core, is not waited
  // for. Each thread begins with a share of its own, the same one in each call with as many tasks, so that what they
  // read and write is found in its cache; then it helps others. The scratch memory is aligned to a cache line. `body`
  // does not throw.
  template <class Body>
  void run(int64_t tasks, size_t scratch_bytes, const Body& body) {
    Job job{.call = [](const void* what, int64_t begin, int64_t end,
                       std::byte* scratch) { (*static_cast<const Body*>(what))(begin, end, scratch); },
            .body = &body,
            .tasks = tasks};
    run(job, scratch_bytes);
  }

 private:
  struct Job {
    void (*call)(const void* body, int64_t begin, int64_t end, std::byte* scratch) = nullptr;
    const void* body = nullptr;
    int64_t tasks = 0;
  };
  void run(const Job& job, size_t scratch_bytes);
  void work(size_t thread);
  void take_tasks(size_t thread);
  void take_share(size_t share, std::byte* scratch);
  bool enter();
  void leave();
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};  // task
  };
  int64_t end_of_share(size_t share) const;

  std::vector<Scratch> scratch_;  // of each thread; the caller's is the first
  std::vector<Share> shares_;
  Job job_;
  size_t scratch_bytes_ = 0;
  std::atomic<int> caller_processor_{-1};
  alignas(64) std::atomic<uint32_t> job_number_{0};  // counts up when a job begins
  // How many other threads are at the job; with this bit none comes in any more.
  static constexpr uint32_t closed = uint32_t{1} << 31;
  alignas(64) std::atomic<uint32_t> inside_{closed};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace selkie::runtime
