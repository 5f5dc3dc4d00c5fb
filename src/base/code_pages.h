// Memory that holds the program's own code. Compiling touches ten times as much of it as running, most of it once.
#pragma once

#include <cstddef>
#include <vector>

namespace selkie {

// Pages of code and constants of the program, or of the library that Selkie is part of, which came into memory since
// this was made. They can be given back: they are as their file has them, and come again when they are needed. Those
// that were there before stay.
class CodePages {
 public:
  CodePages();
  void give_back_new_ones() const;

 private:
  struct Segment {
    std::byte* begin;
    std::vector<bool> before;  // of its pages
  };
  std::vector<Segment> segments_;
};

// How many pages of the program's code and constants are in memory; 0 where the system does not tell.
size_t code_pages_in_memory();

}  // namespace selkie
