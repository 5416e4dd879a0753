// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/model_version.h"

#include <string_view>

#include "rewire/executable_format/executable.h"
#include "rewire/serve/models/open_onnx.h"

namespace rewire::serve {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Status CheckBatching(const ModelSignature& signature, const BatchSettings& batching) {
  if (batching.max_batch_size == 0) return {};
  if (!signature.batch_symbol) {
    return Fail(
        StatusCode::kInvalidArgument,
        "max_batch_size is {}, but requests cannot be put together: that takes one symbolic dimension, "
        "such as N, that is the first of every input and output",
        batching.max_batch_size);
  }
  if (signature.most_rows != kNoLimit && batching.max_batch_size > signature.most_rows) {
    return Fail(StatusCode::kInvalidArgument,
                "max_batch_size is {}, and the model takes at most {} in dimension '{}'",
                batching.max_batch_size, signature.most_rows, signature.symbols[*signature.batch_symbol]);
  }
  return {};
}

}  // namespace

Result<ParameterSet> ModelLoader::Parameters(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = parameters_.find(path); found != parameters_.end()) return found->second;
  Result<ParameterSet> set = ParameterSet::Open(path);
  if (set) parameters_.emplace(path, *set);
  return set;
}

std::shared_ptr<ThreadPool> ModelLoader::Threads(std::int32_t count) {
  if (count <= 1) return nullptr;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<ThreadPool> pool = pools_[count].lock();
  if (pool == nullptr) {
    pool = ThreadPool::Make(count);
    pools_[count] = pool;
  }
  return pool;
}

Result<std::shared_ptr<const ModelVersion>> ModelLoader::Load(const std::string& name,
                                                              const VersionFile& file,
                                                              const ModelSettings& settings) {
  const bool onnx = EndsWith(file.path, ".onnx");
  const Result<Executable> executable = onnx ? OpenOnnx(file.path) : Executable::Open(file.path);
  if (!executable) return Forward(executable, file.path);
  LinkOptions link;
  link.init_sharing = ShareInitResults();
  link.log = log_;
  link.kernels = kernels_;
  link.threads = Threads(settings.threads);
  for (const std::string& path : settings.parameters) {
    Result<ParameterSet> set = Parameters(path);
    if (!set) return Forward(set);
    link.parameters.push_back(*std::move(set));
  }
  // A file of parameters may be that of several models.
  link.ignore_extra_parameters = true;
  Result<Program> program = Program::Link(*executable, std::move(link));
  if (!program) return Forward(program, file.path);
  Result<ModelSignature> signature = ReadSignature(*program);
  if (!signature) return Forward(signature, file.path);
  if (Status good = CheckBatching(*signature, settings.batching); !good) return Forward(good, file.path);
  Limits limits;
  if (settings.memory_bytes != 0) limits.bytes = settings.memory_bytes;
  if (settings.steps != 0) limits.steps = settings.steps;
  if (settings.depth != 0) limits.depth = settings.depth;
  return std::make_shared<const ModelVersion>(
      ModelVersion{name, std::to_string(file.version), onnx ? "rewire_onnx" : "rewire_rwx", settings,
                   *std::move(program), *std::move(signature), limits});
}

}  // namespace rewire::serve
