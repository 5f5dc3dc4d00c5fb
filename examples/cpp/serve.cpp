// A small server's heart: several threads answer requests of any batch and length at the same time, with one model.
#include <atomic>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

#include "selkie/selkie.hpp"

namespace {

struct Request {
  std::int64_t texts, words;
  double sum = 0;  // of all probabilities: one for each text
  std::string error = {};
};

// Each thread has a context of its own: memory and buffers of one run at a time.
void serve(const selkie::Model& model, std::vector<Request>& requests, std::atomic<std::size_t>& next) {
  selkie::Context context(model, 1);
  for (std::size_t i = next++; i < requests.size(); i = next++) {
    Request& request = requests[i];
    std::vector<std::int64_t> ids(static_cast<std::size_t>(request.texts * request.words));
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    for (std::int64_t& id : ids) id = id * 7 % 64;
    try {
      std::vector<selkie::Value> outputs = context.run({selkie::Value::view(ids, {request.texts, request.words})});
      std::span<const float> probabilities = outputs[0].data<float>();
      request.sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
    } catch (const selkie::Error& error) {
      request.error = error.what();  // the context serves the next request as if nothing had happened
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: serve MODEL\n");
    return 2;
  }
  try {
    // What a request may cost is bounded.
    selkie::Model model = selkie::Model::compile(argv[1], {.memory_limit = 200'000, .time_limit = 10});
    std::vector<Request> requests;
    for (std::int64_t i = 0; i < 40; ++i) requests.push_back({.texts = i % 5, .words = 1 + i * 13 % 90});
    requests.push_back({.texts = 100, .words = 1000});
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 3; ++i) threads.emplace_back([&] { serve(model, requests, next); });
    }
    int right = 0;
    for (const Request& request : requests) {
      if (request.error.empty())
        right += std::abs(request.sum - static_cast<double>(request.texts)) < 1e-3;
      else
        std::printf("%d texts of %d words: %s\n", int(request.texts), int(request.words), request.error.c_str());
    }
    std::printf("%d of %zu requests answered\n", right, requests.size());
  } catch (const selkie::Error& error) {
    std::fprintf(stderr, "serve: %s\n", error.what());
    return 1;
  }
}
