// What `selkie explain` and `selkie plan` say, of a model that an embedder holds. All fail in the phase of the model.
#pragma once

#include <string>

#include "api/source.h"
#include "driver/versions.h"

namespace selkie::api {

// Shapes, classes and what the model compiles to.
struct Explanation {
  std::string text, json;
};
Explanation explain(const Source& source, const driver::Sizes& sizes);
// How the dims of one node, or of the node that makes a value, came about.
std::string explain_node(const Source& source, const std::string& node);
// A page with the graph.
std::string explain_page(const Source& source, const std::string& title);

// Memory at these sizes.
struct Plan {
  std::string text, json, svg;
};
Plan plan(const Source& source, const driver::Sizes& sizes, const std::string& title);

}  // namespace selkie::api
