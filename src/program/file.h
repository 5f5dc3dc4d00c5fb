// A compiled model as a file (.selkie): a header, and three sections that it names with their checksums. The file is
// mapped, and constants are seen in the mapping.
#pragma once

#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "program/image.h"
#include "program/program.h"

namespace selkie::program {

// Which node of the host module a host call runs, and what its regions use from outside.
struct HostEntry {
  uint32_t node = 0;
  std::vector<std::string> captured;  // names of values, in the order of the call's operands
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct Artifact {
  Program program;
  std::vector<Program> functions;
  Image image;
  std::string layout;     // of packed weights: the library kernels that read them
  std::string signature;  // text IR: @main as the model declares it, without its body
  uint64_t nodes = 0;     // of the model after the passes
  // For the embedder that runs host calls; empty if there are none.
  std::string host_module;  // text IR, over the constants below
  std::vector<HostEntry> host_entries;
  std::vector<NamedTensor> host_constants;
};

// Whether a file that can be read begins as a compiled model does.
bool is_artifact(const std::string& path);

// The file appears whole or not at all. Returns its size.
uint64_t write_artifact(const Artifact& artifact, const std::string& path);

// A user error says what is wrong with a file that is none, of another version, cut off or damaged; the program is
// verified. The elements of constants are not looked at: they are read from the disk when they are used first.
Artifact read_artifact(const std::string& path);

// Reads all elements, too: fails where they are not what was written.
void check_weights(const std::string& path);

}  // namespace selkie::program
