// SPDX-License-Identifier: Apache-2.0
//
// While a VM runs, a second thread calls every function of the C API that takes no VM, on the executable, the
// program, the parameters and the values of the run. All of them give their documented answer.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/linked/linked_copy.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/run/second_thread.h"
#include "rewire/vm/c_api.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/c_api/linked_executable.h"

namespace rewire::test {
namespace {

std::vector<std::byte> FileBytes() {
  const Result<Module> module = Assemble(R"(
    .param w: f32[3]
    .kernel test.gate
    .func main(x: f32[3]) -> y: f32[3]
      invoke_packed test.gate(), outputs=0
      ret %x
    .end
    .func free(b: f32[N]) -> f32[N]
      ret %b
    .end
    .func weight() -> f32[3]
      %w = load_const w
      ret %w
    .end)");
  if (!module) FAIL(module.error().message());
  Result<std::vector<std::byte>> file = SerializeModule(*module);
  if (!file) FAIL(file.error().message());
  return *std::move(file);
}

int PassGate(void* gate, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
  static_cast<Gate*>(gate)->Pass();
  return 0;
}

// The objects that a run uses, and options and a set that the second thread fills in.
struct Shared {
  explicit Shared(Gate* gate) {
    path = folder.Write("shared.rwx", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    REQUIRE(rewire_executable_open(path.c_str(), nullptr, &executable) == kRewireOk);
    REQUIRE(rewire_value_copy_tensor(&tensor, &floats) == kRewireOk);
    REQUIRE(rewire_value_from_integer(7, &integer) == kRewireOk);
    REQUIRE(rewire_value_make_adt(5, &integer, 1, &adt) == kRewireOk);
    REQUIRE(rewire_parameter_set_make(&set) == kRewireOk);
    REQUIRE(rewire_parameter_set_add(set, "w", floats) == kRewireOk);
    for (RewireLinkOptions** each : {&options, &own_options}) {
      REQUIRE(rewire_link_options_make(each) == kRewireOk);
      REQUIRE(rewire_link_options_add_kernel(*each, "test.gate", PassGate, gate, nullptr) == kRewireOk);
      REQUIRE(rewire_link_options_add_parameters(*each, set) == kRewireOk);
    }
    REQUIRE(rewire_program_link(executable, options, &program) == kRewireOk);
    REQUIRE(rewire_parameter_set_make(&own_set) == kRewireOk);
  }
  ~Shared() {
    rewire_parameter_set_destroy(own_set);
    rewire_program_destroy(program);
    rewire_link_options_destroy(own_options);
    rewire_link_options_destroy(options);
    rewire_parameter_set_destroy(set);
    rewire_value_destroy(adt);
    rewire_value_destroy(integer);
    rewire_value_destroy(floats);
    rewire_executable_destroy(executable);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  TempFolder folder;
  std::string path;
  std::vector<std::byte> bytes = FileBytes();
  LinkedCopy linked{*Executable::FromBytes({{bytes.data(), bytes.size()}, nullptr})};
  float data[3] = {1, 2, 3};
  std::int64_t shape[1] = {3};
  DLTensor tensor{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  RewireExecutable* executable = nullptr;
  RewireProgram* program = nullptr;
  RewireLinkOptions* options = nullptr;
  RewireParameterSet* set = nullptr;
  RewireValue* floats = nullptr;
  RewireValue* integer = nullptr;
  RewireValue* adt = nullptr;
  // One thread fills in options and sets.
  RewireLinkOptions* own_options = nullptr;
  RewireParameterSet* own_set = nullptr;
  FakeDevice device;
};

// Gives a handle that a function has made to the function that destroys it.
template <typename Handle>
RewireStatus Drop(RewireStatus status, Handle* made, void (*destroy)(Handle*)) {
  destroy(made);
  return status;
}

RewireStatus If(bool right) { return right ? kRewireOk : kRewireInternal; }

struct Row {
  const char* name;
  std::function<RewireStatus(Shared& s)> call;
  RewireStatus answer = kRewireOk;
};

std::vector<Row> ExecutableRows() {
  static const char* name = nullptr;
  static std::uint32_t number = 0;
  static std::size_t length = 0;
  static RewireTypeNode node;
  static RewireFunctionInfo function;
  static RewireExecutableInfo info;
  static RewireModelInfo model;
  static DLDevice device;
  node.struct_size = sizeof(node);
  function.struct_size = sizeof(function);
  info.struct_size = sizeof(info);
  model.struct_size = sizeof(model);
  const auto made = [](const auto& make) {
    RewireExecutable* executable = nullptr;
    return Drop(make(&executable), executable, rewire_executable_destroy);
  };
  return {
      {"rewire_executable_open",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_executable_open(s.path.c_str(), nullptr, out); });
       }},
      {"rewire_executable_open_bundled",
       [made](Shared&) {
         return made([](auto** out) { return rewire_executable_open_bundled("/none", "m", nullptr, out); });
       },
       kRewireNotFound},
      {"rewire_executable_open_linked",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_executable_open_linked(&s.linked.linked(), out); });
       }},
      {"rewire_executable_open_memory",
       [made](Shared& s) {
         return made([&](auto** out) {
           return rewire_executable_open_memory(s.bytes.data(), s.bytes.size(), nullptr, nullptr, nullptr,
                                                out);
         });
       }},
      {"rewire_executable_restore_names",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_executable_restore_names(s.executable, "/none", out); });
       },
       kRewireNotFound},
      {"rewire_executable_destroy", [](Shared&) { return kRewireOk; }},  // of those above
      {"rewire_executable_info", [](Shared& s) { return rewire_executable_info(s.executable, &info); }},
      {"rewire_executable_function",
       [](Shared& s) { return rewire_executable_function(s.executable, 0, &function); }},
      {"rewire_executable_find_function",
       [](Shared& s) { return rewire_executable_find_function(s.executable, "free", &number); }},
      {"rewire_executable_input",
       [](Shared& s) { return rewire_executable_input(s.executable, 0, 0, &name, &number); }},
      {"rewire_executable_input_node",
       [](Shared& s) { return rewire_executable_input_node(s.executable, 0, 0, 0, &node); }},
      {"rewire_executable_result_node",
       [](Shared& s) { return rewire_executable_result_node(s.executable, 0, 0, &node); }},
      {"rewire_executable_output",
       [](Shared& s) { return rewire_executable_output(s.executable, 0, 0, &name, &node); }},
      {"rewire_executable_parameter",
       [](Shared& s) { return rewire_executable_parameter(s.executable, 0, &name, &node); }},
      {"rewire_executable_kernel",
       [](Shared& s) { return rewire_executable_kernel(s.executable, 0, &name, nullptr); }},
      {"rewire_executable_device",
       [](Shared& s) { return rewire_executable_device(s.executable, 0, &device, nullptr); }},
      {"rewire_executable_symbol",
       [](Shared& s) { return rewire_executable_symbol(s.executable, 0, &name); }},
      {"rewire_executable_signature_text",
       [](Shared& s) { return rewire_executable_signature_text(s.executable, 0, nullptr, 0, &length); }},
      {"rewire_executable_instruction_text",
       [](Shared& s) { return rewire_executable_instruction_text(s.executable, 0, 0, nullptr, 0, &length); }},
      {"rewire_executable_model", [](Shared& s) { return rewire_executable_model(s.executable, &model); }},
      {"rewire_executable_model_text",
       [](Shared& s) {
         return rewire_executable_model_text(s.executable, kRewireModelProducer, nullptr, 0, &length);
       }},
      {"rewire_executable_model_property_key",
       [](Shared& s) { return rewire_executable_model_property_key(s.executable, 0, nullptr, 0, &length); },
       kRewireInvalidArgument},
      {"rewire_executable_model_property_value",
       [](Shared& s) { return rewire_executable_model_property_value(s.executable, 0, nullptr, 0, &length); },
       kRewireInvalidArgument},
  };
}

// Options are filled in while a program of others runs that were linked with the same kernels and parameters.
std::vector<Row> OptionRows() {
  static const RewireCodec codec{sizeof(RewireCodec), 256, nullptr,
                                 [](void*, const void*, std::size_t, void*, std::size_t) { return 1; }};
  static const RewireAllocator allocator{
      sizeof(RewireAllocator), nullptr,
      [](void*, std::size_t size, std::size_t alignment) {
        return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
      },
      [](void*, void* pointer, std::size_t, std::size_t) { std::free(pointer); }};
  static const RewireThreadPool pool{
      sizeof(RewireThreadPool), 1, nullptr,
      [](void*, std::int64_t begin, std::int64_t end, std::int64_t, void (*body)(void*, int64_t, int64_t),
         void* data) { body(data, begin, end); },
      nullptr};
  static const RewireKernelTable table{sizeof(RewireKernelTable), 0, nullptr, nullptr};
  static const RewireLimits limits{sizeof(RewireLimits), 9, 9, 0};
  static const RewireLinkLimits link_limits{sizeof(RewireLinkLimits), 0, 0, 0};
  return {
      {"rewire_link_options_make",
       [](Shared&) {
         RewireLinkOptions* made = nullptr;
         return Drop(rewire_link_options_make(&made), made, rewire_link_options_destroy);
       }},
      {"rewire_link_options_destroy", [](Shared&) { return kRewireOk; }},  // above
      {"rewire_link_options_add_library_path",
       [](Shared& s) { return rewire_link_options_add_library_path(s.own_options, "/none"); }},
      {"rewire_link_options_add_library",
       [](Shared& s) { return rewire_link_options_add_library(s.own_options, "none.so"); }, kRewireNotFound},
      {"rewire_link_options_add_kernel",
       [](Shared& s) {
         return rewire_link_options_add_kernel(s.own_options, "test.other", PassGate, nullptr, nullptr);
       }},
      {"rewire_link_options_add_table",
       [](Shared& s) { return rewire_link_options_add_table(s.own_options, &table, nullptr); }},
      {"rewire_link_options_use_stock_kernels",
       [](Shared& s) { return rewire_link_options_use_stock_kernels(s.own_options, 0); }},
      {"rewire_link_options_trust_device_code",
       [](Shared& s) { return rewire_link_options_trust_device_code(s.own_options, 1); }},
      {"rewire_kernel_api", [](Shared&) { return If(rewire_kernel_api() != nullptr); }},
      {"rewire_link_options_add_parameters",
       [](Shared& s) { return rewire_link_options_add_parameters(s.own_options, s.set); }},
      {"rewire_link_options_ignore_extra_parameters",
       [](Shared& s) { return rewire_link_options_ignore_extra_parameters(s.own_options, 1); }},
      {"rewire_link_options_add_codec",
       [](Shared& s) { return rewire_link_options_add_codec(s.own_options, &codec); }},
      {"rewire_link_options_add_parameter",
       [](Shared& s) { return rewire_link_options_add_parameter(s.own_options, "w", s.floats); }},
      {"rewire_link_options_borrow_parameter",
       [](Shared& s) { return rewire_link_options_borrow_parameter(s.own_options, "w", &s.tensor); }},
      {"rewire_link_options_take_parameter",
       [](Shared& s) {
         DLManagedTensor* managed = nullptr;
         const RewireStatus status = rewire_value_to_dlpack(s.floats, &managed);
         return status == kRewireOk ? rewire_link_options_take_parameter(s.own_options, "w", managed)
                                    : status;
       }},
      {"rewire_link_options_set_allocator",
       [](Shared& s) { return rewire_link_options_set_allocator(s.own_options, &allocator); }},
      {"rewire_link_options_set_thread_pool",
       [](Shared& s) { return rewire_link_options_set_thread_pool(s.own_options, &pool); }},
      {"rewire_link_options_set_thread_count",
       [](Shared& s) { return rewire_link_options_set_thread_count(s.own_options, 2); }},
      {"rewire_link_options_set_log",
       [](Shared& s) { return rewire_link_options_set_log(s.own_options, nullptr, nullptr); }},
      {"rewire_link_options_add_device",
       [](Shared& s) { return rewire_link_options_add_device(s.own_options, &s.device.api); }},
      {"rewire_link_options_set_init_limits",
       [](Shared& s) { return rewire_link_options_set_init_limits(s.own_options, &limits); }},
      {"rewire_link_options_set_limits",
       [](Shared& s) { return rewire_link_options_set_limits(s.own_options, &link_limits); }},
      {"rewire_link_options_set_storage_fill",
       [](Shared& s) { return rewire_link_options_set_storage_fill(s.own_options, kRewireFillZero); }},
      {"rewire_link_options_share_init_results",
       [](Shared& s) { return rewire_link_options_share_init_results(s.own_options, 1); }},
  };
}

std::vector<Row> SharedProgramRows() {
  static std::uint32_t number = 0;
  static std::uint64_t bytes = 0;
  static std::int32_t rewired = 0;
  static RewireInput input;
  static RewireOutput output;
  static const RewireMaxDim dims[1] = {{"N", 3}};
  static RewireMemoryBound bound;
  alignas(128) static char memory[1 << 16];
  bound.struct_size = sizeof(bound);
  return {
      {"rewire_program_link",
       [](Shared& s) {
         RewireProgram* made = nullptr;
         return Drop(rewire_program_link(s.executable, s.own_options, &made), made, rewire_program_destroy);
       }},
      {"rewire_program_destroy", [](Shared&) { return kRewireOk; }},  // above
      {"rewire_program_rebind",
       [](Shared& s) {
         RewireProgram* made = nullptr;
         const RewireParameterSet* sets[1] = {s.set};
         return Drop(rewire_program_rebind(s.program, sets, 1, &made), made, rewire_program_destroy);
       }},
      {"rewire_parameter_set_of_program",
       [](Shared& s) {
         RewireParameterSet* made = nullptr;
         return Drop(rewire_parameter_set_of_program(s.program, &made), made, rewire_parameter_set_destroy);
       }},
      {"rewire_program_find_function",
       [](Shared& s) { return rewire_program_find_function(s.program, "free", &number); }},
      {"rewire_program_find_input",
       [](Shared& s) { return rewire_program_find_input(s.program, nullptr, "x", &input); }},
      {"rewire_program_find_output",
       [](Shared& s) { return rewire_program_find_output(s.program, nullptr, "y", &output); }},
      {"rewire_program_memory_bound",
       [](Shared& s) { return rewire_program_memory_bound(s.program, "free", 0, dims, 1, &bound); }},
      {"rewire_program_device_memory_bound",
       [](Shared& s) { return rewire_program_device_memory_bound(s.program, "free", 0, dims, 1, 0, &bytes); },
       kRewireInvalidArgument},  // of the host
      {"rewire_program_run",
       [](Shared& s) {
         RewireValue* made = nullptr;
         return Drop(rewire_program_run(s.program, 1, nullptr, &s.floats, 1, &made), made,
                     rewire_value_destroy);
       }},
      {"rewire_program_run_into",
       [](Shared& s) {
         float to[3] = {};
         DLTensor into = s.tensor;
         into.data = to;
         const DLTensor* tensors[1] = {&into};
         const RewireOutput first{1, 0};
         const RewireStatus status =
             rewire_program_run_into(s.program, 1, nullptr, &s.floats, 1, &first, tensors, 1);
         return status == kRewireOk ? If(to[2] == 3) : status;
       }},
      {"rewire_program_output_plan",
       [](Shared& s) {
         return rewire_program_output_plan(s.program, {0, 0}, &rewired, nullptr, 0, nullptr);
       }},
      {"rewire_vm_make",
       [](Shared& s) {
         RewireVm* made = nullptr;
         return Drop(rewire_vm_make(s.program, nullptr, &made), made, rewire_vm_destroy);
       }},
      {"rewire_vm_make_static",
       [](Shared& s) {
         RewireVm* made = nullptr;
         return Drop(rewire_vm_make_static(s.program, nullptr, memory, sizeof(memory), &made), made,
                     rewire_vm_destroy);
       }},
      {"rewire_arena_make",
       [](Shared&) {
         RewireArena* made = nullptr;
         return Drop(rewire_arena_make(1 << 16, nullptr, &made), made, rewire_arena_destroy);
       }},
      {"rewire_arena_destroy", [](Shared&) { return kRewireOk; }},  // above
      {"rewire_vm_make_in_arena",
       [](Shared& s) {
         RewireArena* arena = nullptr;
         RewireVm* made = nullptr;
         if (rewire_arena_make(1 << 16, nullptr, &arena) != kRewireOk) return RewireStatus{kRewireInternal};
         const RewireStatus status =
             Drop(rewire_vm_make_in_arena(s.program, nullptr, arena, &made), made, rewire_vm_destroy);
         return Drop(status, arena, rewire_arena_destroy);
       }},
      {"rewire_vm_destroy", [](Shared&) { return kRewireOk; }},  // of those above
  };
}

std::vector<Row> ValueRows() {
  static std::uint32_t number = 0;
  static const char* name = nullptr;
  const auto made = [](const auto& make) {
    RewireValue* value = nullptr;
    return Drop(make(&value), value, rewire_value_destroy);
  };
  // A managed tensor of the shared value goes to `take`, which takes it over.
  const auto managed = [](Shared& s, auto to_dlpack, const auto& take) {
    RewireValue* value = nullptr;
    const RewireStatus status = take(to_dlpack(s.floats), &value);
    return Drop(status, value, rewire_value_destroy);
  };
  const auto to_dlpack = [](const RewireValue* value) {
    DLManagedTensor* out = nullptr;
    return rewire_value_to_dlpack(value, &out) == kRewireOk ? out : nullptr;
  };
  const auto to_versioned = [](const RewireValue* value) {
    DLManagedTensorVersioned* out = nullptr;
    return rewire_value_to_dlpack_versioned(value, &out) == kRewireOk ? out : nullptr;
  };
  return {
      {"rewire_parameter_set_make",
       [](Shared&) {
         RewireParameterSet* set = nullptr;
         return Drop(rewire_parameter_set_make(&set), set, rewire_parameter_set_destroy);
       }},
      {"rewire_parameter_set_destroy", [](Shared&) { return kRewireOk; }},  // above
      {"rewire_parameter_set_open",
       [](Shared& s) {
         RewireParameterSet* set = nullptr;
         return Drop(rewire_parameter_set_open(s.path.c_str(), nullptr, nullptr, 0, &set), set,
                     rewire_parameter_set_destroy);
       }},
      {"rewire_parameter_set_add",
       [](Shared& s) { return rewire_parameter_set_add(s.own_set, "v", s.floats); }},
      {"rewire_parameter_set_count", [](Shared& s) { return rewire_parameter_set_count(s.set, &number); }},
      {"rewire_parameter_set_name", [](Shared& s) { return rewire_parameter_set_name(s.set, 0, &name); }},
      {"rewire_parameter_set_get",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_parameter_set_get(s.set, "w", out); });
       }},
      {"rewire_value_copy_tensor",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_value_copy_tensor(&s.tensor, out); });
       }},
      {"rewire_value_wrap_tensor",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_value_wrap_tensor(&s.tensor, nullptr, nullptr, out); });
       }},
      {"rewire_value_from_dlpack",
       [=](Shared& s) { return managed(s, to_dlpack, rewire_value_from_dlpack); }},
      {"rewire_value_from_dlpack_versioned",
       [=](Shared& s) { return managed(s, to_versioned, rewire_value_from_dlpack_versioned); }},
      {"rewire_value_to_dlpack", [](Shared&) { return kRewireOk; }},            // above
      {"rewire_value_to_dlpack_versioned", [](Shared&) { return kRewireOk; }},  // above
      {"rewire_value_from_integer",
       [made](Shared&) { return made([](auto** out) { return rewire_value_from_integer(7, out); }); }},
      {"rewire_value_make_adt",
       [made](Shared& s) {
         return made([&](auto** out) { return rewire_value_make_adt(1, &s.floats, 1, out); });
       }},
      {"rewire_value_share",
       [made](Shared& s) { return made([&](auto** out) { return rewire_value_share(s.floats, out); }); }},
      {"rewire_value_destroy", [](Shared&) { return kRewireOk; }},  // of those above
      {"rewire_value_kind",
       [](Shared& s) {
         RewireValueKind kind = 0;
         const RewireStatus status = rewire_value_kind(s.adt, &kind);
         return status == kRewireOk ? If(kind == kRewireValueAdt) : status;
       }},
      {"rewire_value_tensor",
       [](Shared& s) {
         DLTensor described;
         const RewireStatus status = rewire_value_tensor(s.floats, &described);
         return status == kRewireOk ? If(static_cast<float*>(described.data)[2] == 3) : status;
       }},
      {"rewire_value_integer",
       [](Shared& s) {
         std::int64_t integer = 0;
         const RewireStatus status = rewire_value_integer(s.integer, &integer);
         return status == kRewireOk ? If(integer == 7) : status;
       }},
      {"rewire_value_adt",
       [](Shared& s) {
         std::uint32_t tag = 0;
         const RewireStatus status = rewire_value_adt(s.adt, &tag, &number);
         return status == kRewireOk ? If(tag == 5 && number == 1) : status;
       }},
      {"rewire_value_field",
       [made](Shared& s) { return made([&](auto** out) { return rewire_value_field(s.adt, 0, out); }); }},
      {"rewire_api_version", [](Shared&) { return If(rewire_api_version() == REWIRE_API_VERSION); }},
      {"rewire_check_api_version", [](Shared&) { return rewire_check_api_version(REWIRE_API_VERSION); }},
      {"rewire_status_name",
       [](Shared&) { return If(std::string("not found") == rewire_status_name(kRewireNotFound)); }},
      {"rewire_last_error_code",
       [](Shared& s) {
         std::uint32_t found = 0;
         const RewireStatus failed = rewire_program_find_function(s.program, "none", &found);
         return If(failed == kRewireNotFound && rewire_last_error_code() == failed);
       }},
      {"rewire_last_error_message",
       [](Shared&) {
         return If(std::string(rewire_last_error_message()).find("none") != std::string::npos);
       }},
  };
}

TEST_CASE("a second thread calls every function of the C API that takes no VM, on what a run uses") {
  std::vector<Row> rows = ExecutableRows();
  for (const auto& more : {OptionRows(), SharedProgramRows(), ValueRows()})
    rows.insert(rows.end(), more.begin(), more.end());
  std::set<std::string> declared = DeclaredInC(R"(\b(rewire_\w+)\()");
  for (const std::string& name : DeclaredInC(kTakesVm)) declared.erase(name);
  declared.insert("rewire_vm_destroy");  // not of the VM that runs
  CHECK(NamesOf(rows) == declared);
  Gate gate;
  Shared shared(&gate);
  VirtualMachine vm(shared.program->program);
  vm.SetInput("x", Floats({1, 2, 3}));
  const Status ran = DuringRun(&gate, &vm, [&] {
    for (const Row& row : rows) {
      const RewireStatus answer = row.call(shared);
      INFO(row.name << ", last failure: " << rewire_last_error_message());
      CHECK(answer == row.answer);
    }
  });
  CHECK(MessageOf(ran) == "");
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2, 3});
}

}  // namespace
}  // namespace rewire::test
