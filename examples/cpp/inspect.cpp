// What a model takes, gives and costs, without running it.
#include <cstdio>
#include <cstring>
#include <string>

#include "selkie/selkie.hpp"

namespace {

void print(const char* what, const std::vector<selkie::Port>& ports) {
  for (const selkie::Port& port : ports) std::printf("%s %s: %s\n", what, port.name.c_str(), port.type.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: inspect MODEL [SIZE=NUMBER…]\n");
    return 2;
  }
  try {
    std::vector<selkie::Size> sizes;
    for (int i = 2; i < argc; ++i) {
      const char* equals = std::strchr(argv[i], '=');
      if (equals == nullptr) throw std::invalid_argument(std::string("no size: ") + argv[i]);
      sizes.push_back({std::string(argv[i], static_cast<std::size_t>(equals - argv[i])), std::stoll(equals + 1)});
    }
    auto log = [](int level, std::string_view line) {
      if (level >= SELKIE_LOG_WARNING) std::printf("note: %.*s\n", static_cast<int>(line.size()), line.data());
    };
    selkie::Model model = selkie::Model::compile(argv[1], {.log = log});
    print("takes", model.inputs());
    print("gives", model.outputs());
    std::string plan = model.plan(sizes);
    std::printf("%s", plan.substr(0, plan.find("\n", plan.find("arena")) + 1).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "inspect: %s\n", error.what());
    return 1;
  }
}
