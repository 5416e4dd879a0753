// SPDX-License-Identifier: Apache-2.0
// Compiles, runs and compares every case of ONNX's backend tests (Debian's libonnx-testdata), and holds the
// result against the list of cases that are known to fail: one that fails without being listed fails the
// test, and so does one that fails for another reason than the list says, or is listed and passes, so that
// the list only shrinks. A case whose memory has a bound fails when it takes more.
//
//   onnx_node_suite LIST [--data DIR] [--only TEXT] [--every N] [--disable-pass NAME] [--update]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rewire/compiler/compile.h"
#include "rewire/tests/compiler/case_data.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string list;
  std::string data = "/usr/share/libonnx-testdata/data";
  std::string only;
  int every = 1;
  std::vector<std::string> disabled;
  bool update = false;

  bool all() const { return only.empty() && every == 1; }
};

// Cases whose values are random: which element differs first does too.
bool IsRandom(const std::string& name) {
  return name.find("bernoulli") != std::string::npos || name.find("training_dropout") != std::string::npos;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Empty when the case passes, otherwise why it does not. Counts the cases whose memory has a bound.
std::string RunCase(const std::string& folder, const compiler::CompileOptions& options, int* bounded) {
  const Result<CaseData> data = ReadCaseData(folder);
  if (!data) return "data: " + data.error().message();
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled = compiler::CompileOnnx(folder + "/model.onnx", options, &unsupported);
  if (!compiled && unsupported.empty()) return "compile: " + compiled.error().message();
  if (!compiled) return fmt::format("{}: {}", unsupported[0].op_type, unsupported[0].reason);
  const Result<Executable> executable = Executable::FromModule(std::move(compiled->module));
  if (!executable) return "verify: " + executable.error().message();
  const Result<Program> program = Program::Link(*executable);
  if (!program) return "link: " + program.error().message();
  Limits limits;
  limits.steps = 10'000'000;
  VirtualMachine vm(*program, limits);
  const Result<MemoryBound> bound = program->TryMemoryBound();
  if (!bound) return "bound: " + bound.error().message();
  const bool is_bounded = bound->bounded() && bound->undeclared_workspace.empty();
  *bounded += is_bounded ? 1 : 0;
  // Twice, so that what a run leaves behind shows.
  for (int run = 0; run < 2; ++run) {
    const Result<Value> result = vm.TryInvoke("main", data->inputs);
    if (!result) return "run: " + result.error().message();
    // The bound is that of a new VM's run, which has no earlier result to hold.
    if (run == 0 && is_bounded && vm.bytes_peak() > bound->bytes)
      return fmt::format("memory: {} bytes, bound {}", vm.bytes_peak(), bound->bytes);
    for (std::uint32_t i = 0; i < data->outputs.size(); ++i) {
      const std::size_t outputs = executable->module().functions[0].output_names.size();
      const std::string difference = Difference(outputs == 1 ? *result : result->field(i), data->outputs[i]);
      if (!difference.empty()) return fmt::format("output {}: {}", i, difference);
    }
  }
  return "";
}

// Case and reason of every line "case: reason".
std::map<std::string, std::string> ReadList(const std::string& path) {
  std::map<std::string, std::string> known;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.empty() && line[0] != '#' && colon != std::string::npos) {
      known[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return known;
}

bool WriteList(const std::string& path, const std::map<std::string, std::string>& failures) {
  std::ofstream file(path);
  file << "# Cases of ONNX's backend tests that do not pass yet, with the reason. Written by\n"
          "#   onnx_node_suite --update <this file>\n";
  for (const auto& [name, reason] : failures) file << name << ": " << reason << "\n";
  return static_cast<bool>(file.flush());
}

int RunAll(const Options& options) {
  compiler::CompileOptions compile;
  compile.disabled_passes.insert(options.disabled.begin(), options.disabled.end());
  std::map<std::string, std::string> failures;
  int seen = 0;
  int count = 0;
  int bounded = 0;
  for (const char* group : {"node", "pytorch-converted", "pytorch-operator", "simple"}) {
    std::vector<std::string> cases;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(options.data) / group, error)) {
      cases.push_back(entry.path().filename().string());
    }
    if (cases.empty()) {
      fmt::print("no cases in {}/{}\n", options.data, group);
      return 1;
    }
    std::sort(cases.begin(), cases.end());
    for (const std::string& name : cases) {
      const std::string full = std::string(group) + "/" + name;
      if (full.find(options.only) == std::string::npos || seen++ % options.every != 0) continue;
      ++count;
      const std::string reason = RunCase(options.data + "/" + full, compile, &bounded);
      if (reason.empty()) continue;
      const bool random = IsRandom(name) && reason.starts_with("output");
      failures[full] = random ? "random values differ" : FirstLine(reason);
    }
  }
  if (count == 0) {
    fmt::print("no case has '{}' in its name\n", options.only);
    return 1;
  }
  const std::map<std::string, std::string> known = ReadList(options.list);
  int unexpected = 0;
  for (const auto& [name, reason] : failures) {
    const auto listed = known.find(name);
    const bool as_listed = listed != known.end() && listed->second == reason;
    if (as_listed && options.all()) continue;
    fmt::print("{}: {}\n", name, reason);
    if (listed != known.end() && !as_listed) fmt::print("  listed is: {}\n", listed->second);
    if (!as_listed) ++unexpected;
  }
  int listed_passes = 0;
  for (const auto& [name, reason] : known) {
    if (failures.contains(name) || !options.all()) continue;
    fmt::print("{} is listed in {} and passes: run with --update\n", name, options.list);
    ++listed_passes;
  }
  fmt::print(
      "{} of {} cases pass, {} fail unexpectedly, {} are listed and pass; the memory of {} has a bound\n",
      count - static_cast<int>(failures.size()), count, unexpected, listed_passes, bounded);
  if (options.update) return WriteList(options.list, failures) ? 0 : 1;
  return unexpected + listed_passes == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) {
  CLI::App app("Runs ONNX's backend tests", "onnx_node_suite");
  rewire::test::Options options;
  app.add_option("list", options.list, "The cases that are known to fail")->required();
  app.add_option("--data", options.data, "The folder with the groups of cases");
  app.add_option("--only", options.only, "Cases with this in their name");
  app.add_option("--every", options.every, "One case of so many")->check(CLI::PositiveNumber);
  app.add_option("--disable-pass", options.disabled, "Compile without a pass")->allow_extra_args(false);
  app.add_flag("--update", options.update, "Write the list anew")->excludes("--only")->excludes("--every");
  CLI11_PARSE(app, argc, argv);
  return rewire::test::RunAll(options);
}
