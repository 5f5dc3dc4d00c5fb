#include "runtime/workers.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/place.h"

namespace selkie::runtime {
namespace {

// A thread that waits looks so often before it goes to sleep: kernels follow each other within microseconds.
constexpr int looks = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Reached>
bool spin(Reached reached) {
  for (int i = 0; i < looks; ++i) {
    if (reached()) return true;
    pause();
  }
  return false;
}

}  // namespace

std::byte* Scratch::provide(size_t bytes) {
  if (used_ < bytes) {
    if (memory_.size() < bytes) memory_ = Reserve(bytes);
    CHECK(memory_.data() != nullptr, "no scratch memory of {} bytes", bytes);
    memory_.use(bytes);
    used_ = bytes;
  }
  return memory_.data();
}

Workers::Workers(int threads) : scratch_(static_cast<size_t>(std::max(threads, 1))), shares_(scratch_.size()) {
  for (size_t i = 1; i < scratch_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
}

Workers::~Workers() {
  stop_ = true;
  job_number_.fetch_add(1);
  job_number_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run(const Job& job, size_t scratch_bytes) {
  if (job.tasks == 0) return;
  if (threads_.empty() || job.tasks == 1) return job.call(job.body, 0, job.tasks, scratch_[0].provide(scratch_bytes));
  job_ = job;
  scratch_bytes_ = scratch_bytes;
  for (size_t i = 0; i < shares_.size(); ++i)
    shares_[i].next.store(i == 0 ? 0 : end_of_share(i - 1), std::memory_order_relaxed);
  caller_processor_.store(present_processor(), std::memory_order_relaxed);
  inside_.store(0, std::memory_order_release);
  job_number_.fetch_add(1, std::memory_order_release);
  job_number_.notify_all();
  take_tasks(0);
  inside_.fetch_or(closed, std::memory_order_acq_rel);
  if (spin([&] { return inside_.load(std::memory_order_acquire) == closed; })) return;
  for (uint32_t now = inside_.load(std::memory_order_acquire); now != closed;
       now = inside_.load(std::memory_order_acquire))
    inside_.wait(now, std::memory_order_acquire);
}

bool Workers::enter() {
  uint32_t now = inside_.load(std::memory_order_relaxed);
  while ((now & closed) == 0)
    if (inside_.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  return false;
}

void Workers::leave() {
  if (inside_.fetch_sub(1, std::memory_order_release) == (closed | 1)) inside_.notify_one();
}

int64_t Workers::end_of_share(size_t share) const {
  auto count = static_cast<int64_t>(shares_.size());
  auto next = static_cast<int64_t>(share) + 1;
  return job_.tasks / count * next + std::min(job_.tasks % count, next);
}

void Workers::take_tasks(size_t thread) {
  std::byte* own = scratch_[thread].provide(scratch_bytes_);
  for (size_t i = 0; i < shares_.size(); ++i) take_share((thread + i) % shares_.size(), own);
}

// Large parts first, smaller ones towards the end, so that no thread is left with much to do alone.
void Workers::take_share(size_t share, std::byte* scratch) {
  std::atomic<int64_t>& next = shares_[share].next;
  int64_t all = end_of_share(share);
  int64_t begin = next.load(std::memory_order_relaxed);
  while (begin < all) {
    int64_t end = begin + std::max<int64_t>((all - begin) / 2, 1);
    if (next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) {
      job_.call(job_.body, begin, end, scratch);
      begin = next.load(std::memory_order_relaxed);
    }
  }
}

void Workers::work(size_t thread) {
  uint32_t seen = 0;
  while (true) {
    auto has_begun = [&] { return job_number_.load(std::memory_order_acquire) != seen; };
    if (!spin(has_begun)) job_number_.wait(seen, std::memory_order_acquire);
    if (!has_begun()) continue;
    seen = job_number_.load(std::memory_order_acquire);
    if (stop_) return;
    // Beside the caller it would come when the job is done, and the system may leave it there for many jobs.
    leave_processor(caller_processor_.load(std::memory_order_relaxed));
    if (!enter()) continue;
    take_tasks(thread);
    leave();
  }
}

}  // namespace selkie::runtime
