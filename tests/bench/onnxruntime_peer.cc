// SPDX-License-Identifier: Apache-2.0
// Loads and runs a model with ONNX Runtime's C API, as a C++ program would: what bench/models.py measures
// beside vm-run. Inputs and outputs are bound to this program's memory, which is their fastest way.
//
//   bench-onnxruntime-peer LIBRARY MODEL CASE THREADS SECONDS all|none
//
// LIBRARY is libonnxruntime.so, CASE a folder that tests/models/reference.py wrote. "none" leaves a model as
// it is: for one that was optimised when it was saved. Runs for about SECONDS and prints one JSON object, in
// nanoseconds and bytes: load, first (the first run, which touches much of the memory for the first time),
// latency (median), runs, memory (peak resident size less what it was before the model was loaded).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/bench/onnxruntime_api.h"

namespace rewire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

std::int64_t Nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

// A line of /proc/self/status, in bytes.
std::uint64_t Resident(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + field);
}

HostTensor Read(const std::filesystem::path& path) {
  Result<HostTensor> tensor = ReadNpy(path.string());
  if (!tensor) throw std::runtime_error(tensor.error().message());
  return *std::move(tensor);
}

// ONNX's number of an element type.
int ElementType(DLDataType dtype) {
  constexpr struct {
    DLDataType dtype;
    int number;
  } kTypes[] = {{kFloat32, 1},
                {kUInt8, 2},
                {kInt8, 3},
                {MakeDType(kUInt, 16), 4},
                {MakeDType(kInt, 16), 5},
                {kInt32, 6},
                {kInt64, 7},
                {kBool8, 9},
                {kFloat16, 10},
                {kFloat64, 11},
                {MakeDType(kUInt, 32), 12},
                {MakeDType(kUInt, 64), 13}};
  for (const auto& type : kTypes) {
    if (dtype == type.dtype) return type.number;
  }
  throw std::runtime_error("an element type that ONNX has no number for");
}

// Binds tensors to memory of this program's, which stays as long as the process.
class Bindings {
 public:
  Bindings(const OnnxRuntime& runtime, OnnxRuntime::Session* session)
      : runtime_(runtime), info_(runtime.MakeHostMemoryInfo()), binding_(runtime.MakeBinding(session)) {}

  void AddInput(const std::string& name, const HostTensor& tensor) {
    runtime_.BindInput(binding_, name, Over(tensor));
  }
  // Memory like the expected value's.
  void AddOutput(const std::string& name, const HostTensor& expected) {
    HostTensor own = expected;
    std::byte* data = nullptr;
    own.bytes = AllocateBytes(expected.bytes.view.size(), &data);
    runtime_.BindOutput(binding_, name, Over(own));
  }
  const OnnxRuntime::Binding* get() const { return binding_; }

 private:
  OnnxRuntime::Tensor* Over(const HostTensor& tensor) {
    held_.push_back(tensor.bytes);
    auto* data = const_cast<std::byte*>(tensor.bytes.view.data());
    return runtime_.MakeTensor(info_, data, tensor.bytes.view.size(), tensor.shape.data(),
                               tensor.shape.size(), ElementType(tensor.dtype));
  }

  const OnnxRuntime& runtime_;
  OnnxRuntime::MemoryInfo* info_;
  OnnxRuntime::Binding* binding_;
  std::vector<SharedBytes> held_;
};

Json Measure(const OnnxRuntime& runtime, const std::string& model, const std::filesystem::path& folder,
             int threads, double seconds, int optimisation) {
  std::vector<std::pair<std::string, HostTensor>> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "in")) {
    inputs.emplace_back(entry.path().stem().string(), Read(entry.path()));
  }
  std::ifstream names_file(folder / "out" / "names.json");
  std::vector<std::pair<std::string, HostTensor>> outputs;
  for (const std::string& name : Json::parse(names_file).get<std::vector<std::string>>()) {
    outputs.emplace_back(name, Read(folder / "out" / (std::to_string(outputs.size()) + ".npy")));
  }
  const OnnxRuntime::Env* env = runtime.MakeEnv();
  const OnnxRuntime::Options* options = runtime.MakeOptions(threads, optimisation);

  const std::uint64_t before = Resident("VmRSS");
  const Clock::time_point start = Clock::now();
  OnnxRuntime::Session* session = runtime.MakeSession(env, model, options);
  const Clock::time_point loaded = Clock::now();
  Bindings bindings(runtime, session);
  for (const auto& [name, tensor] : inputs) bindings.AddInput(name, tensor);
  for (const auto& [name, tensor] : outputs) bindings.AddOutput(name, tensor);
  const Clock::time_point bound = Clock::now();
  runtime.Run(session, bindings.get());
  const Clock::time_point ran = Clock::now();
  for (int i = 0; i < 2; ++i) runtime.Run(session, bindings.get());
  const std::uint64_t memory = Resident("VmHWM") - before;  // without the list of times

  std::vector<std::int64_t> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (Clock::time_point now = Clock::now(); times.empty() || now < end;) {
    runtime.Run(session, bindings.get());
    const Clock::time_point after = Clock::now();
    times.push_back(Nanoseconds(after - now));
    now = after;
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return {{"load", Nanoseconds(loaded - start)},
          {"first", Nanoseconds(ran - bound)},
          {"latency", *middle},
          {"runs", times.size()},
          {"memory", memory}};
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) {
  using rewire::bench::OnnxRuntime;
  if (argc != 7) {
    std::cerr << "usage: bench-onnxruntime-peer LIBRARY MODEL CASE THREADS SECONDS all|none\n";
    return 2;
  }
  try {
    const OnnxRuntime runtime(argv[1]);
    const bool all = std::string(argv[6]) == "all";
    std::cout << rewire::bench::Measure(runtime, argv[2], argv[3], std::stoi(argv[4]), std::stod(argv[5]),
                                        all ? OnnxRuntime::kAllOptimisations : OnnxRuntime::kNoOptimisation)
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << "bench-onnxruntime-peer: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
