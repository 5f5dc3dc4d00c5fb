// Runs of compiled models on inputs that may be anything.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "driver/build.h"

namespace selkie::api {

// What a model declares of its inputs, and the check of it. May be used by several threads.
//
// The program itself holds dtypes, ranks and dims against what is declared; facts it relies on. Only if something does
// not fit are the inputs looked at one by one, for the message.
class DeclaredInputs {
 public:
  explicit DeclaredInputs(std::shared_ptr<const ir::Module> declared);

  // What the program does not check: facts about sizes, and structures. Fails in the phase of the input.
  void check_before_run(std::span<const HostValue> inputs) const;
  // With the text that the command line has.
  void check(std::span<const HostValue> inputs) const;

 private:
  // A symbol of the inputs' dims, and a place that says what it is.
  struct Place {
    std::string symbol;
    size_t input;
    size_t axis;
  };
  bool satisfy_facts(std::span<const HostValue> inputs) const;

  std::shared_ptr<const ir::Module> declared_;
  std::vector<Place> places_;
  bool has_facts_ = false;
  bool has_structures_ = false;  // which only `check` looks into
  mutable std::mutex checking_;  // symbols of the declared types are not made by two threads at a time
};

// Fails in the phase of the input, or of the run.
std::vector<HostValue> run(runtime::Context& context, const DeclaredInputs& declared,
                           std::span<const HostValue> inputs);

}  // namespace selkie::api
