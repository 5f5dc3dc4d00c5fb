// The words that the printer, the parser and the verifier of the text form share.
#pragma once

#include <string_view>

#include "kir/kernel.h"

namespace selkie::kir {

// Whether `name` may name a buffer or a local: an identifier that is no word of the text form.
bool is_name(std::string_view name);

std::string_view word(Statement::LoopKind kind);  // range, serial, vector
std::string_view word(Buffer::Role role);         // nothing for an input, out, scratch

}  // namespace selkie::kir
