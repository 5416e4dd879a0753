// SPDX-License-Identifier: Apache-2.0
//
// While one thread runs a VM, a second one calls every public function of the VM and of its Program: a
// function that changes the VM is refused, and all others give their documented answer. The tables below have
// a row for each function that the headers declare.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/vm/second_thread.h"
#include "rewire/vm/memory_bound.h"

namespace rewire::test {
namespace {

struct VmRow {
  const char* name;
  std::function<Status(VirtualMachine& vm)> call;  // OK where the answer is the documented one
  bool refused = true;
};

Status Wrong() { return Fail(StatusCode::kInternal, "another answer"); }

std::vector<VmRow> VmRows() {
  static float memory[3] = {7, 8, 9};
  static const TensorView view(memory, {3});
  static const Value value(Floats({1, 2, 3}));
  static Observer observer;
  const auto status = [](const auto& result) { return result.status(); };
  const DLDevice device{kDLExtDev, 0};
  return {
      {"TrySetInput", [](VirtualMachine& vm) { return vm.TrySetInput("x", view); }},
      {"TrySetInput", [](VirtualMachine& vm) { return vm.TrySetInput("x", value); }},
      {"TrySetInputs",
       [](VirtualMachine& vm) {
         return vm.TrySetInputs("main", {&view, 1});
       }},
      {"TrySetInputs",
       [](VirtualMachine& vm) {
         return vm.TrySetInputs(0U, {&view, 1});
       }},
      {"TryClearInputs", [](VirtualMachine& vm) { return vm.TryClearInputs(); }},
      {"TrySetOutput", [](VirtualMachine& vm) { return vm.TrySetOutput(0, view); }},
      {"TrySetOutput", [](VirtualMachine& vm) { return vm.TrySetOutput(0, value.tensor()); }},
      {"TrySetOutput",
       [](VirtualMachine& vm) {
         return vm.TrySetOutput(0, OutputCapacity{memory, 12});
       }},
      {"TrySetOutput",
       [](VirtualMachine& vm) {
         return vm.TrySetOutput(0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) -> void* {
                                                     return memory;
                                                   }});
       }},
      {"TryDonate", [](VirtualMachine& vm) { return vm.TryDonate("x", 0); }},
      {"TryClearOutput", [](VirtualMachine& vm) { return vm.TryClearOutput(0); }},
      {"TryClearOutputs", [](VirtualMachine& vm) { return vm.TryClearOutputs(); }},
      {"TryRequireZeroCopy", [](VirtualMachine& vm) { return vm.TryRequireZeroCopy(true); }},
      {"TryInvoke", [](VirtualMachine& vm) { return vm.TryInvoke("free"); }},
      {"TryInvoke", [](VirtualMachine& vm) { return vm.TryInvoke(1U); }},
      {"TryInvoke",
       [status](VirtualMachine& vm) {
         return status(vm.TryInvoke("free", {&value, 1}));
       }},
      {"TryInvoke",
       [](VirtualMachine& vm) {
         const OutputBinding output{0, view};
         return vm.TryInvoke("free", {&value, 1}, {&output, 1});
       }},
      {"TryInvokeAsync", [](VirtualMachine& vm) { return vm.TryInvokeAsync("free"); }},
      {"TryWait", [](VirtualMachine& vm) { return vm.TryWait(); }},
      {"TrySetStream", [device](VirtualMachine& vm) { return vm.TrySetStream(device, nullptr); }},
      {"TryDoneEvent", [device, status](VirtualMachine& vm) { return status(vm.TryDoneEvent(device)); }},
      {"TryWaitForEvent", [device](VirtualMachine& vm) { return vm.TryWaitForEvent(device, nullptr); }},
      {"TryRecord", [](VirtualMachine& vm) { return vm.TryRecord("free"); }},
      {"TrySetAutomaticRecording", [](VirtualMachine& vm) { return vm.TrySetAutomaticRecording(true); }},
      {"TryOutputShape", [status](VirtualMachine& vm) { return status(vm.TryOutputShape(0)); }},
      {"TryOutputReport", [status](VirtualMachine& vm) { return status(vm.TryOutputReport(0)); }},
      {"TrySetLimits", [](VirtualMachine& vm) { return vm.TrySetLimits({}); }},
      {"TrySetDeadline",
       [](VirtualMachine& vm) { return vm.TrySetDeadline(std::chrono::steady_clock::time_point::max()); }},
      {"TrySetObserver", [](VirtualMachine& vm) { return vm.TrySetObserver(&observer); }},
      {"TryDropResult", [](VirtualMachine& vm) { return vm.TryDropResult(); }},
      {"TryTrim", [](VirtualMachine& vm) { return vm.TryTrim(); }},
      // These show the state before the run, and make another VM.
      {"TryMake", [status](VirtualMachine& vm) { return status(VirtualMachine::TryMake(vm.program(), {})); },
       false},
      {"program",
       [](VirtualMachine& vm) {
         return vm.program().executable().module().functions.size() == 2 ? Status() : Wrong();
       },
       false},
      {"TryInputReport", [status](VirtualMachine& vm) { return status(vm.TryInputReport("x")); }, false},
      {"result",
       [](VirtualMachine& vm) { return FloatsOf(vm.result().tensor())[0] == 1 ? Status() : Wrong(); }, false},
      {"TryOutput", [status](VirtualMachine& vm) { return status(vm.TryOutput(0U)); }, false},
      {"recorded", [](VirtualMachine& vm) { return vm.recorded() ? Wrong() : Status(); }, false},
      {"bytes_held", [](VirtualMachine& vm) { return vm.bytes_held() != 0 ? Status() : Wrong(); }, false},
      {"bytes_peak", [](VirtualMachine& vm) { return vm.bytes_peak() != 0 ? Status() : Wrong(); }, false},
      {"device_waits", [](VirtualMachine& vm) { return vm.device_waits().all() == 0 ? Status() : Wrong(); },
       false},
      {"Cancel", [](VirtualMachine&) { return Status(); }, false},  // below
  };
}

TEST_CASE("a second thread calls every function of a VM that runs") {
  const std::vector<VmRow> rows = VmRows();
  std::set<std::string> declared = Declared("vm/virtual_machine.h", "class REWIRE_API VirtualMachine",
                                            "#if defined(__cpp_exceptions)", kMember);
  declared.erase("VirtualMachine");  // the constructor
  CHECK(NamesOf(rows) == declared);
  Gate gate;
  VirtualMachine vm(GatedProgram(&gate));
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.Invoke();
  const Status ran = DuringRun(&gate, &vm, [&] {
    for (const VmRow& row : rows) {
      INFO(row.name);
      const Status answer = row.call(vm);
      CHECK(answer.code() == (row.refused ? StatusCode::kBusy : StatusCode::kOk));
    }
  });
  CHECK(MessageOf(ran) == "");
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2, 3});  // nothing was changed
  CHECK(DuringRun(&gate, &vm, [&vm] { vm.Cancel(); }).code() == StatusCode::kCancelled);
  CHECK(MessageOf(vm.TryInvoke()) == "");
}

struct ProgramRow {
  const char* name;
  std::function<Status(const Program& program)> call;
};

std::vector<ProgramRow> ProgramRows() {
  static const Value value(Floats({4, 5, 6}));
  static float memory[3] = {};
  const auto status = [](const auto& result) { return result.status(); };
  return {
      {"Link",
       [status](const Program& program) {
         return status(Program::Link(program.executable(), [] {
           LinkOptions options;
           options.kernels.AddFunction("test.gate", MakePackedFunction([] {}));
           return options;
         }()));
       }},
      {"TryOpen", [](const Program&) { return Program::TryOpen("/no/such/file.rwx") ? Wrong() : Status(); }},
      {"Rebind", [status](const Program& program) { return status(program.Rebind({})); }},
      {"executable",
       [](const Program& program) {
         return program.executable().module().functions.empty() ? Wrong() : Status();
       }},
      {"FindFunction", [status](const Program& program) { return status(program.FindFunction("free")); }},
      {"FindInput", [status](const Program& program) { return status(program.FindInput("x")); }},
      {"FindOutput", [status](const Program& program) { return status(program.FindOutput(0U)); }},
      {"TryOutputPlan",
       [status](const Program& program) {
         return status(program.TryOutputPlan({0, 0}));
       }},
      {"ExplainOutput",
       [](const Program& program) {
         return program.ExplainOutput({0, 0}).empty() ? Wrong() : Status();
       }},
      {"TryMemoryBound", [status](const Program& program) { return status(program.TryMemoryBound("free")); }},
      {"TryRun",
       [status](const Program& program) {
         return status(program.TryRun("free", {&value, 1}));
       }},
      {"TryRun",
       [](const Program& program) {
         const OutputBinding output{0, TensorView(memory, {3})};
         return program.TryRun("free", {&value, 1}, {&output, 1});
       }},
      {"rep",
       [](const Program& program) {
         return &program.rep() == program.shared_rep().get() ? Status() : Wrong();
       }},
      {"shared_rep",
       [](const Program& program) { return program.shared_rep() == nullptr ? Wrong() : Status(); }},
  };
}

TEST_CASE("a second thread calls every function of a Program that runs") {
  const std::vector<ProgramRow> rows = ProgramRows();
  std::set<std::string> declared = Declared("vm/program.h", "class REWIRE_API Program", " private:", kMember);
  declared.erase("Open");  // the throwing form of TryOpen
  CHECK(NamesOf(rows) == declared);
  Gate gate;
  VirtualMachine vm(GatedProgram(&gate));
  vm.SetInput("x", Floats({1, 2, 3}));
  const Status ran = DuringRun(&gate, &vm, [&] {
    for (const ProgramRow& row : rows) {
      INFO(row.name);
      CHECK(MessageOf(row.call(vm.program())) == "");
    }
  });
  CHECK(MessageOf(ran) == "");
}

}  // namespace
}  // namespace rewire::test
