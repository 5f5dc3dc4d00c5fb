// Shapes through regions: how the arms of a branch are joined, and how a loop's state is followed from trip to trip.
#pragma once

#include "ops/support/record.h"

namespace selkie::ops {

// What holds for result `result` whichever of two regions gave it. Dims that differ become a symbol between the two.
ir::Known join_arms(const ForwardContext& c, size_t result, const ir::Known& then_value, const ir::Known& else_value);

// The same where only region `region` can be completed.
ir::Known leave_arm(const ForwardContext& c, size_t result, ir::Known value, size_t region);

// A loop over region 0: parameters are `leading`, the state, `trailing`; yields are `skipped` others, the state, and
// outputs that are stacked over the trips.
struct LoopForm {
  std::vector<ir::Known> leading;
  std::vector<ir::Known> state;
  std::vector<ir::Known> trailing;
  size_t skipped = 0;
  sym::Expr trips;
};

struct LoopShapes {
  std::vector<ir::Known> state;    // after the last trip
  std::vector<ir::Type> outputs;   // of one trip; no dims where they differ from trip to trip
  std::vector<ir::Known> skipped;  // of one trip
  bool runs = true;                // false: the body cannot be completed, so that there are no trips
};

// Follows the state to a fixpoint: a dim that stays is kept, one that grows by the same amount each trip becomes
// d + amount·i, another one a symbol.
LoopShapes follow_loop(const ForwardContext& c, const LoopForm& form);

// The type of an output of one trip, stacked over the trips.
Type stacked(const ForwardContext& c, size_t result, const Type& one, sym::Expr trips, int64_t axis);

// Before each trip, counted from 0: fails where the limit of a loop is reached.
void check_trip(EvalContext& e, int64_t trip);

// The output of a loop without trips: no slices along `axis`, else as the body would have given it.
Tensor empty_output(const ir::EmptyResult& inferred, const Type& declared, int64_t axis);

}  // namespace selkie::ops
