// SPDX-License-Identifier: Apache-2.0
// Loads and runs a model with another runtime's C API, as a C++ program would: what bench/models.py measures
// beside vm-run. Inputs and outputs are bound to this program's memory, which is the peers' fastest way.
//
//   bench-peer onnxruntime|openvino LIBRARY MODEL CASE THREADS SECONDS SETTING
//
// LIBRARY is libonnxruntime.so or libopenvino_c.so, CASE a folder that tests/models/reference.py wrote.
// SETTING is one of peer.h. Runs for about SECONDS and prints one JSON object, in nanoseconds and bytes:
// load, first (the first run, which touches much of the memory for the first time), latency (median), runs,
// memory (peak resident size less what it was before the model was loaded), apart (the largest difference
// from the expected outputs, in parts of the largest value).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/bench/peer.h"

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

// Memory like the expected value's, for the peer to write to.
NamedTensors MakeOutputs(const NamedTensors& expected) {
  NamedTensors outputs = expected;
  for (auto& [name, tensor] : outputs) {
    std::byte* data = nullptr;
    tensor.bytes = AllocateBytes(tensor.bytes.view.size(), &data);
  }
  return outputs;
}

double Apart(const NamedTensors& outputs, const NamedTensors& expected) {
  double apart = 0;
  for (const auto& [name, tensor] : expected) {
    if (tensor.dtype != kFloat32) continue;
    const auto values = [](const HostTensor& of) {
      const auto* data = reinterpret_cast<const float*>(of.bytes.view.data());
      return std::vector<float>(data, data + of.bytes.view.size() / sizeof(float));
    };
    const std::vector<float> given = values(outputs.at(name)), wanted = values(tensor);
    double most = 0, difference = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      most = std::max(most, std::fabs(double{wanted[i]}));
      difference = std::max(difference, std::fabs(double{given[i]} - double{wanted[i]}));
    }
    apart = std::max(apart, difference / (most > 0 ? most : 1));
  }
  return apart;
}

std::unique_ptr<Peer> Load(const std::string& name, const PeerSettings& settings,
                           const NamedTensors& inputs) {
  if (name == "onnxruntime") return LoadOnnxRuntime(settings);
  if (name == "openvino") return LoadOpenVino(settings, inputs);
  throw std::runtime_error("there is no peer '" + name + "', expected onnxruntime or openvino");
}

Json Measure(const std::string& name, const PeerSettings& settings, const std::filesystem::path& folder,
             double seconds) {
  NamedTensors inputs, expected;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "in"))
    inputs[entry.path().stem().string()] = Read(entry.path());
  std::ifstream names_file(folder / "out" / "names.json");
  for (const std::string& output : Json::parse(names_file).get<std::vector<std::string>>())
    expected[output] = Read(folder / "out" / (std::to_string(expected.size()) + ".npy"));
  const NamedTensors outputs = MakeOutputs(expected);

  const std::uint64_t before = Resident("VmRSS");
  const Clock::time_point start = Clock::now();
  const std::unique_ptr<Peer> peer = Load(name, settings, inputs);
  const Clock::time_point loaded = Clock::now();
  peer->Bind(inputs, outputs);
  const Clock::time_point bound = Clock::now();
  peer->Run();
  const Clock::time_point ran = Clock::now();
  const double apart = Apart(outputs, expected);
  for (int i = 0; i < 2; ++i) peer->Run();
  const std::uint64_t memory = Resident("VmHWM") - before;  // without the list of times

  std::vector<std::int64_t> times;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (Clock::time_point now = Clock::now(); times.empty() || now < end;) {
    peer->Run();
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
          {"memory", memory},
          {"apart", apart}};
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: bench-peer onnxruntime|openvino LIBRARY MODEL CASE THREADS SECONDS SETTING\n";
    return 2;
  }
  try {
    const rewire::bench::PeerSettings settings = {argv[2], argv[3], std::stoi(argv[5]), argv[7]};
    std::cout << rewire::bench::Measure(argv[1], settings, argv[4], std::stod(argv[6])) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "bench-peer: " << error.what() << "\n";
    return 1;
  }
  // The libraries' threads and objects end with the process.
  std::_Exit(0);
}
