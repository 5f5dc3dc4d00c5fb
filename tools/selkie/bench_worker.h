// selkie bench --worker: a model that another process times, command by command.
#pragma once

#include <string>
#include <vector>

#include "driver/build.h"

namespace selkie::cli {

constexpr const char* worker_help =
    "Commands of --worker, one per line of standard input, each answered by one line of JSON; a command that fails is\n"
    "answered by {\"error\": TEXT}:\n"
    "  load              loads and compiles the model: {\"load_ms\", \"compile_ms\", \"code_is_cached\", \"kernels\", "
    "\"host_calls\"}\n"
    "  input NAME=VALUE  sets an input, as --input does: {}\n"
    "  run COUNT         runs the model COUNT times on these inputs: {\"ns\": [TIME, …]}\n"
    "  outputs FOLDER    writes the outputs of the last run as FOLDER/0.npy, FOLDER/1.npy, …: {\"outputs\": COUNT}\n"
    "  statistics        of the last run: {\"arena_bytes\", \"launches\", \"host_calls\"}\n"
    "The first line, before any command, is {}.";

// Serves commands until the end of standard input.
int bench_worker(const std::string& model, const std::vector<std::string>& dims, uint64_t seed, int threads,
                 const driver::Options& options);

}  // namespace selkie::cli
