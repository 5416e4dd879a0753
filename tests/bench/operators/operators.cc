// SPDX-License-Identifier: Apache-2.0
// Measures models of one operator in Rewire, ONNX Runtime and OpenVINO, in turns in this process. forms.py
// writes the models and main.py calls this.
//
//   bench-operators ONNX_RUNTIME OPENVINO        the paths of their libraries
//
// Each line of the standard input is a folder (model.onnx, in/NAME.npy, out/names.json and out/NUMBER.npy),
// and perhaps names of peers to leave out, after tabs.
// The answer is one line of JSON: for each peer the nanoseconds of a run, and how far its values are from
// the expected ones, or why it has none. Before each step a line with "at" names it, so that the last line
// of a process that died names what killed it.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rewire/tests/bench/operators/rewire_peer.h"
#include "rewire/tests/bench/peer.h"
#include "rewire/tests/bench/peer_case.h"
#include "rewire/tests/bench/statistics.h"

namespace rewire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// A form has about 50 ms: eight rounds of some 2 ms for each of three peers. Forms of long runs have fewer.
constexpr int kRounds = 8;
constexpr double kSliceNs = 2e6, kPeerNs = 4e7;
// A run that takes longer is measured once.
constexpr double kLongNs = 2e8;

double NanosecondsOf(Peer* peer, std::int64_t runs) {
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < runs; ++i) peer->Run();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / static_cast<double>(runs);
}

// Nobody else runs on the CPU while one of these lives, where this user may ask for that. It lives for a
// slice of a few milliseconds, because others of the machine wait.
class RealTime {
 public:
  RealTime() { Set(SCHED_RR, 1); }
  ~RealTime() { Set(SCHED_OTHER, 0); }
  RealTime(const RealTime&) = delete;
  RealTime& operator=(const RealTime&) = delete;

 private:
  static void Set(int policy, int priority) {
    const sched_param parameters{priority};
    static_cast<void>(sched_setscheduler(0, policy, &parameters));
  }
};

struct Runner {
  std::string name;
  std::unique_ptr<Peer> peer;
  NamedTensors outputs;
  std::int64_t runs = 1;
  std::vector<double> samples;
};

void Say(const Json& line) { std::cout << line << std::endl; }

Json Measure(const std::string& line, const std::string& onnxruntime, const std::string& openvino) {
  const std::string folder = line.substr(0, line.find('\t'));
  const PeerCase read = ReadCase(folder);
  Json answer = {{"folder", folder}};
  std::vector<Runner> runners;
  for (const char* name : {"rewire", "onnxruntime", "openvino"}) {
    if (line.find(std::string("\t") + name) != std::string::npos) continue;
    Say({{"at", name}});
    Runner runner{name, nullptr, MakeOutputs(read.expected), 1, {}};
    PeerSettings settings{"", folder + "/model.onnx", 1, ""};
    try {
      if (runner.name == "rewire") {
        runner.peer = LoadRewire(settings);
      } else if (runner.name == "onnxruntime") {
        settings.library = onnxruntime, settings.setting = "all";
        runner.peer = LoadOnnxRuntime(settings);
      } else {
        settings.library = openvino, settings.setting = "f32";
        runner.peer = LoadOpenVino(settings, read.inputs);
      }
      runner.peer->Bind(read.inputs, runner.outputs);
      runner.peer->Run();
      answer[runner.name] = {{"apart", AllApart(runner.outputs, read.expected)}};
      const double once = std::min(NanosecondsOf(runner.peer.get(), 1), NanosecondsOf(runner.peer.get(), 1));
      runner.runs = std::max<std::int64_t>(1, static_cast<std::int64_t>(kSliceNs / std::max(once, 1.0)));
      runners.push_back(std::move(runner));
    } catch (const std::exception& error) {
      answer[name] = {{"error", error.what()}};
    }
  }
  Say({{"at", "rounds"}});
  for (int round = 0; round < kRounds; ++round) {
    for (Runner& runner : runners) {
      const double spent =
          static_cast<double>(runner.samples.size()) *
          (runner.samples.empty() ? 0 : runner.samples.front() * static_cast<double>(runner.runs));
      if (spent > kLongNs || (runner.samples.size() >= 3 && spent > kPeerNs)) continue;
      const RealTime alone;
      runner.samples.push_back(NanosecondsOf(runner.peer.get(), runner.runs));
    }
  }
  for (const Runner& runner : runners) answer[runner.name]["ns"] = Summarize(runner.samples).median;
  return answer;
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench-operators ONNX_RUNTIME OPENVINO < FOLDERS\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    try {
      rewire::bench::Say(rewire::bench::Measure(line, argv[1], argv[2]));
    } catch (const std::exception& error) {
      rewire::bench::Say({{"folder", line}, {"error", error.what()}});
    }
  }
  // The libraries' threads and objects end with the process.
  std::_Exit(0);
}
