// Inputs and outputs of `selkie run`: .npy and .pb files, and generated tensors.
#pragma once

#include <random>
#include <string>

#include "base/host_value.h"
#include "ir/module.h"

namespace selkie::cli {

// What `--input NAME=SPEC` stands for: FILE.npy, FILE.pb, random:2x3, zeros:2x3, ones:2x3, or value:3 (also
// value:1,2,3).
HostValue make_input(const std::string& spec, const ir::Type& type, std::mt19937_64& random);

Tensor read_npy(const std::string& path);
std::string to_npy(const Tensor& tensor);
// Whether .npy has a type for these elements.
bool has_npy_type(DType dtype);

// Random elements in the usual range of a dtype: normal for floats, 0…9 for integers.
Tensor random_tensor(DType dtype, Dims dims, std::mt19937_64& random);

// A value for each input of a model from "NAME=VALUE" texts; absent where none is given.
std::vector<HostValue> make_inputs(const std::vector<std::string>& specifications, const ir::Function& main,
                                   uint64_t seed);

}  // namespace selkie::cli
