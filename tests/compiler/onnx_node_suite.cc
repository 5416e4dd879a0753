// SPDX-License-Identifier: Apache-2.0
// Compiles, runs and compares every case of ONNX's backend tests: those of Debian's libonnx-testdata, or
// those that onnx_cases.py writes. It holds the result against the list of cases that are known to fail: one
// that fails without being listed fails the test, and so does one that fails for another reason than the list
// says, or is listed and passes, so that the list only shrinks. A case whose memory has a bound fails when it
// takes more. With --refusals-only, nothing but what the compiler refuses may be listed.
//
//   onnx_node_suite LIST [--data DIR] [--group NAME]... [--only TEXT] [--every N] [--disable-pass NAME]
//                        [--device NAME] [--table] [--refusals-only] [--update]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/driver/compile.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/tests/compiler/case_data.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string list;
  std::string data = "/usr/share/libonnx-testdata/data";
  std::vector<std::string> groups = {"node", "pytorch-converted", "pytorch-operator", "simple"};
  std::string only;
  int every = 1;
  std::vector<std::string> disabled;
  std::string device;
  bool table = false;
  bool refusals_only = false;
  bool update = false;

  bool all() const { return only.empty() && every == 1; }
};

// Why a case's values need not be right; empty if they must be. Which element of random values differs first
// is random too.
std::string WhyUncertain(const std::string& name) {
  if (name.find("bernoulli") != std::string::npos || name.find("training_dropout") != std::string::npos)
    return "random values differ";
  if (name.find("dft_inverse") != std::string::npos)
    return "expected is rounding noise above the tolerance, 1.9e-7 where the exact result is 0";
  if (name.find("resize_downsample_scales") != std::string::npos &&
      name.find("align_corners") != std::string::npos)
    return "open in ONNX: docs/onnx-values.md, Resize, align_corners by a fraction";
  return "";
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// The outcome of a case.
enum class Verdict : std::uint8_t {
  kPass,
  kRefused,    // the compiler says why
  kUncertain,  // it differs, and WhyUncertain knows why it may
  kWrong,
  kFailed,  // it compiled, and then something refused it
};
constexpr std::array kVerdictNames = {"pass", "refused", "uncertain", "wrong", "failed"};

struct CaseResult {
  Verdict verdict = Verdict::kPass;
  std::string reason;  // empty when the case passes
};

// Compares two runs with the case's outputs, so that what a run leaves behind shows.
CaseResult RunProgram(const Program& program, const Executable& executable, const CaseData& data,
                      int* bounded) {
  Limits limits;
  limits.steps = 10'000'000;
  VirtualMachine vm(program, limits);
  const Result<MemoryBound> bound = program.TryMemoryBound();
  if (!bound) return {Verdict::kFailed, "bound: " + bound.error().message()};
  const bool is_bounded = bound->bounded() && bound->undeclared_workspace.empty();
  *bounded += is_bounded ? 1 : 0;
  for (int run = 0; run < 2; ++run) {
    const Result<Value> result = vm.TryInvoke("main", data.inputs);
    if (!result) return {Verdict::kFailed, "run: " + result.error().message()};
    // The bound is that of a new VM's run, which has no earlier result to hold.
    if (run == 0 && is_bounded && vm.bytes_peak() > bound->bytes)
      return {Verdict::kFailed, fmt::format("memory: {} bytes, bound {}", vm.bytes_peak(), bound->bytes)};
    const std::size_t count = executable.module().functions[0].output_names.size();
    std::vector<Value> outputs;
    for (std::uint32_t i = 0; i < count; ++i) outputs.push_back(count == 1 ? *result : result->field(i));
    for (std::size_t i = 0; i < data.outputs.size(); ++i) {
      const std::string difference = data.texts.contains(i)
                                         ? TextDifference(executable.module(), outputs, i, data)
                                         : Difference(outputs[i], data.outputs[i]);
      if (!difference.empty()) return {Verdict::kWrong, fmt::format("output {}: {}", i, difference)};
    }
  }
  return {};
}

// Counts the cases whose memory has a bound.
CaseResult RunCase(const std::string& folder, const compiler::CompileOptions& options, int* bounded) {
  std::vector<compiler::Unsupported> unsupported;
  Result<compiler::Compiled> compiled = compiler::CompileOnnx(folder + "/model.onnx", options, &unsupported);
  if (!compiled && unsupported.empty()) return {Verdict::kRefused, "compile: " + compiled.error().message()};
  if (!compiled)
    return {Verdict::kRefused, fmt::format("{}: {}", unsupported[0].op_type, unsupported[0].reason)};
  const Result<Executable> executable = Executable::FromModule(std::move(compiled->module));
  if (!executable) return {Verdict::kFailed, "verify: " + executable.error().message()};
  const Result<Program> program = Program::Link(*executable);
  if (!program) return {Verdict::kFailed, "link: " + program.error().message()};
  const Result<CaseData> data = ReadCaseData(folder);
  if (!data) return {Verdict::kFailed, "data: " + data.error().message()};
  return RunProgram(*program, *executable, *data, bounded);
}

// The operator set of the case: "28", "ai.onnx.ml 5". By domain, so that a table can be sorted.
std::pair<std::string, std::int64_t> OpsetOf(const std::string& folder) {
  const Result<compiler::ModelFile> model = compiler::ModelFile::Read(folder + "/model.onnx", {});
  if (!model || model->opsets().empty()) return {"?", 0};
  const auto last = model->opsets().rbegin();  // ONNX's own domain sorts first
  return {last->first, last->second};
}

// Without the place of the cases, which may be anywhere.
std::string WithoutFolder(std::string reason, const std::string& folder) {
  const std::size_t at = reason.find(folder + "/");
  return at == std::string::npos ? reason : reason.erase(at, folder.size() + 1);
}

using Table = std::map<std::pair<std::string, std::int64_t>, std::array<int, kVerdictNames.size()>>;

void PrintTable(const Table& table) {
  fmt::print("{:28}{:>9}", "operator set", "cases");
  for (const char* name : kVerdictNames) fmt::print("{:>10}", name);
  fmt::print("\n");
  for (const auto& [opset, counts] : table) {
    fmt::print("{:28}{:>9}",
               fmt::format("{} {}", opset.first.empty() ? "ai.onnx" : opset.first, opset.second),
               std::accumulate(counts.begin(), counts.end(), 0));
    for (const int count : counts) fmt::print("{:>10}", count);
    fmt::print("\n");
  }
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
  compile.device = options.device;
  compile.least_device_work = 0;
  compile.check_passes = true;
  std::map<std::string, std::string> failures;
  int seen = 0;
  int count = 0;
  int bounded = 0;
  Table table;
  int broken = 0;
  for (const std::string& group : options.groups) {
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
      const std::string full = group + "/" + name;
      if (full.find(options.only) == std::string::npos || seen++ % options.every != 0) continue;
      ++count;
      const std::string folder = options.data + "/" + full;
      CaseResult result = RunCase(folder, compile, &bounded);
      if (const std::string why = WhyUncertain(name); result.verdict == Verdict::kWrong && !why.empty()) {
        result = {Verdict::kUncertain, why};
      }
      if (options.table) ++table[OpsetOf(folder)][static_cast<std::size_t>(result.verdict)];
      if (result.verdict == Verdict::kPass) continue;
      failures[full] = WithoutFolder(FirstLine(result.reason), folder);
      const bool is_broken = result.verdict == Verdict::kWrong || result.verdict == Verdict::kFailed;
      if (!options.refusals_only || !is_broken) continue;
      fmt::print("{} compiles, and then: {}\n", full, failures[full]);
      ++broken;
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
  if (options.table) PrintTable(table);
  fmt::print(
      "{} of {} cases pass, {} fail unexpectedly, {} are listed and pass; the memory of {} has a bound\n",
      count - static_cast<int>(failures.size()), count, unexpected, listed_passes, bounded);
  if (options.update) return WriteList(options.list, failures) ? 0 : 1;
  return unexpected + listed_passes + broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) {
  CLI::App app("Runs ONNX's backend tests", "onnx_node_suite");
  rewire::test::Options options;
  app.add_option("list", options.list, "The cases that are known to fail")->required();
  app.add_option("--data", options.data, "The folder with the groups of cases");
  app.add_option("--group", options.groups, "Only these groups of cases")->allow_extra_args(false);
  app.add_option("--only", options.only, "Cases with this in their name");
  app.add_option("--every", options.every, "One case of so many")->check(CLI::PositiveNumber);
  app.add_option("--disable-pass", options.disabled, "Compile without a pass")->allow_extra_args(false);
  app.add_option("--device", options.device, "Compile for a device, with all nodes that it has kernels for");
  app.add_flag("--table", options.table, "Print what became of the cases, operator set by operator set");
  app.add_flag("--refusals-only", options.refusals_only, "Fail if a case that compiles fails, listed or not");
  app.add_flag("--update", options.update, "Write the list anew")->excludes("--only")->excludes("--every");
  CLI11_PARSE(app, argc, argv);
  if (!options.device.empty()) {
    const auto opened = rewire::OpenDevice(options.device.substr(0, options.device.find(':')));
    if (!opened) {
      fmt::print("skipped: device {}: {}\n", options.device, opened.error().message());
      return 77;
    }
  }
  return rewire::test::RunAll(options);
}
