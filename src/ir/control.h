// What operators do that are no kernels but instructions of their own: run their regions, or work on sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace selkie::ir {

struct ControlForm {
  enum class Kind : uint8_t {
    branch,   // operand 0 chooses region 0 or 1, whose yields are the results
    loop,     // region 0, trip by trip
    map,      // region 0 for each item of sequences; yields are items of the results
    item,     // result: the item of sequence 0 at position 1
    insert,   // result: sequence 0 with item 1 at position 2, or at its end
    length,   // result: how many items sequence 0 has
    replace,  // result: operand 0 with slices that the tuples of operand 1 address replaced by those of operand 2
    call,     // results: those of a function of the module, with the operands as its arguments
  };
  Kind kind;
  std::string callee = {};  // of a call

  // Of a loop. Parameters of the region: if it counts, the number of the trip and true; then the state, then a slice of
  // each input. Yields: if it counts, whether there is another trip; then the state, then a slice of each output.
  bool counts = false;
  std::optional<size_t> most_trips = {};  // operands: how many trips there are at most,
  std::optional<size_t> first_trip = {};  // and whether there is a first one
  size_t first_state = 0;                 // the operand that is the first state
  size_t states = 0;
  struct Slices {
    int64_t axis = 0;  // negative ones count from the last
    bool reversed = false;
  };
  std::vector<Slices> inputs = {};  // of the operands after the state
  std::vector<Slices> outputs = {};
};

}  // namespace selkie::ir
