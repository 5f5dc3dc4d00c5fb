// ONNX tensors, sequences, optionals and types as Selkie's.
#pragma once

#include <string>

#include "base/host_value.h"
#include "ir/module.h"
#include "onnx/proto.h"

namespace selkie::onnx {

// Where the bytes of a model come from: the mapped file that views point into, if it is one, and the folder in which
// external data lies.
class DataSource {
 public:
  DataSource(std::shared_ptr<const MappedFile> file, std::string folder)
      : file_(std::move(file)), folder_(std::move(folder)) {}

  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  // Maps a file of external data, once. The name is relative to the model's folder and must stay inside it.
  std::shared_ptr<const MappedFile> external(Bytes location);

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string folder_;
  std::vector<std::pair<std::string, std::shared_ptr<const MappedFile>>> externals_;
};

// Fills a constant from a tensor; elements in raw form stay in their file.
void fill_constant(ir::Constant& constant, const TensorProto& proto, DataSource& source, sym::Context& symbols);
// The elements in memory.
Tensor to_tensor(const TensorProto& proto, DataSource& source);
Tensor to_tensor(const SparseTensorProto& proto, DataSource& source);

HostValue to_value(const SequenceProto& proto);
HostValue to_value(const OptionalProto& proto);

// A .pb file of test data, which is a message of the kind that `type` says (a tensor if it says nothing).
HostValue read_value_file(const std::string& path, const ir::Type& type);
std::string write_tensor(const Tensor& tensor, std::string_view name);

}  // namespace selkie::onnx
