// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/models/model_version.h"

#include <sys/mman.h>

#include <algorithm>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/base/mapped_file.h"
#include "rewire/base/near_names.h"
#include "rewire/executable_format/executable.h"
#include "rewire/serve/models/open_onnx.h"
#include "rewire/serve/sandbox/sandboxed_model.h"

namespace rewire::serve {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

Status CheckBatching(const ModelSignature& signature, const std::vector<StatePair>& state,
                     const BatchSettings& batching) {
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
  for (const StatePair& pair : state) {
    const ModelOutput& output = signature.outputs[pair.output];
    const ModelInput& input = signature.inputs[pair.input];
    if (output.dims == input.dims) continue;
    return Fail(StatusCode::kInvalidArgument,
                "max_batch_size is {}, but steps of sequences cannot be put together: output '{}' has other "
                "dimensions "
                "than input '{}', so the state does not keep its shape",
                batching.max_batch_size, output.name, input.name);
  }
  return {};
}

template <typename Tensors>
Result<std::uint32_t> FindTensor(std::string_view what, const std::string& name, const Tensors& tensors) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
    names.push_back(tensors[i].name);
  }
  return Fail(StatusCode::kInvalidArgument, "sequence.state: the model has no {} '{}'{}", what, name,
              KnownNames(std::string(what) + "s", name, names));
}

// The pairs of names for a pattern such as "present.*" = "past.*", of all outputs that it fits.
std::map<std::string, std::string> NamesOf(const ModelSignature& signature,
                                           const std::map<std::string, std::string>& patterns) {
  std::map<std::string, std::string> names;
  for (const auto& [output, input] : patterns) {
    const std::size_t star = output.find('*'), place = input.find('*');
    bool fits = false;
    for (const ModelOutput& one : signature.outputs) {
      if (star == std::string::npos || place == std::string::npos) break;
      const std::string_view name = one.name, end = std::string_view(output).substr(star + 1);
      if (name.size() + 1 < output.size() || name.substr(0, star) != output.substr(0, star) ||
          !EndsWith(name, end))
        continue;
      std::string with = input;
      with.replace(place, 1, name.substr(star, name.size() - star - end.size()));
      names[one.name] = std::move(with);
      fits = true;
    }
    if (!fits) names[output] = input;
  }
  return names;
}

Result<std::vector<StatePair>> FindState(const ModelSignature& signature, const SequenceSettings& settings) {
  std::vector<StatePair> state;
  for (const auto& [output_name, input_name] : NamesOf(signature, settings.state)) {
    const auto output = FindTensor("output", output_name, signature.outputs);
    if (!output) return Forward(output);
    const auto input = FindTensor("input", input_name, signature.inputs);
    if (!input) return Forward(input);
    const ModelOutput& from = signature.outputs[*output];
    const ModelInput& to = signature.inputs[*input];
    if (from.dtype != to.dtype || from.dims.size() != to.dims.size()) {
      return Fail(
          StatusCode::kInvalidArgument,
          "sequence.state: output '{}' is {} of {} dimensions, and input '{}' {} of {}; equal ones are "
          "expected",
          output_name, DTypeName(from.dtype), from.dims.size(), input_name, DTypeName(to.dtype),
          to.dims.size());
    }
    for (const StatePair& other : state) {
      if (other.input == *input) {
        return Fail(StatusCode::kInvalidArgument, "sequence.state: input '{}' is that of two outputs",
                    input_name);
      }
    }
    state.push_back({*output, *input});
  }
  for (const auto& [name, size] : settings.sizes) {
    const auto& symbols = signature.symbols;
    if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) continue;
    return Fail(StatusCode::kInvalidArgument, "sequence.sizes: the model has no dimension '{}'{}", name,
                KnownNames("dimensions", name, symbols));
  }
  return state;
}

// The program that stands for an executable in a sandbox, and its kernel.
Result<Executable> Sandboxed(const std::string& path, bool is_onnx, const ModelSettings& settings,
                             const Limits& limits, KernelSet* kernels) {
  Result<SandboxedModel> model = OpenSandboxed(
      path, {is_onnx, settings.parameters, settings.kernels, settings.sandbox, limits, settings.threads});
  if (!model) return Forward(model);
  *kernels = std::move(model->kernels);
  return std::move(model->executable);
}

Result<Executable> Opened(const std::string& path, SharedBytes* file) {
  Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  *file = *bytes;
  return Executable::FromBytes(*bytes);
}

// A model that nobody asks takes no memory for pages of its file, which come back at its first run. Of a
// thousand small models these are as many pages as all else. Those of large files are mostly weights, which a
// first run would have to wait for.
void ForgetFile(const SharedBytes& file) {
  constexpr std::size_t kSmallFile = 64 << 10;
  if (!file.mapped || file.view.size() > kSmallFile) return;
  madvise(const_cast<std::byte*>(file.view.data()), file.view.size(), MADV_DONTNEED);
}

}  // namespace

Result<ParameterSet> ModelLoader::Parameters(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = parameters_.find(path); found != parameters_.end()) return found->second;
  Result<ParameterSet> set = ParameterSet::Open(path);
  if (set) parameters_.emplace(path, *set);
  return set;
}

Result<Executable> ModelLoader::Compiled(const std::string& path, const std::vector<std::string>& kernels,
                                         std::string* origin, std::string* cache_problem) const {
  Result<CompiledOnnx> compiled = OpenOnnx(path, kernels, cache_);
  if (!compiled) return Forward(compiled);
  *origin = std::move(compiled->origin);
  *cache_problem = std::move(compiled->cache_problem);
  return std::move(compiled->executable);
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
  Limits limits;
  if (settings.memory_bytes != 0) limits.bytes = settings.memory_bytes;
  if (settings.steps != 0) limits.steps = settings.steps;
  if (settings.depth != 0) limits.depth = settings.depth;
  LinkOptions link;
  link.init_sharing = ShareInitResults();
  link.log = log_;
  link.kernels = kernels_;
  SharedBytes file_bytes;
  std::string origin, cache_problem;
  const Result<Executable> executable =
      settings.sandbox.enabled ? Sandboxed(file.path, onnx, settings, limits, &link.kernels)
      : onnx                   ? Compiled(file.path, settings.kernels, &origin, &cache_problem)
                               : Opened(file.path, &file_bytes);
  if (!executable) return Forward(executable, file.path);
  link.threads = Threads(settings.threads);
  // The process of a sandbox has them itself.
  if (!settings.sandbox.enabled) {
    for (const std::string& library : settings.kernels) {
      if (Status added = link.kernels.AddLibrary(library); !added) return Forward(added, file.path);
    }
    for (const std::string& path : settings.parameters) {
      Result<ParameterSet> set = Parameters(path);
      if (!set) return Forward(set);
      link.parameters.push_back(*std::move(set));
    }
  }
  // A file of parameters may be that of several models.
  link.ignore_extra_parameters = true;
  Result<Program> program = Program::Link(*executable, std::move(link));
  if (!program) return Forward(program, file.path);
  ForgetFile(file_bytes);
  Result<ModelSignature> signature = ReadSignature(*program, settings.generator.total);
  if (!signature) return Forward(signature, file.path);
  Result<std::vector<StatePair>> state = FindState(*signature, settings.sequence);
  if (!state) return Forward(state, file.path);
  if (Status good = CheckBatching(*signature, *state, settings.batching); !good)
    return Forward(good, file.path);
  std::unique_ptr<Generator> generator;
  if (!settings.generator.tokens.empty()) {
    std::vector<std::string> inputs;
    for (const StatePair& pair : *state) inputs.push_back(signature->inputs[pair.input].name);
    Result<Generator> read =
        ReadGenerator(settings.generator, inputs, DescribeInputs(*signature), DescribeOutputs(*signature));
    if (!read) return Forward(read, file.path);
    generator = std::make_unique<Generator>(*std::move(read));
    generator->model = name;
    generator->version = std::to_string(file.version);
    generator->timeout_us = settings.timeout_us;
  }
  std::optional<CacheLayout> cache;
  if (generator != nullptr && !settings.generator.cache_dimension.empty()) {
    Result<CacheLayout> layout = ReadCacheLayout(settings.generator.cache_dimension, *signature, *state);
    if (!layout) return Forward(layout, file.path);
    cache = *std::move(layout);
  }
  return std::make_shared<const ModelVersion>(
      ModelVersion{name, std::to_string(file.version), onnx ? "rewire_onnx" : "rewire_rwx", settings,
                   *std::move(program), *std::move(signature), *std::move(state), limits,
                   std::move(generator), std::move(cache), std::move(origin), std::move(cache_problem)});
}

}  // namespace rewire::serve
