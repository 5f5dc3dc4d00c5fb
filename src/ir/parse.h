// Text to tensor IR.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/module.h"

namespace selkie::ir {

// Parses a module over the operators of `ops`. `file` is what messages call the text. Throws Error with
// file:line:column. The result is well formed, but not verified. It is added to what `into` holds, if that is given:
// the text may use its constants.
std::unique_ptr<Module> parse(std::string_view text, const OpSet& ops, const std::string& file = "text",
                              std::unique_ptr<Module> into = nullptr);

// The module of a file (.sk), verified.
std::unique_ptr<Module> parse_file(const std::string& path, const OpSet& ops);

}  // namespace selkie::ir
