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
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/tests/bench/peer.h"
#include "rewire/tests/bench/peer_case.h"

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

std::unique_ptr<Peer> Load(const std::string& name, const PeerSettings& settings,
                           const NamedTensors& inputs) {
  if (name == "onnxruntime") return LoadOnnxRuntime(settings);
  if (name == "openvino") return LoadOpenVino(settings, inputs);
  throw std::runtime_error("there is no peer '" + name + "', expected onnxruntime or openvino");
}

Json Measure(const std::string& name, const PeerSettings& settings, const std::filesystem::path& folder,
             double seconds) {
  const auto& [inputs, expected] = ReadCase(folder);
  const NamedTensors outputs = MakeOutputs(expected);

  const std::uint64_t before = Resident("VmRSS");
  const Clock::time_point start = Clock::now();
  const std::unique_ptr<Peer> peer = Load(name, settings, inputs);
  const Clock::time_point loaded = Clock::now();
  peer->Bind(inputs, outputs);
  const Clock::time_point bound = Clock::now();
  peer->Run();
  const Clock::time_point ran = Clock::now();
  const double apart = FloatsApart(outputs, expected);
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
