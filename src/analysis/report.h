// What RDP found about a module, in the order of the program: what `selkie explain` shows.
#pragma once

#include <string>
#include <vector>

#include "analysis/rdp.h"

namespace selkie::analysis {

struct DimReport {
  std::string text;
  DimKind kind;
};

struct ValueReport {
  const ir::Value* value;
  std::string type;
  bool ranked = true;           // false: the rank is not known, which counts as one unknown or bounded dim
  std::string most_elements;    // not ranked: a bound of how many elements there are, where one is known
  std::vector<DimReport> dims;  // of a tensor
  std::string contents;         // "[N, 2*S]" where known, else empty
};

struct NodeReport {
  const ir::Node* node;
  std::string name;
  std::string region;  // "" in a function's body of @main, else "If_4.then" and so on
  ir::DynamismClass cls;
  std::vector<std::string_view> causes;
  Entry entry = Entry::possible;  // of the region that it is in
  std::vector<ValueReport> results;
};

struct Report {
  std::vector<NodeReport> nodes;
  std::vector<int64_t> classes;  // nodes by DynamismClass
  std::vector<int64_t> dims;     // dims by DimKind
  std::vector<std::string> checks;
  std::vector<std::string> region_checks;  // made where a region is entered, or after the node that gives the size
  std::vector<std::string> facts;          // of the body of @main
  std::vector<std::string> symbols;        // what the symbols of the run stand for, and their bounds
};

Report report(const Rdp& rdp);

std::string_view name(DimKind kind);
std::string summary_text(const Report& report, const Rdp& rdp);
std::string table_text(const Report& report);
// With further members of the object, as they are.
std::string json(const Report& report, const Rdp& rdp, std::string_view members = {});
// How each dim of a node's results came about: a short chain of nodes and rules.
std::string derivation(const Rdp& rdp, const NodeReport& node);
// That of every node of this name, or that makes a value of this name, with its class; empty if there is none.
std::string node_text(const Report& report, const Rdp& rdp, std::string_view name);

// Pictures: Graphviz, and one self-contained page.
std::string dot(const Report& report, const Rdp& rdp);
std::string html(const Report& report, const Rdp& rdp, const std::string& title);

}  // namespace selkie::analysis
