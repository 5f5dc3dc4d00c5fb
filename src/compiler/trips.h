// A loop while it is emitted. Private to the compiler.
#pragma once

#include "compiler/emitter.h"

namespace selkie::compiler {

struct Emitter::Trips {
  const Node& node;
  const ir::ControlForm& form;
  const ir::Region& body;
  Slot index = 0;                    // of the trip
  std::optional<Slot> most = {};     // trips
  std::optional<Slot> goes_on = {};  // whether there is another, as the body says
  Slot again = 0;                    // whether there is another
  size_t block = 0;
  std::vector<Register> states = {};
  struct Output {
    const Value* result;
    const Value* yield;
    ir::ControlForm::Slices slices;
    Register place;
    std::optional<uint32_t> growth = {};
    Register slice = program::no_register;  // of the place, if it is one piece of memory
  };
  std::vector<Output> outputs = {};

  const Value& parameter(size_t state) const { return *body.parameters[(form.counts ? 2 : 0) + state]; }
  const Value& yield(size_t state) const { return *body.yields[(form.counts ? 1 : 0) + state]; }
};

}  // namespace selkie::compiler
