#include "contexts.h"

#include <atomic>

namespace selkie::python {
namespace {

std::atomic<int> current_generation = 0;  // how many forks lie between this process and the first

}  // namespace

void Contexts::begin_child() { ++current_generation; }

Contexts::~Contexts() { abandon_if_forked(); }

void Contexts::abandon_if_forked() {
  int generation = current_generation.load(std::memory_order_relaxed);
  if (generation_ == generation) return;
  generation_ = generation;
  made_ = 0;
  for (auto& context : free_) static_cast<void>(context.release());
  free_.clear();
}

std::unique_ptr<runtime::Context> Contexts::take() {
  {
    std::unique_lock lock(mutex_);
    abandon_if_forked();
    freed_.wait(lock, [&] { return !free_.empty() || made_ < most_; });
    if (!free_.empty()) {
      std::unique_ptr<runtime::Context> context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
    ++made_;
  }
  try {
    return std::make_unique<runtime::Context>(executable_, threads_);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

void Contexts::give_back(std::unique_ptr<runtime::Context> context) {
  {
    std::lock_guard lock(mutex_);
    if (context)
      free_.push_back(std::move(context));
    else
      --made_;
  }
  freed_.notify_one();
}

}  // namespace selkie::python
