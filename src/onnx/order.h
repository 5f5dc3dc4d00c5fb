// The order in which the nodes of a graph can be imported.
#pragma once

#include <vector>

#include "onnx/proto.h"

namespace selkie::onnx {

// Indices of nodes such that producers come before consumers, otherwise as in the file. ONNX demands that order of the
// file, but not every exporter keeps it. A cycle is an error that names nodes on it.
std::vector<size_t> dependence_order(const std::vector<NodeProto>& nodes);

}  // namespace selkie::onnx
