// The contexts of one model: a run takes one for itself, so that runs of several threads do not meet.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/context.h"

namespace selkie::python {

class Contexts {
 public:
  // At most so many are made; a run that finds none free waits for one.
  Contexts(std::shared_ptr<const runtime::Executable> executable, int threads, size_t most)
      : executable_(std::move(executable)), threads_(threads), most_(most) {}
  ~Contexts();
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

  // Gives the context back when it goes.
  class Lease {
   public:
    explicit Lease(Contexts& contexts) : contexts_(contexts), context_(contexts.take()) {}
    ~Lease() { contexts_.give_back(std::move(context_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    runtime::Context& operator*() { return *context_; }
    runtime::Context* operator->() { return context_.get(); }

   private:
    Contexts& contexts_;
    std::unique_ptr<runtime::Context> context_;
  };

  // In the child of a fork: the threads of contexts that were made before are not there, so these are never used, nor
  // taken apart.
  static void begin_child();

 private:
  std::unique_ptr<runtime::Context> take();
  void give_back(std::unique_ptr<runtime::Context> context);
  void abandon_if_forked();

  std::shared_ptr<const runtime::Executable> executable_;
  int threads_;
  size_t most_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<std::unique_ptr<runtime::Context>> free_;
  size_t made_ = 0;
  int generation_ = 0;
};

}  // namespace selkie::python
