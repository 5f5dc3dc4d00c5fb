// Memory for results. A block that the caller lets go of serves a later run, so that no run pays for fresh pages.
#pragma once

#include <memory>

#include "base/tensor.h"

namespace selkie::runtime {

class Buffers {
 public:
  Buffers();
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Elements are undefined. The tensor may outlive this, and be let go of in any thread.
  Tensor tensor(DType dtype, Dims dims);
  // Blocks that no run needed for some time are freed.
  void begin_run();
  // Blocks that wait to be used again.
  int64_t kept_bytes() const;

 private:
  struct Pool;
  struct Lent;
  std::shared_ptr<Pool> pool_;
};

}  // namespace selkie::runtime
