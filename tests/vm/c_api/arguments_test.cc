// SPDX-License-Identifier: Apache-2.0
// Every function of the C API refuses what it cannot use, and says what.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/tests/vm/c_api/model.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/c_api/linked_executable.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

namespace rewire::test {
namespace {

int Nothing(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return 0; }

// A program and a VM whose handles go with it.
struct Host {
  Host() {
    REQUIRE(rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr, nullptr,
                                          &executable) == kRewireOk);
    REQUIRE(rewire_link_options_make(&options) == kRewireOk);
    REQUIRE(rewire_link_options_add_kernel(options, "host.add", Nothing, nullptr, nullptr) == kRewireOk);
    REQUIRE(rewire_link_options_add_kernel(options, "host.fail", Nothing, nullptr, nullptr) == kRewireOk);
    REQUIRE(rewire_link_options_borrow_parameter(options, "w", &vector) == kRewireOk);
    REQUIRE(rewire_program_link(executable, options, &program) == kRewireOk);
    REQUIRE(rewire_vm_make(program, nullptr, &vm) == kRewireOk);
    REQUIRE(rewire_value_from_integer(3, &integer) == kRewireOk);
  }
  ~Host() {
    rewire_value_destroy(integer);
    rewire_vm_destroy(vm);
    rewire_program_destroy(program);
    rewire_link_options_destroy(options);
    rewire_executable_destroy(executable);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  float data[2] = {1, 2};
  std::int64_t shape[1] = {2};
  DLTensor vector{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  RewireExecutable* executable = nullptr;
  RewireLinkOptions* options = nullptr;
  RewireProgram* program = nullptr;
  RewireVm* vm = nullptr;
  RewireValue* integer = nullptr;
};

TEST_CASE("NULL is refused by every function, by name") {
  Host host;
  RewireExecutable* executable = nullptr;
  RewireProgram* program = nullptr;
  RewireVm* vm = nullptr;
  RewireValue* value = nullptr;
  DLManagedTensor* managed = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
  DLTensor tensor;
  DLDevice device{kDLCPU, 0};
  const char* name = nullptr;
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  std::int64_t integer = 0;
  RewireInput input{0, 0};
  RewireOutput output{0, 0};
  const struct {
    const char* null;  // the argument that is NULL
    std::function<RewireStatus()> call;
  } calls[] = {
      {"path", [&] { return rewire_executable_open(nullptr, nullptr, &executable); }},
      {"out", [&] { return rewire_executable_open("x", nullptr, nullptr); }},
      {"path", [&] { return rewire_executable_open_bundled(nullptr, "m", nullptr, &executable); }},
      {"out", [&] { return rewire_executable_open_bundled("x", "m", nullptr, nullptr); }},
      {"linked", [&] { return rewire_executable_open_linked(nullptr, &executable); }},
      {"executable", [&] { return rewire_executable_restore_names(nullptr, "x", &executable); }},
      {"data",
       [&] { return rewire_executable_open_memory(nullptr, 0, nullptr, nullptr, nullptr, &executable); }},
      {"out", [&] { return rewire_executable_open_memory("", 0, nullptr, nullptr, nullptr, nullptr); }},
      {"executable", [&] { return rewire_executable_info(nullptr, nullptr); }},
      {"info", [&] { return rewire_executable_info(host.executable, nullptr); }},
      {"executable", [&] { return rewire_executable_function(nullptr, 0, nullptr); }},
      {"info", [&] { return rewire_executable_function(host.executable, 0, nullptr); }},
      {"name", [&] { return rewire_executable_find_function(host.executable, nullptr, &number); }},
      {"executable", [&] { return rewire_executable_input(nullptr, 0, 0, &name, &number); }},
      {"type", [&] { return rewire_executable_input_node(host.executable, 0, 0, 0, nullptr); }},
      {"type", [&] { return rewire_executable_result_node(host.executable, 0, 0, nullptr); }},
      {"executable", [&] { return rewire_executable_output(nullptr, 0, 0, &name, nullptr); }},
      {"executable", [&] { return rewire_executable_parameter(nullptr, 0, &name, nullptr); }},
      {"name", [&] { return rewire_executable_kernel(host.executable, 0, nullptr, nullptr); }},
      {"executable", [&] { return rewire_executable_device(nullptr, 0, &device, nullptr); }},
      {"device", [&] { return rewire_executable_device(host.executable, 0, nullptr, nullptr); }},
      {"name", [&] { return rewire_executable_symbol(host.executable, 0, nullptr); }},
      {"executable", [&] { return rewire_executable_signature_text(nullptr, 0, nullptr, 0, nullptr); }},
      {"buffer", [&] { return rewire_executable_signature_text(host.executable, 0, nullptr, 9, nullptr); }},
      {"executable", [&] { return rewire_executable_instruction_text(nullptr, 0, 0, nullptr, 0, nullptr); }},
      {"out", [&] { return rewire_value_copy_tensor(&host.vector, nullptr); }},
      {"tensor", [&] { return rewire_value_copy_tensor(nullptr, &value); }},
      {"tensor", [&] { return rewire_value_wrap_tensor(nullptr, nullptr, nullptr, &value); }},
      {"managed", [&] { return rewire_value_from_dlpack(nullptr, &value); }},
      {"managed", [&] { return rewire_value_from_dlpack_versioned(nullptr, &value); }},
      {"out", [&] { return rewire_value_from_integer(1, nullptr); }},
      {"out", [&] { return rewire_value_make_adt(0, nullptr, 0, nullptr); }},
      {"fields", [&] { return rewire_value_make_adt(0, nullptr, 1, &value); }},
      {"fields[0]", [&] { return rewire_value_make_adt(0, &value, 1, &value); }},
      {"value", [&] { return rewire_value_share(nullptr, &value); }},
      {"value", [&] { return rewire_value_kind(nullptr, nullptr); }},
      {"value", [&] { return rewire_value_tensor(nullptr, &tensor); }},
      {"value", [&] { return rewire_value_to_dlpack(nullptr, &managed); }},
      {"value", [&] { return rewire_value_to_dlpack_versioned(nullptr, &versioned); }},
      {"integer", [&] { return rewire_value_integer(host.integer, nullptr); }},
      {"value", [&] { return rewire_value_integer(nullptr, &integer); }},
      {"value", [&] { return rewire_value_adt(nullptr, nullptr, nullptr); }},
      {"value", [&] { return rewire_value_field(nullptr, 0, &value); }},
      {"out", [&] { return rewire_link_options_make(nullptr); }},
      {"options", [&] { return rewire_link_options_add_library_path(nullptr, "x"); }},
      {"options", [&] { return rewire_link_options_add_library(nullptr, "x"); }},
      {"path", [&] { return rewire_link_options_add_library(host.options, nullptr); }},
      {"name",
       [&] { return rewire_link_options_add_kernel(host.options, nullptr, Nothing, nullptr, nullptr); }},
      {"function",
       [&] { return rewire_link_options_add_kernel(host.options, "x", nullptr, nullptr, nullptr); }},
      {"table", [&] { return rewire_link_options_add_table(host.options, nullptr, nullptr); }},
      {"options", [&] { return rewire_link_options_use_stock_kernels(nullptr, 1); }},
      {"options", [&] { return rewire_link_options_trust_device_code(nullptr, 1); }},
      {"tensor", [&] { return rewire_link_options_add_parameter(host.options, "x", nullptr); }},
      {"tensor", [&] { return rewire_link_options_borrow_parameter(host.options, "x", nullptr); }},
      {"managed", [&] { return rewire_link_options_take_parameter(host.options, "x", nullptr); }},
      {"allocator", [&] { return rewire_link_options_set_allocator(host.options, nullptr); }},
      {"pool", [&] { return rewire_link_options_set_thread_pool(host.options, nullptr); }},
      {"options", [&] { return rewire_link_options_set_thread_count(nullptr, 1); }},
      {"options", [&] { return rewire_link_options_set_log(nullptr, nullptr, nullptr); }},
      {"device", [&] { return rewire_link_options_add_device(host.options, nullptr); }},
      {"options", [&] { return rewire_link_options_set_init_limits(nullptr, nullptr); }},
      {"options", [&] { return rewire_link_options_set_limits(nullptr, nullptr); }},
      {"options", [&] { return rewire_link_options_set_storage_fill(nullptr, kRewireFillZero); }},
      {"options", [&] { return rewire_link_options_share_init_results(nullptr, 1); }},
      {"executable", [&] { return rewire_program_link(nullptr, nullptr, &program); }},
      {"out", [&] { return rewire_program_link(host.executable, nullptr, nullptr); }},
      {"program", [&] { return rewire_program_find_function(nullptr, nullptr, &number); }},
      {"name", [&] { return rewire_program_find_input(host.program, nullptr, nullptr, &input); }},
      {"output", [&] { return rewire_program_find_output(host.program, nullptr, "y", nullptr); }},
      {"program", [&] { return rewire_program_find_output(nullptr, nullptr, "y", &output); }},
      {"program", [&] { return rewire_vm_make(nullptr, nullptr, &vm); }},
      {"out", [&] { return rewire_vm_make(host.program, nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_set_input(nullptr, input, &host.vector, kRewireCopy); }},
      {"tensor", [&] { return rewire_vm_set_input(host.vm, input, nullptr, kRewireCopy); }},
      {"name", [&] { return rewire_vm_set_input_by_name(host.vm, nullptr, &host.vector, kRewireCopy); }},
      {"vm", [&] { return rewire_vm_set_input_by_index(nullptr, 0, &host.vector, kRewireCopy); }},
      {"managed", [&] { return rewire_vm_set_input_dlpack(host.vm, input, nullptr); }},
      {"managed", [&] { return rewire_vm_set_input_dlpack_versioned(host.vm, input, nullptr); }},
      {"value", [&] { return rewire_vm_set_input_value(host.vm, input, nullptr); }},
      {"tensors", [&] { return rewire_vm_set_inputs(host.vm, 0, nullptr, 1, kRewireBorrow); }},
      {"copied", [&] { return rewire_vm_input_report(host.vm, input, nullptr, nullptr, 0, nullptr); }},
      {"vm", [&] { return rewire_vm_clear_inputs(nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_invoke(nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_invoke_function(nullptr, 0); }},
      {"vm", [&] { return rewire_vm_invoke_async(nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_wait(nullptr); }},
      {"vm", [&] { return rewire_vm_set_stream(nullptr, device, nullptr); }},
      {"event", [&] { return rewire_vm_done_event(host.vm, device, nullptr); }},
      {"event", [&] { return rewire_vm_wait_for_event(host.vm, device, nullptr); }},
      {"vm", [&] { return rewire_vm_record(nullptr, nullptr); }},
      {"inputs", [&] { return rewire_vm_call(host.vm, 0, nullptr, 1, nullptr); }},
      {"vm", [&] { return rewire_vm_result(nullptr, &value); }},
      {"vm", [&] { return rewire_vm_output(nullptr, 0, &value); }},
      {"name", [&] { return rewire_vm_output_by_name(host.vm, nullptr, &value); }},
      {"vm", [&] { return rewire_vm_output_tensor(nullptr, 0, &tensor); }},
      {"vm", [&] { return rewire_vm_output_dlpack(nullptr, 0, &managed); }},
      {"vm", [&] { return rewire_vm_output_dlpack_versioned(nullptr, 0, &versioned); }},
      {"vm", [&] { return rewire_vm_set_output(nullptr, output, &host.vector); }},
      {"tensor", [&] { return rewire_vm_set_output(host.vm, output, nullptr); }},
      {"name", [&] { return rewire_vm_set_output_by_name(host.vm, nullptr, &host.vector); }},
      {"vm", [&] { return rewire_vm_set_output_by_index(nullptr, 0, &host.vector); }},
      {"tensor", [&] { return rewire_vm_set_output_value(host.vm, output, nullptr); }},
      {"data", [&] { return rewire_vm_set_output_capacity(host.vm, output, nullptr, 8, device); }},
      {"allocate", [&] { return rewire_vm_set_output_allocator(host.vm, output, nullptr, nullptr, device); }},
      {"vm", [&] { return rewire_vm_donate(nullptr, input, output); }},
      {"vm", [&] { return rewire_vm_clear_output(nullptr, output); }},
      {"vm", [&] { return rewire_vm_clear_outputs(nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_require_zero_copy(nullptr, 1); }},
      {"vm", [&] { return rewire_vm_call_into(nullptr, 0, nullptr, 0, nullptr, nullptr, 0); }},
      {"tensors", [&] { return rewire_vm_call_into_dlpack(host.vm, 0, nullptr, 0, &output, nullptr, 1); }},
      {"program", [&] { return rewire_program_run(nullptr, 0, nullptr, nullptr, 0, nullptr); }},
      {"inputs", [&] { return rewire_program_run(host.program, 0, nullptr, nullptr, 1, nullptr); }},
      {"outputs",
       [&] { return rewire_program_run_into(host.program, 0, nullptr, nullptr, 0, nullptr, nullptr, 1); }},
      {"program", [&] { return rewire_program_output_plan(nullptr, output, nullptr, nullptr, 0, nullptr); }},
      {"outputs", [&] { return rewire_vm_call_into(host.vm, 0, nullptr, 0, nullptr, nullptr, 1); }},
      {"rank", [&] { return rewire_vm_output_shape(host.vm, output, nullptr, 0, nullptr); }},
      {"dims", [&] { return rewire_vm_output_shape(host.vm, output, nullptr, 1, &number); }},
      {"copied", [&] { return rewire_vm_output_report(host.vm, output, nullptr, nullptr, 0, nullptr); }},
      {"vm", [&] { return rewire_vm_set_limits(nullptr, nullptr); }},
      {"vm", [&] { return rewire_vm_cancel(nullptr); }},
      {"vm", [&] { return rewire_vm_set_timeout(nullptr, 1); }},
      {"bytes", [&] { return rewire_vm_bytes_held(host.vm, nullptr); }},
      {"vm", [&] { return rewire_vm_bytes_peak(nullptr, &bytes); }},
      {"vm", [&] { return rewire_vm_trim(nullptr); }},
      {"vm", [&] { return rewire_vm_set_observer(nullptr, nullptr); }},
  };
  int line = 0;
  for (const auto& entry : calls) {
    INFO("call " << line++);
    CHECK(entry.call() == kRewireInvalidArgument);
    CHECK(LastError().rfind(std::string(entry.null) + " is NULL", 0) == 0);
  }
  rewire_executable_destroy(nullptr);
  rewire_link_options_destroy(nullptr);
  rewire_program_destroy(nullptr);
  rewire_vm_destroy(nullptr);
  rewire_value_destroy(nullptr);
}

TEST_CASE("tensors that describe nothing usable are refused") {
  Host host;
  const auto set = [&](const DLTensor& tensor) {
    return rewire_vm_set_input_by_name(host.vm, "x", &tensor, kRewireBorrow);
  };
  DLTensor tensor = host.vector;
  tensor.ndim = -1;
  CHECK(set(tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "tensor: rank -1 given, 0 to 32 expected");
  tensor.ndim = 33;
  CHECK(set(tensor) == kRewireInvalidArgument);
  tensor = host.vector;
  tensor.shape = nullptr;
  CHECK(set(tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "tensor: shape is NULL");
  tensor = host.vector;
  tensor.data = nullptr;
  CHECK(set(tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "tensor: data is NULL");
  tensor = host.vector;
  tensor.dtype.bits = 0;
  CHECK(set(tensor) == kRewireInvalidArgument);
  std::int64_t negative[1] = {-2};
  tensor = host.vector;
  tensor.shape = negative;
  CHECK(set(tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "tensor: f32[-2] has a wrong element type or dimension");
  CHECK(rewire_vm_set_input_by_name(host.vm, "x", &host.vector, 7) == kRewireInvalidArgument);
  CHECK(LastError() == "there is no input mode 7");
}

TEST_CASE("of a DLPack tensor of another major version nothing but its deleter is read") {
  static int deleted;
  deleted = 0;
  DLManagedTensorVersioned managed{};
  managed.version = {2, 0};
  managed.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  managed.dl_tensor.ndim = 3;
  managed.dl_tensor.shape = reinterpret_cast<std::int64_t*>(0x10);
  managed.dl_tensor.data = reinterpret_cast<void*>(0x20);
  RewireValue* value = nullptr;
  CHECK(rewire_value_from_dlpack_versioned(&managed, &value) == kRewireUnsupported);
  CHECK(LastError() == "tensor: DLPack version 2.0 given, 1.x expected");
  CHECK(deleted == 1);
  Host host;
  CHECK(rewire_vm_set_input_dlpack_versioned(host.vm, {0, 0}, &managed) == kRewireUnsupported);
  CHECK(deleted == 2);
}

TEST_CASE("bindings are checked against the signature") {
  Host host;
  float data[3] = {};
  std::int64_t shape[1] = {3};
  DLTensor wrong = host.vector;
  wrong.data = data;
  wrong.shape = shape;
  CHECK(rewire_vm_set_input_by_name(host.vm, "x", &wrong, kRewireBorrow) == kRewireInvalidArgument);
  CHECK(LastError() == "function main, input 0 (x): f32[2] expected, f32[3] given");
  CHECK(rewire_vm_set_input_by_name(host.vm, "y", &host.vector, kRewireBorrow) == kRewireNotFound);
  CHECK(rewire_vm_set_input_by_index(host.vm, 1, &host.vector, kRewireBorrow) == kRewireNotFound);
  CHECK(rewire_vm_set_input_value(host.vm, {0, 0}, host.integer) == kRewireInvalidArgument);
  CHECK(LastError() == "function main, input 0 (x): f32[2] expected, i64[] given, for an integer");
  CHECK(rewire_vm_set_input_value(host.vm, {1, 0}, host.integer) == kRewireInvalidArgument);
  CHECK(rewire_vm_set_inputs(host.vm, 0, nullptr, 0, kRewireBorrow) == kRewireInvalidArgument);
  CHECK(LastError() == "function main takes 1 inputs, 0 given");
  const DLTensor* tensors[] = {&host.vector};
  CHECK(rewire_vm_set_inputs(host.vm, 0, tensors, 1, kRewireBorrow) == kRewireOk);
  CHECK(rewire_vm_set_inputs(host.vm, 9, tensors, 1, kRewireBorrow) == kRewireInvalidArgument);
  CHECK(rewire_vm_invoke(host.vm, "mian") == kRewireNotFound);
  CHECK(rewire_vm_invoke_function(host.vm, 9) == kRewireInvalidArgument);
  CHECK(rewire_vm_invoke_async(host.vm, "mian") == kRewireNotFound);
  CHECK(rewire_vm_record(host.vm, "mian") == kRewireNotFound);
  CHECK(rewire_vm_set_stream(host.vm, {kDLCUDA, 0}, nullptr) == kRewireInvalidArgument);
  CHECK(LastError() == "the executable does not name device cuda:0");
  void* event = nullptr;
  CHECK(rewire_vm_done_event(host.vm, {kDLCUDA, 0}, &event) == kRewireInvalidArgument);
  CHECK(rewire_vm_wait_for_event(host.vm, {kDLCUDA, 0}, &event) == kRewireInvalidArgument);
  CHECK(rewire_vm_call(host.vm, 9, nullptr, 0, nullptr) == kRewireInvalidArgument);
  CHECK(rewire_vm_wait(host.vm) == kRewireOk);  // nothing was started
  DLTensor none;
  CHECK(rewire_vm_output_tensor(host.vm, 0, &none) == kRewireInvalidArgument);
  CHECK(LastError() == "there is no result yet; invoke first");
  RewireValue* result = nullptr;
  CHECK(rewire_vm_result(host.vm, &result) == kRewireInvalidArgument);
  CHECK(LastError() == "there is no result; invoke first");
}

TEST_CASE("values of another kind are refused") {
  Host host;
  DLTensor tensor;
  RewireValue* field = nullptr;
  CHECK(rewire_value_tensor(host.integer, &tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "the value is of kind integer, tensor expected");
  CHECK(rewire_value_field(host.integer, 0, &field) == kRewireInvalidArgument);
  RewireValue* adt = nullptr;
  REQUIRE(rewire_value_make_adt(9, &host.integer, 1, &adt) == kRewireOk);
  CHECK(rewire_value_field(adt, 1, &field) == kRewireInvalidArgument);
  CHECK(LastError() == "field 1 asked for, there are 1");
  RewireValueKind kind = 0;
  CHECK(rewire_value_kind(adt, &kind) == kRewireOk);
  CHECK(kind == kRewireValueAdt);
  CHECK(rewire_link_options_add_parameter(host.options, "w", adt) == kRewireInvalidArgument);
  CHECK(LastError() == "parameter w: a tensor expected, ADT given");
  rewire_value_destroy(adt);
}

TEST_CASE("an output that is no tensor is refused as one, with its kind") {
  Host host;
  RewireValue* vector = nullptr;
  RewireValue* pair = nullptr;
  RewireValue* result = nullptr;
  REQUIRE(rewire_value_copy_tensor(&host.vector, &vector) == kRewireOk);
  const RewireValue* const fields[] = {vector, host.integer};
  REQUIRE(rewire_value_make_adt(0, fields, 2, &pair) == kRewireOk);
  std::uint32_t swap = 0;
  REQUIRE(rewire_program_find_function(host.program, "swap", &swap) == kRewireOk);
  REQUIRE(rewire_vm_call(host.vm, swap, &pair, 1, &result) == kRewireOk);
  DLTensor tensor;
  CHECK(rewire_vm_output_tensor(host.vm, 0, &tensor) == kRewireInvalidArgument);
  CHECK(LastError() == "output 0 is of kind integer, tensor expected; rewire_vm_output gives it");
  CHECK(rewire_vm_output_tensor(host.vm, 1, &tensor) == kRewireOk);
  for (RewireValue* value : {vector, pair, result}) rewire_value_destroy(value);
}

TEST_CASE("functions that are NULL are refused by name") {
  Host host;
  CHECK(rewire_vm_set_output_allocator(host.vm, {0, 0}, nullptr, nullptr, {kDLCPU, 0}) ==
        kRewireInvalidArgument);
  CHECK(LastError() == "allocate is NULL");
  int deleted = 0;
  CHECK(rewire_link_options_add_kernel(host.options, "x", nullptr, &deleted, [](void* counter) {
          ++*static_cast<int*>(counter);
        }) == kRewireInvalidArgument);
  CHECK(LastError() == "function is NULL");
  CHECK(deleted == 1);
}

TEST_CASE("services that are incomplete are refused, and what a caller handed over is given back") {
  Host host;
  RewireAllocator allocator{};
  allocator.struct_size = sizeof(allocator);
  CHECK(rewire_link_options_set_allocator(host.options, &allocator) == kRewireInvalidArgument);
  CHECK(LastError() == "RewireAllocator: allocate and deallocate are needed");
  RewireThreadPool pool{};
  pool.struct_size = sizeof(pool);
  CHECK(rewire_link_options_set_thread_pool(host.options, &pool) == kRewireInvalidArgument);
  CHECK(LastError() == "RewireThreadPool: parallel_for and a thread_count of at least 1 are needed");
  CHECK(rewire_link_options_set_thread_count(host.options, 0) == kRewireInvalidArgument);
  CHECK(LastError() == "0 threads asked for, at least 1 expected");
  CHECK(rewire_link_options_set_thread_count(host.options, 2) == kRewireOk);
  RewireDeviceApi device{};
  device.struct_size = sizeof(device);
  CHECK(rewire_link_options_add_device(host.options, &device) == kRewireInvalidArgument);
  CHECK(
      LastError() ==
      "RewireDeviceApi: struct_size, name, error, allocate, deallocate, copy and synchronize are needed, and "
      "each optional group of functions is given as a whole or not at all");
  CHECK(rewire_link_options_set_storage_fill(host.options, 3) == kRewireInvalidArgument);
  CHECK(LastError() == "there is no storage fill 3");
  RewireCodec codec{};
  codec.struct_size = sizeof(codec);
  CHECK(rewire_link_options_add_codec(host.options, &codec) == kRewireInvalidArgument);
  CHECK(LastError() == "RewireCodec: an id from 256 and decode are needed");
  RewireKernelTable table{};
  CHECK(rewire_link_options_add_table(host.options, &table, nullptr) == kRewireInvalidArgument);
  CHECK(LastError() == "table: struct_size is smaller than a RewireKernelTable");
  CHECK(rewire_link_options_add_library(host.options, "/nonexistent/kernels.so") == kRewireNotFound);

  int deleted = 0;
  const auto deleter = [](void* counter) { ++*static_cast<int*>(counter); };
  CHECK(rewire_link_options_add_kernel(nullptr, "x", Nothing, &deleted, deleter) == kRewireInvalidArgument);
  CHECK(deleted == 1);
  RewireValue* value = nullptr;
  CHECK(rewire_value_wrap_tensor(nullptr, deleter, &deleted, &value) == kRewireInvalidArgument);
  CHECK(deleted == 2);
  REQUIRE(rewire_value_wrap_tensor(&host.vector, deleter, &deleted, &value) == kRewireOk);
  CHECK(deleted == 2);
  rewire_value_destroy(value);
  CHECK(deleted == 3);
}

TEST_CASE("DLPack of another major version is refused and released") {
  Host host;
  static int deleted = 0;
  DLManagedTensorVersioned managed{};
  managed.version = {2, 0};
  managed.dl_tensor = host.vector;
  managed.deleter = [](DLManagedTensorVersioned*) { ++deleted; };
  RewireValue* value = nullptr;
  CHECK(rewire_value_from_dlpack_versioned(&managed, &value) == kRewireUnsupported);
  CHECK(LastError() == "tensor: DLPack version 2.0 given, 1.x expected");
  CHECK(deleted == 1);
  managed.version = {1, 1};
  REQUIRE(rewire_value_from_dlpack_versioned(&managed, &value) == kRewireOk);
  DLManagedTensorVersioned* out = nullptr;
  REQUIRE(rewire_value_to_dlpack_versioned(value, &out) == kRewireOk);
  CHECK(out->dl_tensor.data == host.data);
  CHECK(out->version.major == 1);
  rewire_value_destroy(value);
  CHECK(deleted == 1);
  out->deleter(out);
  CHECK(deleted == 2);
}

TEST_CASE("a program built for another version of the C API is told both") {
  CHECK(rewire_check_api_version(REWIRE_API_VERSION) == kRewireOk);
  CHECK(rewire_check_api_version(REWIRE_API_VERSION & 0xFFFF0000) == kRewireOk);
  const auto text = [](std::uint32_t version) {
    return std::to_string(version >> 16) + "." + std::to_string(version & 0xFFFF);
  };
  for (const std::uint32_t version : {REWIRE_API_VERSION + 1, REWIRE_API_VERSION + 0x10000}) {
    CHECK(rewire_check_api_version(version) == kRewireUnsupported);
    CHECK(LastError() == "the program was built for version " + text(version) +
                             " of the C API, this library has " + text(REWIRE_API_VERSION));
  }
}

TEST_CASE("each thread has its own last error") {
  Host host;
  CHECK(rewire_vm_invoke(nullptr, nullptr) == kRewireInvalidArgument);
  std::string seen = "unset";
  RewireStatus code = kRewireInternal;
  std::thread([&] {
    seen = LastError();
    code = rewire_last_error_code();
    rewire_vm_invoke_function(host.vm, 77);
  }).join();
  CHECK(seen.empty());
  CHECK(code == kRewireOk);
  CHECK(LastError() == "vm is NULL");
  CHECK(rewire_last_error_code() == kRewireInvalidArgument);
}

TEST_CASE("codes have the names that the C++ interface gives them") {
  for (RewireStatus code = kRewireOk; code <= kRewireInternal; ++code) {
    CHECK(std::string(rewire_status_name(code)) == StatusCodeName(static_cast<StatusCode>(code)));
  }
  CHECK(std::string(rewire_status_name(99)) == "unknown status");
}

TEST_CASE("linking names everything that is missing") {
  Host host;
  RewireProgram* program = nullptr;
  CHECK(rewire_program_link(host.executable, nullptr, &program) == kRewireLinkFailed);
  CHECK(LastError().find("host.add") != std::string::npos);
  CHECK(LastError().find("host.fail") != std::string::npos);
  CHECK(program == nullptr);
}

TEST_CASE("linking keeps to its limits, as far as they are given") {
  Host host;
  RewireProgram* program = nullptr;
  RewireLinkLimits limits{};
  limits.struct_size = sizeof(limits);
  limits.work = 1;
  REQUIRE(rewire_link_options_set_limits(host.options, &limits) == kRewireOk);
  CHECK(rewire_program_link(host.executable, host.options, &program) == kRewireStepLimit);
  CHECK(LastError().find("the limit is 1; raise LinkLimits::work") != std::string::npos);
  CHECK(program == nullptr);

  limits.work = 0;
  limits.timeout = 1;
  REQUIRE(rewire_link_options_set_limits(host.options, &limits) == kRewireOk);
  CHECK(rewire_program_link(host.executable, host.options, &program) == kRewireDeadlineExceeded);
  limits.timeout = -1;
  CHECK(rewire_link_options_set_limits(host.options, &limits) == kRewireInvalidArgument);
  CHECK(LastError() == "a timeout of -1 nanoseconds");
  limits.timeout = std::numeric_limits<std::int64_t>::max();
  REQUIRE(rewire_link_options_set_limits(host.options, &limits) == kRewireOk);
  REQUIRE(rewire_program_link(host.executable, host.options, &program) == kRewireOk);
  rewire_program_destroy(program);
  REQUIRE(rewire_link_options_set_limits(host.options, nullptr) == kRewireOk);
  REQUIRE(rewire_program_link(host.executable, host.options, &program) == kRewireOk);
  rewire_program_destroy(program);

  RewireFormatLimits opening{};
  opening.struct_size = sizeof(opening);
  opening.timeout = 1;
  RewireOpenOptions options{};
  options.struct_size = sizeof(options);
  options.limits = &opening;
  RewireExecutable* executable = nullptr;
  CHECK(rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr, &options,
                                      &executable) == kRewireDeadlineExceeded);
}

TEST_CASE("an index of a parameter set is that of one name until the set changes") {
  RewireParameterSet* set = nullptr;
  REQUIRE(rewire_parameter_set_make(&set) == kRewireOk);
  float element = 1;
  DLTensor tensor{};
  tensor.data = &element;
  tensor.device = {kDLCPU, 0};
  tensor.dtype = {kDLFloat, 32, 1};
  const auto add = [&](const char* name) {
    RewireValue* value = nullptr;
    REQUIRE(rewire_value_copy_tensor(&tensor, &value) == kRewireOk);
    CHECK(rewire_parameter_set_add(set, name, value) == kRewireOk);
    rewire_value_destroy(value);
  };
  const auto names = [&] {
    std::uint32_t count = 0;
    CHECK(rewire_parameter_set_count(set, &count) == kRewireOk);
    std::vector<std::string> all;
    for (std::uint32_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      CHECK(rewire_parameter_set_name(set, i, &name) == kRewireOk);
      all.emplace_back(name);
    }
    return all;
  };
  add("b");
  add("d");
  for (int i = 0; i < 2; ++i) {
    CHECK(names() == std::vector<std::string>{"b", "d"});
    RewireValue* value = nullptr;
    CHECK(rewire_parameter_set_get(set, "d", &value) == kRewireOk);
    rewire_value_destroy(value);
    CHECK(rewire_parameter_set_get(set, "c", &value) == kRewireNotFound);
  }
  add("d");  // replaced: the names stay
  CHECK(names() == std::vector<std::string>{"b", "d"});
  add("\xC3\xA4");
  add("a");
  CHECK(names() == std::vector<std::string>{"a", "b", "d", "\xC3\xA4"});
  rewire_parameter_set_destroy(set);
}

}  // namespace
}  // namespace rewire::test
