// SPDX-License-Identifier: Apache-2.0
// Loads a program whose weights lie apart, twice, and once more with other weights: what bench/parameters.py
// measures beside ONNX Runtime.
//
//   bench-parameters EXECUTABLE WEIGHTS TUNED
//
// WEIGHTS and TUNED are files of parameters. Each load opens both files, links, and ends when the program can
// run. Prints one JSON object, in nanoseconds and bytes: load, second and tuned, the times; first_memory,
// second_memory and tuned_memory, by how much each load grows the memory that the process has written and
// that is no file's; and weights, the bytes in WEIGHTS.
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "rewire/vm/parameter_set.h"
#include "rewire/vm/program.h"

namespace rewire::bench {
namespace {

std::int64_t AnonymousBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    std::int64_t kilobytes = 0;
    if (word == "Anonymous:" && rollup >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

struct Loaded {
  std::optional<Program> program;
  std::int64_t nanoseconds = 0;
  std::int64_t memory = 0;
};

ParameterSet OpenSet(const std::string& path) {
  Result<ParameterSet> set = ParameterSet::Open(path);
  if (!set) throw std::runtime_error(set.error().message());
  return *std::move(set);
}

Loaded Load(const std::string& executable, const std::string& weights) {
  Loaded loaded;
  const std::int64_t before = AnonymousBytes();
  const auto start = std::chrono::steady_clock::now();
  LinkOptions options;
  options.init_sharing = ShareInitResults();
  options.parameters = {OpenSet(weights)};
  loaded.program = Program::Open(executable, std::move(options));
  loaded.nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  loaded.memory = AnonymousBytes() - before;
  return loaded;
}

std::int64_t BytesIn(const std::string& weights) {
  const ParameterSet set = OpenSet(weights);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (const Result<Tensor> tensor = set.TryGet(i))
      bytes += static_cast<std::int64_t>(tensor->view().bytes());
  }
  return bytes;
}

}  // namespace
}  // namespace rewire::bench

int main(int argc, char** argv) {
  using rewire::bench::Load;
  if (argc != 4) {
    std::cerr << "usage: bench-parameters EXECUTABLE WEIGHTS TUNED\n";
    return 2;
  }
  try {
    const auto first = Load(argv[1], argv[2]);
    const auto second = Load(argv[1], argv[2]);
    const auto tuned = Load(argv[1], argv[3]);
    std::cout << nlohmann::json{{"load", first.nanoseconds},
                                {"second", second.nanoseconds},
                                {"tuned", tuned.nanoseconds},
                                {"first_memory", first.memory},
                                {"second_memory", second.memory},
                                {"tuned_memory", tuned.memory},
                                {"weights", rewire::bench::BytesIn(argv[2])}}
              << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "bench-parameters: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
