// Which kernel each convolution of a program takes.
#pragma once

#include <vector>

#include "kernels/versions.h"
#include "program/program.h"

namespace selkie::runtime {

// Choices are kept: the sizes of a convolution are mostly those of its last call, and choosing takes as long as some
// small ones do.
class Versions {
 public:
  explicit Versions(const program::Program& program) : program_(program), chosen_(program.convolutions.size()) {}

  kernels::ConvolutionVersion of(const program::Convolution& c, const kernels::ConvolutionShape& shape);

 private:
  struct Chosen {
    bool is_known = false;
    kernels::ConvolutionShape shape;
    kernels::ConvolutionVersion version;
  };

  const program::Program& program_;
  std::vector<Chosen> chosen_;
};

}  // namespace selkie::runtime
