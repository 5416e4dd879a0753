// SPDX-License-Identifier: Apache-2.0
// tvm_conformance [--outputs] DIRECTORY...: runs generated cases and compares every result with that of TVM's
// own executor, bit by bit; once as results of the VM and once into memory of the caller's. --outputs lists
// for every output how it was made. Ends with the counts; exits with 1 when a case differs.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/tvm/case_reader.h"
#include "rewire/vm/output.h"
#include "rewire/vm/virtual_machine.h"

namespace {

using namespace rewire;
using namespace rewire::test;

struct Totals {
  int cases = 0, calls = 0, failed = 0;
  std::map<std::string, int> outputs;  // how they were made -> how many
};

// The handles of a function's outputs.
std::vector<OutputHandle> OutputsOf(const Program& program, const std::string& function) {
  std::vector<OutputHandle> handles;
  for (std::uint32_t leaf = 0;; ++leaf) {
    Result<OutputHandle> handle = program.FindOutput(leaf, function);
    if (!handle) return handles;
    handles.push_back(*handle);
  }
}

// A tensor like `model`, aligned as the TVM of the case aligns and no more, filled with a pattern.
Result<Tensor> MakeAligned(const Tensor& model, std::size_t alignment) {
  const std::size_t bytes = model.view().bytes();
  const std::size_t block = 2 * alignment;
  const std::shared_ptr<void> memory(std::aligned_alloc(block, (alignment + bytes) / block * block + block),
                                     std::free);
  void* data = static_cast<char*>(memory.get()) + alignment;
  std::memset(data, 0xA5, bytes);
  return Tensor::Wrap(TensorView(data, model.dtype(), model.shape()), memory);
}

// Runs the call with every output that can be bound in memory of ours.
std::string RunBound(const TvmCase& test, const TvmCall& call, const Value& unbound, bool list,
                     Totals& totals) {
  const std::vector<OutputHandle> handles = OutputsOf(test.program, call.function);
  const std::vector<Tensor> leaves = LeavesOf(unbound);
  const bool opaque = handles.size() == 1 && unbound.kind() != ValueKind::kTensor;
  if (opaque || handles.size() != leaves.size()) {
    // A result that is recursive or differs between runs is one opaque output, which cannot be bound.
    ++totals.outputs["not bindable: an opaque result"];
    if (list) fmt::print("{} {}: opaque\n", test.name, call.function);
    return "";
  }
  VirtualMachine vm(test.program);
  std::vector<Tensor> memory;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Result<Tensor> tensor = MakeAligned(leaves[i], test.alignment);
    if (!tensor) return tensor.error().message();
    memory.push_back(*tensor);
    if (Status bound = vm.TrySetOutput(handles[i], memory[i].view()); !bound) {
      ++totals.outputs["not bindable: " + bound.error().message()];
      if (list) fmt::print("{} {}: {}\n", test.name, call.function, bound.error().message());
      return "";
    }
  }
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    Result<InputHandle> input = test.program.FindInput(static_cast<std::uint32_t>(i), call.function);
    if (!input) return input.error().message();
    if (Status set = vm.TrySetInput(*input, call.inputs[i]); !set) return set.error().message();
  }
  if (Status run = vm.TryInvoke(call.function); !run) return "into bound outputs: " + run.error().message();
  const std::vector<Tensor> expected = LeavesOf(call.expected);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (std::string text = Difference(memory[i], expected[i], test.tolerance); !text.empty()) {
      return fmt::format("bound output {}: {}", i, text);
    }
    Result<OutputReport> report = vm.TryOutputReport(handles[i]);
    if (!report) return report.error().message();
    if (report->copied && report->reason.find("aligned") != std::string::npos) {
      return fmt::format("bound output {}: copied, {}", i, report->reason);
    }
    const std::string how = report->copied ? "copied: " + report->reason : "rewired";
    ++totals.outputs[how];
    if (list) fmt::print("{} {} output {}: {}\n", test.name, call.function, i, how);
  }
  return Difference(vm.result(), call.expected, test.tolerance);
}

std::string RunCase(const TvmCase& test, bool list, Totals& totals) {
  VirtualMachine vm(test.program);
  for (const TvmCall& call : test.calls) {
    ++totals.calls;
    Result<Value> result = vm.TryInvoke(call.function, call.inputs);
    if (!result) return result.error().message();
    if (std::string text = Difference(*result, call.expected, test.tolerance); !text.empty()) return text;
    if (std::string text = RunBound(test, call, *result, list, totals); !text.empty()) return text;
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  Totals totals;
  bool list = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--outputs") {
      list = true;
      continue;
    }
    ++totals.cases;
    Result<TvmCase> test = ReadTvmCase(argument);
    const std::string error = test ? RunCase(*test, list, totals) : test.error().message();
    if (error.empty()) continue;
    ++totals.failed;
    fmt::print("FAILED {}: {}\n", argument, error);
  }
  for (const auto& [how, count] : totals.outputs) fmt::print("outputs {}: {}\n", how, count);
  fmt::print("{} calls of {} cases\n{} passed, {} failed\n", totals.calls, totals.cases,
             totals.cases - totals.failed, totals.failed);
  return totals.failed == 0 && totals.cases != 0 ? 0 : 1;
}
