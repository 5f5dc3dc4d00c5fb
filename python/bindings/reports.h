// What `selkie explain` and `selkie plan` say, of a model that Python holds.
#pragma once

#include "driver/versions.h"
#include "source.h"

namespace selkie::python {

// Shapes, classes and what the model compiles to: (text, JSON).
nanobind::tuple explain(const Source& source, const driver::Sizes& sizes);
// How the dims of one node, or of the node that makes a value, came about.
std::string explain_node(const Source& source, const std::string& node);
// A page with the graph.
std::string explain_page(const Source& source, const std::string& title);
// Memory at these sizes: (text, JSON, SVG).
nanobind::tuple plan(const Source& source, const driver::Sizes& sizes, const std::string& title);

}  // namespace selkie::python
