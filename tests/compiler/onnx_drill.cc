// SPDX-License-Identifier: Apache-2.0
// onnx_drill --seed S --count N FOLDER...: models under the folders are changed, mutant by mutant, compiled
// under limits, and run under limits where they compile. Nothing may crash, hang, pass a limit, fail without
// words or make a program that does not verify. The same seed gives the same mutants.
//
// Mutant i of seed S is made with seed S + i alone: `--seed S+i --count 1` tries it again. Which one is being
// tried stands in the file of --trace, for those that end the process.
#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/tests/fuzz/onnx_mutator.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostFileBytes = 32 << 10;
constexpr std::int64_t kMostInput = 4096;  // elements
constexpr std::chrono::milliseconds kRunTime(100);
// Far beyond the time limits: what takes longer does not ask them. Sanitizers and other work slow all down.
constexpr std::chrono::seconds kHang(20);
constexpr unsigned kKilledAfter = 120;  // seconds; for what does not return at all

struct Options {
  std::uint32_t seed = 1;
  std::uint64_t count = 1000;
  std::string trace;
  std::vector<std::string> folders;
};

struct Counts {
  std::uint64_t refused = 0, compiled = 0, without_input = 0, ran = 0, failed = 0;
};

std::vector<onnx::ModelProto> ReadModels(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const bool model = entry.is_regular_file() && entry.path().extension() == ".onnx";
      if (model && entry.file_size() < kMostFileBytes) paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<onnx::ModelProto> models;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    onnx::ModelProto model;
    if (model.ParseFromString({std::istreambuf_iterator<char>(file), {}})) models.push_back(std::move(model));
  }
  return models;
}

compiler::CompileOptions TightOptions() {
  compiler::CompileOptions options;
  options.limits.work = 1 << 18;
  options.limits.fold_bytes = 32 << 20;
  options.limits.fold_node_time = std::chrono::milliseconds(50);
  options.limits.fold_time = std::chrono::milliseconds(200);
  options.check_passes = true;
  return options;
}

// Small numbers in a tensor of the input's type; nothing when that would be large, or the type is no
// tensor's.
std::optional<Value> MakeInput(const Type& type, std::mt19937* random) {
  const TypeNode& node = type.nodes[0];
  if (node.kind != TypeKind::kTensor || node.dtype.lanes != 1 || node.dtype.bits % 8 != 0)
    return std::nullopt;
  std::vector<std::int64_t> shape(node.rank == kUnknownRank ? (*random)() % 4 : node.dims.size());
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool open = node.rank == kUnknownRank || node.dims[i] < 0;
    shape[i] = open ? static_cast<std::int64_t>((*random)() % 5) : node.dims[i];
    if (shape[i] > kMostInput || (count *= std::max<std::int64_t>(shape[i], 1)) > kMostInput)
      return std::nullopt;
  }
  const std::size_t bytes = node.dtype.bits / 8U;
  std::vector<std::byte> data(static_cast<std::size_t>(count) * bytes + 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::int64_t>((*random)() % 7) - 2;
    std::byte* at = data.data() + static_cast<std::size_t>(i) * bytes;
    const float real = static_cast<float>(number) / 2;
    const double wide = real;
    const std::uint8_t truth = number > 0 ? 1 : 0;
    if (node.dtype == kFloat32) {
      std::memcpy(at, &real, sizeof(real));
    } else if (node.dtype == kFloat64) {
      std::memcpy(at, &wide, sizeof(wide));
    } else if (node.dtype == kBool8) {
      std::memcpy(at, &truth, sizeof(truth));
    } else {
      std::memcpy(at, &number, std::min(bytes, sizeof(number)));
    }
  }
  Result<Tensor> tensor = Tensor::CopyOf(TensorView(data.data(), node.dtype, shape));
  if (!tensor) return std::nullopt;
  return Value(*std::move(tensor));
}

// Empty, or what is wrong.
std::string Try(const onnx::ModelProto& model, std::mt19937* random, Counts* counts) {
  const auto bytes = std::make_shared<const std::string>(model.SerializeAsString());
  const SharedBytes shared{{reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes};
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled =
      compiler::CompileOnnx(shared, "", "mutant", TightOptions(), &unsupported);
  if (!compiled) {
    ++counts->refused;
    const bool internal = compiled.error().code() == StatusCode::kInternal;
    return compiled.error().message().empty() || internal ? "compiling: " + compiled.error().message() : "";
  }
  ++counts->compiled;
  const Result<Executable> executable = Executable::FromModule(std::move(compiled->module));
  if (!executable) return "verifying: " + executable.error().message();
  std::vector<Value> inputs;
  for (const NamedType& parameter : executable->module().functions[0].inputs) {
    std::optional<Value> input = MakeInput(parameter.type, random);
    if (!input) {
      ++counts->without_input;
      return "";
    }
    inputs.push_back(*std::move(input));
  }
  Limits limits;
  limits.steps = 100'000;
  limits.bytes = 64 << 20;
  const Result<Program> program = Program::Link(*executable);
  if (!program) return "linking: " + program.error().message();
  VirtualMachine vm(*program, limits);
  vm.SetDeadline(Clock::now() + kRunTime);
  const Result<Value> result = vm.TryInvoke("main", inputs);
  ++(result ? counts->ran : counts->failed);
  if (!result && result.error().message().empty()) return "running: a failure without words";
  if (vm.bytes_peak() > limits.bytes)
    return fmt::format("running: {} bytes, the limit is {}", vm.bytes_peak(), limits.bytes);
  return "";
}

int Drill(const Options& options) {
  const std::vector<onnx::ModelProto> models = ReadModels(options.folders);
  if (models.empty()) {
    fmt::print(stderr, "onnx_drill: no models in {}\n", fmt::join(options.folders, ", "));
    return 2;
  }
  google::protobuf::SetLogHandler(nullptr);  // it says on stderr what it could not parse
  KernelSet kept;                            // so that the library is not loaded for every mutant
  if (Status added = kept.AddLibrary("librewire_kernels_cpu.so"); !added) {
    fmt::print(stderr, "onnx_drill: {}\n", added.error().message());
    return 2;
  }
  Counts counts;
  Clock::duration longest{};
  int faults = 0;
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const auto seed = static_cast<std::uint32_t>(options.seed + i);
    if (!options.trace.empty()) std::ofstream(options.trace) << seed << "\n";
    std::mt19937 random(seed);
    onnx::ModelProto model = models[random() % models.size()];
    MutateModel(&model, seed);
    alarm(kKilledAfter);
    const auto start = Clock::now();
    std::string fault = Try(model, &random, &counts);
    const auto took = Clock::now() - start;
    longest = std::max(longest, took);
    if (fault.empty() && took > kHang) fault = "it took too long";
    if (fault.empty()) continue;
    fmt::print("seed {}: {}\n", seed, fault);
    ++faults;
  }
  alarm(0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{} mutants of {} models from seed {} on: {} refused, {} compiled; of these {} ran, {} failed, {} had "
      "no small input; longest {} ms, at most {} MiB in memory; {} faults\n",
      options.count, models.size(), options.seed, counts.refused, counts.compiled, counts.ran, counts.failed,
      counts.without_input, std::chrono::duration_cast<std::chrono::milliseconds>(longest).count(),
      usage.ru_maxrss / 1024, faults);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) {
  CLI::App app("Compiles and runs changed ONNX models", "onnx_drill");
  rewire::test::Options options;
  app.add_option("--seed", options.seed, "Of the first mutant");
  app.add_option("--count", options.count, "How many mutants");
  app.add_option("--trace", options.trace, "A file for the seed of the mutant that is being tried");
  app.add_option("folders", options.folders, "Where models (.onnx) are")->required();
  CLI11_PARSE(app, argc, argv);
  return rewire::test::Drill(options);
}
