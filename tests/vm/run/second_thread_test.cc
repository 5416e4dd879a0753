// SPDX-License-Identifier: Apache-2.0
//
// While one thread runs a VM, a second one calls every public function of the VM, of its Program and of what
// they share: a function that changes the VM is refused, and all others give their documented answer. The
// tables below have a row for each function that the headers declare.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rewire/tests/vm/run/second_thread.h"
#include "rewire/vm/memory_bound.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/shared_arena.h"

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
      {"TryInput", [status](VirtualMachine& vm) { return status(vm.TryInput("x")); }},
      {"TryState", [status](VirtualMachine& vm) { return status(vm.TryState()); }},
      {"TrySaveState", [](VirtualMachine& vm) { return vm.TrySaveState("not_written.state"); }},
      {"TrySetState", [status](VirtualMachine& vm) { return status(vm.TrySetState(StateOf(vm.program()))); }},
      {"TryLoadState",
       [status](VirtualMachine& vm) { return status(vm.TryLoadState(StateFileOf(vm.program()))); }},
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

TEST_CASE("a second thread calls every function of the executable, parameters, arena and values of a run") {
  Gate gate;
  const SharedArena arena = *SharedArena::TryMake(1 << 16);
  const Program program = GatedProgram(&gate);
  VmOptions options;
  options.arena = arena;
  VirtualMachine vm = *VirtualMachine::TryMake(program, options);
  const Executable executable = program.executable();
  ParameterSet set;
  set.Set("w", Floats({1, 2, 3}));
  const Value input(Floats({4, 5, 6}));
  const Value adt = *Value::Adt(5, {&input, 1});
  vm.SetInput("x", input.tensor());
  const SharedBytes damaged{{reinterpret_cast<const std::byte*>("RWX"), 3}, nullptr};
  const std::vector<SharedRow> of_executable = {
      {"Open", [] { return Executable::Open("/none").status().code() == StatusCode::kNotFound; }},
      {"FromBytes",
       [&] { return Executable::FromBytes(damaged).status().code() == StatusCode::kInvalidFile; }},
      {"FromModule", [&] { return Executable::FromModule(executable.module()).has_value(); }},
      {"module", [&] { return executable.module().functions.size() == 2; }},
      {"FindFunction", [&] { return executable.FindFunction("free") == 1U; }},
  };
  const std::vector<SharedRow> of_parameters = {
      {"Open", [] { return ParameterSet::Open("/none").status().code() == StatusCode::kNotFound; }},
      {"FromBytes",
       [&] { return ParameterSet::FromBytes(damaged).status().code() == StatusCode::kInvalidFile; }},
      {"Of",
       [&] { return ParameterSet::Of(executable)->size() == 0 && ParameterSet::Of(program).is_offer(); }},
      {"Set",
       [&] {
         ParameterSet copy = set;
         copy.Set("v", input.tensor());
         return copy.size() == 2 && set.size() == 1;
       }},
      {"size", [&] { return set.size() == 1; }},
      {"name", [&] { return set.name(0) == "w"; }},
      {"dtype", [&] { return set.dtype(0) == kFloat32; }},
      {"shape", [&] { return set.shape(0)[0] == 3; }},
      {"device", [&] { return IsHostDevice(set.device(0)); }},
      {"Find", [&] { return set.Find("w") == 0; }},
      {"TryGet",
       [&] {
         return FloatsOf(*set.TryGet(0)) == std::vector<float>{1, 2, 3};
       }},
      {"decoded_bytes", [&] { return set.decoded_bytes(0) == 0; }},
      {"stored_bytes", [&] { return set.stored_bytes() == 12; }},
      {"is_offer", [&] { return !set.is_offer(); }},
  };
  const std::vector<SharedRow> of_arena = {
      {"TryMake", [] { return SharedArena::TryMake(4096).has_value(); }},
      {"size", [&] { return arena.size() == 1 << 16; }},
      {"in_use", [&] { return arena.in_use(); }},
      {"rep", [&] { return arena.rep() != nullptr; }},
  };
  // A value may be used by one thread at a time, so that this thread has a handle of its own.
  Value own = input;
  const std::vector<SharedRow> of_values = {
      {"Adt",
       [&] {
         return Value::Adt(1, {&own, 1}).has_value();
       }},
      {"kind", [&] { return own.kind() == ValueKind::kTensor; }},
      {"tensor", [&] { return FloatsOf(own.tensor())[0] == 4; }},
      {"integer", [&] { return own.integer() == 0; }},
      {"tag", [&] { return adt.tag() == 5; }},
      {"field_count", [&] { return adt.field_count() == 1; }},
      {"field", [&] { return adt.field(0).tensor().data<float>() == own.tensor().data<float>(); }},
      {"any", [&] { return own.any().v_obj != nullptr; }},
      {"Release",
       [&] {
         own = Value::Adopt(own.Release());
         return FloatsOf(own.tensor())[0] == 4;
       }},
      {"Adopt", [] { return true; }},  // above
      {"Exchange",
       [&] {
         const Value before = Value::Adopt(own.Exchange(Value(std::int64_t{1}).Release()));
         const bool right = own.integer() == 1;
         own = before;
         return right;
       }},
  };
  CHECK(NamesOf(of_executable) == Members("executable_format/executable.h", "Executable"));
  CHECK(NamesOf(of_parameters) == Members("vm/parameter_set.h", "ParameterSet"));
  CHECK(NamesOf(of_arena) == Members("vm/shared_arena.h", "SharedArena"));
  CHECK(NamesOf(of_values) == Members("vm/value.h", "Value"));
  const Status ran = DuringRun(&gate, &vm, [&] {
    for (const auto* rows : {&of_executable, &of_parameters, &of_arena, &of_values}) {
      for (const SharedRow& row : *rows) {
        INFO(row.name);
        CHECK(row.right());
      }
    }
  });
  CHECK(MessageOf(ran) == "");
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{4, 5, 6});
  CHECK(!arena.in_use());
}

}  // namespace
}  // namespace rewire::test
