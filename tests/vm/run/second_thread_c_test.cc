// SPDX-License-Identifier: Apache-2.0
//
// The same as second_thread_test.cc for the functions of the C API that take a VM. The others are in
// second_thread_c_shared_test.cc.
#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rewire/tests/vm/run/second_thread.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/c_api/impl/handles.h"

namespace rewire::test {
namespace {

struct CRow {
  const char* name;
  std::function<RewireStatus(RewireVm* vm)> call;
  RewireStatus answer = kRewireBusy;
};

std::vector<CRow> CRows() {
  static float data[3] = {7, 8, 9};
  static std::int64_t shape[1] = {3};
  static DLTensor tensor{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  static const DLTensor* tensors[1] = {&tensor};
  static RewireValue value{Value(Floats({1, 2, 3}))};
  static const RewireValue* values[1] = {&value};
  static const RewireInput input{0, 0};
  static const RewireOutput output{0, 0};
  static const DLDevice device{kDLExtDev, 0};
  static std::int32_t copied = 0;
  static std::uint64_t number = 0;
  static std::uint32_t rank = 0;
  static void* event = nullptr;
  static RewireLimits limits{sizeof(RewireLimits), 0, 0, 0};
  const auto drop = [](RewireStatus status, RewireValue* made) {
    rewire_value_destroy(made);
    return status;
  };
  const auto managed = [](auto** made) {
    const Value floats(Floats({1, 2, 3}));
    RewireValue holder{floats};
    if constexpr (std::is_same_v<decltype(made), DLManagedTensor**>) {
      REQUIRE(rewire_value_to_dlpack(&holder, made) == kRewireOk);
    } else {
      REQUIRE(rewire_value_to_dlpack_versioned(&holder, made) == kRewireOk);
    }
  };
  return {
      {"rewire_vm_set_input",
       [](RewireVm* vm) { return rewire_vm_set_input(vm, input, &tensor, kRewireBorrow); }},
      {"rewire_vm_set_input_by_name",
       [](RewireVm* vm) { return rewire_vm_set_input_by_name(vm, "x", &tensor, kRewireBorrow); }},
      {"rewire_vm_set_input_by_index",
       [](RewireVm* vm) { return rewire_vm_set_input_by_index(vm, 0, &tensor, kRewireBorrow); }},
      {"rewire_vm_set_input_dlpack",
       [managed](RewireVm* vm) {
         DLManagedTensor* made = nullptr;
         managed(&made);
         return rewire_vm_set_input_dlpack(vm, input, made);
       }},
      {"rewire_vm_set_input_dlpack_versioned",
       [managed](RewireVm* vm) {
         DLManagedTensorVersioned* made = nullptr;
         managed(&made);
         return rewire_vm_set_input_dlpack_versioned(vm, input, made);
       }},
      {"rewire_vm_set_input_value",
       [](RewireVm* vm) { return rewire_vm_set_input_value(vm, input, &value); }},
      {"rewire_vm_set_inputs",
       [](RewireVm* vm) { return rewire_vm_set_inputs(vm, 0, tensors, 1, kRewireBorrow); }},
      {"rewire_vm_clear_inputs", [](RewireVm* vm) { return rewire_vm_clear_inputs(vm, nullptr); }},
      {"rewire_vm_invoke", [](RewireVm* vm) { return rewire_vm_invoke(vm, "free"); }},
      {"rewire_vm_invoke_function", [](RewireVm* vm) { return rewire_vm_invoke_function(vm, 1); }},
      {"rewire_vm_call", [](RewireVm* vm) { return rewire_vm_call(vm, 1, values, 1, nullptr); }},
      {"rewire_vm_call_into",
       [](RewireVm* vm) { return rewire_vm_call_into(vm, 1, values, 1, &output, tensors, 1); }},
      {"rewire_vm_call_into_dlpack",
       [managed](RewireVm* vm) {
         DLManagedTensor* made = nullptr;
         managed(&made);
         return rewire_vm_call_into_dlpack(vm, 1, values, 1, &output, &made, 1);
       }},
      {"rewire_vm_call_into_dlpack_versioned",
       [managed](RewireVm* vm) {
         DLManagedTensorVersioned* made = nullptr;
         managed(&made);
         return rewire_vm_call_into_dlpack_versioned(vm, 1, values, 1, &output, &made, 1);
       }},
      {"rewire_vm_set_limits", [](RewireVm* vm) { return rewire_vm_set_limits(vm, &limits); }},
      {"rewire_vm_set_timeout", [](RewireVm* vm) { return rewire_vm_set_timeout(vm, -1); }},
      {"rewire_vm_trim", [](RewireVm* vm) { return rewire_vm_trim(vm); }},
      {"rewire_vm_set_observer", [](RewireVm* vm) { return rewire_vm_set_observer(vm, nullptr); }},
      {"rewire_vm_set_output", [](RewireVm* vm) { return rewire_vm_set_output(vm, output, &tensor); }},
      {"rewire_vm_set_output_by_name",
       [](RewireVm* vm) { return rewire_vm_set_output_by_name(vm, "0", &tensor); }},
      {"rewire_vm_set_output_by_index",
       [](RewireVm* vm) { return rewire_vm_set_output_by_index(vm, 0, &tensor); }},
      {"rewire_vm_set_output_value",
       [](RewireVm* vm) { return rewire_vm_set_output_value(vm, output, &value); }},
      {"rewire_vm_set_output_capacity",
       [](RewireVm* vm) {
         return rewire_vm_set_output_capacity(vm, output, data, 12, {kDLCPU, 0});
       }},
      {"rewire_vm_set_output_allocator",
       [](RewireVm* vm) {
         return rewire_vm_set_output_allocator(
             vm, output, [](void*, std::uint64_t, std::uint64_t) -> void* { return data; }, nullptr,
             {kDLCPU, 0});
       }},
      {"rewire_vm_donate", [](RewireVm* vm) { return rewire_vm_donate(vm, input, output); }},
      {"rewire_vm_clear_output", [](RewireVm* vm) { return rewire_vm_clear_output(vm, output); }},
      {"rewire_vm_clear_outputs", [](RewireVm* vm) { return rewire_vm_clear_outputs(vm, nullptr); }},
      {"rewire_vm_require_zero_copy", [](RewireVm* vm) { return rewire_vm_require_zero_copy(vm, 1); }},
      {"rewire_vm_output_shape",
       [](RewireVm* vm) { return rewire_vm_output_shape(vm, output, nullptr, 0, &rank); }},
      {"rewire_vm_output_report",
       [](RewireVm* vm) { return rewire_vm_output_report(vm, output, &copied, nullptr, 0, nullptr); }},
      {"rewire_vm_state",
       [](RewireVm* vm) {
         std::size_t size = 0;
         return rewire_vm_state(vm, nullptr, nullptr, 0, &size);
       }},
      {"rewire_vm_save_state",
       [](RewireVm* vm) { return rewire_vm_save_state(vm, nullptr, "not_written.state"); }},
      {"rewire_vm_set_state",
       [](RewireVm* vm) {
         const Array<std::byte> state = StateOf(vm->machine.program());
         return rewire_vm_set_state(vm, state.data(), state.size(), nullptr);
       }},
      {"rewire_vm_load_state",
       [](RewireVm* vm) {
         return rewire_vm_load_state(vm, StateFileOf(vm->machine.program()).c_str(), nullptr);
       }},
      {"rewire_vm_invoke_async", [](RewireVm* vm) { return rewire_vm_invoke_async(vm, "free"); }},
      {"rewire_vm_wait", [](RewireVm* vm) { return rewire_vm_wait(vm); }},
      {"rewire_vm_set_stream", [](RewireVm* vm) { return rewire_vm_set_stream(vm, device, nullptr); }},
      {"rewire_vm_done_event", [](RewireVm* vm) { return rewire_vm_done_event(vm, device, &event); }},
      {"rewire_vm_wait_for_event", [](RewireVm* vm) { return rewire_vm_wait_for_event(vm, device, &event); }},
      {"rewire_vm_record", [](RewireVm* vm) { return rewire_vm_record(vm, "free"); }},
      {"rewire_vm_set_automatic_recording",
       [](RewireVm* vm) { return rewire_vm_set_automatic_recording(vm, 1); }},
      // These show the state before the run.
      {"rewire_vm_input_report",
       [](RewireVm* vm) { return rewire_vm_input_report(vm, input, &copied, nullptr, 0, nullptr); },
       kRewireOk},
      {"rewire_vm_result",
       [drop](RewireVm* vm) {
         RewireValue* made = nullptr;
         return drop(rewire_vm_result(vm, &made), made);
       },
       kRewireOk},
      {"rewire_vm_output",
       [drop](RewireVm* vm) {
         RewireValue* made = nullptr;
         return drop(rewire_vm_output(vm, 0, &made), made);
       },
       kRewireOk},
      {"rewire_vm_output_by_name",
       [drop](RewireVm* vm) {
         RewireValue* made = nullptr;
         return drop(rewire_vm_output_by_name(vm, "no such output", &made), made);
       },
       kRewireNotFound},
      {"rewire_vm_output_tensor",
       [](RewireVm* vm) {
         DLTensor described;
         return rewire_vm_output_tensor(vm, 0, &described);
       },
       kRewireOk},
      {"rewire_vm_output_dlpack",
       [](RewireVm* vm) {
         DLManagedTensor* made = nullptr;
         const RewireStatus status = rewire_vm_output_dlpack(vm, 0, &made);
         if (made != nullptr) made->deleter(made);
         return status;
       },
       kRewireOk},
      {"rewire_vm_output_dlpack_versioned",
       [](RewireVm* vm) {
         DLManagedTensorVersioned* made = nullptr;
         const RewireStatus status = rewire_vm_output_dlpack_versioned(vm, 0, &made);
         if (made != nullptr) made->deleter(made);
         return status;
       },
       kRewireOk},
      {"rewire_vm_bytes_held", [](RewireVm* vm) { return rewire_vm_bytes_held(vm, &number); }, kRewireOk},
      {"rewire_vm_bytes_peak", [](RewireVm* vm) { return rewire_vm_bytes_peak(vm, &number); }, kRewireOk},
      {"rewire_vm_cancel", [](RewireVm*) { return kRewireOk; }, kRewireOk},  // below
  };
}

TEST_CASE("a second thread calls every function of the C API on a VM that runs") {
  std::set<std::string> declared = DeclaredInC(kTakesVm);
  declared.erase("rewire_vm_destroy");  // "It must not be running."
  const std::vector<CRow> rows = CRows();
  CHECK(NamesOf(rows) == declared);
  Gate gate;
  VirtualMachine made(GatedProgram(&gate));
  made.SetInput("x", Floats({1, 2, 3}));
  made.Invoke();
  RewireVm vm{std::move(made)};
  const Status ran = DuringRun(&gate, &vm.machine, [&] {
    for (const CRow& row : rows) {
      INFO(row.name);
      CHECK(row.call(&vm) == row.answer);
    }
  });
  CHECK(MessageOf(ran) == "");
  CHECK(FloatsOf(vm.machine.result().tensor()) == std::vector<float>{1, 2, 3});
  const auto cancel = [&vm] { CHECK(rewire_vm_cancel(&vm) == kRewireOk); };
  CHECK(DuringRun(&gate, &vm.machine, cancel).code() == StatusCode::kCancelled);
}

}  // namespace
}  // namespace rewire::test
