// SPDX-License-Identifier: Apache-2.0
// Bounded memory, and state, through the C API.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/c_api/model.h"
#include "rewire/vm/c_api.h"

namespace rewire::test {
namespace {

int Add(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  for (int i = 0; i < 2; ++i) {
    static_cast<float*>(RewireTensorOf(&args[2])->data)[i] =
        static_cast<const float*>(RewireTensorOf(&args[0])->data)[i] +
        static_cast<const float*>(RewireTensorOf(&args[1])->data)[i];
  }
  return 0;
}

struct SmallHost {
  SmallHost() {
    RewireExecutable* executable = nullptr;
    RewireLinkOptions* options = nullptr;
    REQUIRE(rewire_executable_open_memory(ModelBytes().data(), ModelBytes().size(), nullptr, nullptr, nullptr,
                                          &executable) == kRewireOk);
    REQUIRE(rewire_link_options_make(&options) == kRewireOk);
    REQUIRE(rewire_link_options_add_kernel(options, "host.add", Add, nullptr, nullptr) == kRewireOk);
    REQUIRE(rewire_link_options_add_kernel(options, "host.fail", Add, nullptr, nullptr) == kRewireOk);
    REQUIRE(rewire_link_options_borrow_parameter(options, "w", &vector) == kRewireOk);
    REQUIRE(rewire_program_link(executable, options, &program) == kRewireOk);
    rewire_link_options_destroy(options);
    rewire_executable_destroy(executable);
    bound.struct_size = sizeof(bound);
  }
  ~SmallHost() { rewire_program_destroy(program); }
  SmallHost(const SmallHost&) = delete;
  SmallHost& operator=(const SmallHost&) = delete;

  void Run(RewireVm* vm) {
    REQUIRE(rewire_vm_set_input_by_index(vm, 0, &vector, kRewireBorrow) == kRewireOk);
    REQUIRE(rewire_vm_invoke(vm, nullptr) == kRewireOk);
    DLTensor y{};
    REQUIRE(rewire_vm_output_tensor(vm, 0, &y) == kRewireOk);
    CHECK(static_cast<float*>(y.data)[1] == 4);
  }

  float data[2] = {1, 2};
  std::int64_t shape[1] = {2};
  DLTensor vector{data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  RewireProgram* program = nullptr;
  RewireMemoryBound bound{};
};

TEST_CASE("a VM in static memory and VMs in an arena, of the sizes that the bound says") {
  SmallHost host;
  REQUIRE(rewire_program_memory_bound(host.program, nullptr, 0, nullptr, 0, &host.bound) == kRewireOk);
  CHECK(host.bound.storage == 8);
  CHECK(host.bound.undeclared == 1);
  std::vector<unsigned char> memory(host.bound.static_bytes + 128);
  unsigned char* aligned = memory.data() + (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128);
  RewireVm* vm = nullptr;
  REQUIRE(rewire_vm_make_static(host.program, nullptr, aligned, host.bound.static_bytes, &vm) == kRewireOk);
  host.Run(vm);
  host.Run(vm);
  std::uint64_t peak = 0;
  REQUIRE(rewire_vm_bytes_peak(vm, &peak) == kRewireOk);
  CHECK(peak <= host.bound.bytes);
  rewire_vm_destroy(vm);
  CHECK(rewire_vm_make_static(host.program, nullptr, aligned, 64, &vm) == kRewireOutOfMemory);
  CHECK(LastError() == "the static memory of 64 bytes is too small for a VM");

  RewireArena* arena = nullptr;
  REQUIRE(rewire_arena_make(host.bound.arena_bytes, nullptr, &arena) == kRewireOk);
  RewireVm* first = nullptr;
  RewireVm* second = nullptr;
  REQUIRE(rewire_vm_make_in_arena(host.program, nullptr, arena, &first) == kRewireOk);
  REQUIRE(rewire_vm_make_in_arena(host.program, nullptr, arena, &second) == kRewireOk);
  rewire_arena_destroy(arena);  // the VMs keep it
  host.Run(first);
  host.Run(second);
  host.Run(first);
  rewire_vm_destroy(first);
  host.Run(second);
  rewire_vm_destroy(second);
}

TEST_CASE("what is wrong with bounds and arenas is said") {
  SmallHost host;
  CHECK(rewire_program_memory_bound(host.program, "fail", 0, nullptr, 0, &host.bound) == kRewireUnsupported);
  CHECK(LastError() ==
        "the memory of a run has no bound because fail@0 (%0 = invoke_packed fail(), outputs=0): what memory "
        "the value takes that the kernel returns is not known");
  CHECK(rewire_program_memory_bound(host.program, "none", 0, nullptr, 0, &host.bound) == kRewireNotFound);
  const RewireMaxDim dim{"M", 3};
  CHECK(rewire_program_memory_bound(host.program, "batch", 0, &dim, 1, &host.bound) ==
        kRewireInvalidArgument);
  const RewireMaxDim known{"N", 3};
  CHECK(rewire_program_memory_bound(host.program, "batch", 1, &known, 1, &host.bound) == kRewireOk);
  RewireVm* vm = nullptr;
  RewireArena* arena = nullptr;
  CHECK(rewire_program_memory_bound(nullptr, nullptr, 0, nullptr, 0, &host.bound) == kRewireInvalidArgument);
  CHECK(rewire_program_memory_bound(host.program, nullptr, 0, nullptr, 1, &host.bound) ==
        kRewireInvalidArgument);
  std::uint64_t bytes = 0;
  CHECK(rewire_program_device_memory_bound(host.program, "batch", 1, &known, 1, 1, &bytes) ==
        kRewireInvalidArgument);
  CHECK(LastError() == "device 1: the executable has no device beside the host");
  CHECK(rewire_program_device_memory_bound(host.program, "batch", 1, &known, 1, 1, nullptr) ==
        kRewireInvalidArgument);
  CHECK(rewire_vm_make_static(host.program, nullptr, nullptr, 64, &vm) == kRewireInvalidArgument);
  CHECK(rewire_arena_make(0, nullptr, &arena) == kRewireInvalidArgument);
  CHECK(rewire_arena_make(64, nullptr, nullptr) == kRewireInvalidArgument);
  CHECK(rewire_vm_make_in_arena(host.program, nullptr, nullptr, &vm) == kRewireInvalidArgument);
  rewire_arena_destroy(nullptr);
}

TEST_CASE("the state of a VM through the C API") {
  SmallHost host;
  RewireVm* vm = nullptr;
  REQUIRE(rewire_vm_make(host.program, nullptr, &vm) == kRewireOk);
  host.Run(vm);
  std::size_t size = 0;
  REQUIRE(rewire_vm_state(vm, nullptr, nullptr, 0, &size) == kRewireOk);
  std::vector<unsigned char> state(size);
  CHECK(rewire_vm_state(vm, "main", state.data(), size - 1, &size) == kRewireInvalidArgument);
  CHECK(LastError() ==
        "the state takes " + std::to_string(size) + " bytes, there is room for " + std::to_string(size - 1));
  REQUIRE(rewire_vm_state(vm, "main", state.data(), state.size(), &size) == kRewireOk);
  const TempFolder folder;
  const std::string path = (folder.path() / "c.state").string();
  REQUIRE(rewire_vm_save_state(vm, nullptr, path.c_str()) == kRewireOk);
  CHECK(ReadWholeFile(path) == std::string(state.begin(), state.end()));

  RewireVm* again = nullptr;
  REQUIRE(rewire_vm_make(host.program, nullptr, &again) == kRewireOk);
  std::uint32_t function = 99;
  REQUIRE(rewire_vm_load_state(again, path.c_str(), &function) == kRewireOk);
  CHECK(function == 0);
  REQUIRE(rewire_vm_invoke(again, nullptr) == kRewireOk);
  DLTensor y{};
  REQUIRE(rewire_vm_output_tensor(again, 0, &y) == kRewireOk);
  CHECK(static_cast<float*>(y.data)[1] == 4);
  REQUIRE(rewire_vm_set_state(again, state.data(), state.size(), nullptr) == kRewireOk);
  CHECK(rewire_vm_set_state(again, state.data(), state.size() - 1, nullptr) == kRewireInvalidFile);
  CHECK(rewire_vm_state(again, "none", nullptr, 0, &size) == kRewireNotFound);
  CHECK(rewire_vm_load_state(again, "/none.state", nullptr) == kRewireNotFound);
  CHECK(rewire_vm_save_state(again, nullptr, "/none/c.state") == kRewireIo);
  CHECK(rewire_vm_set_state(nullptr, state.data(), state.size(), nullptr) == kRewireInvalidArgument);
  rewire_vm_destroy(vm);
  rewire_vm_destroy(again);
}

}  // namespace
}  // namespace rewire::test
