// SPDX-License-Identifier: Apache-2.0
// Kernels that need aligned memory: what they read, what they write, constants, and memory of a program that
// asks for less than they.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/kernel/ffi_abi.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

TEST_CASE("kernels that need alignment get it: a copy to read, an error to write") {
  LinkOptions options;
  options.kernels.AddFunction(
      "host.copy", Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
        const DLTensor* from = RewireTensorOf(&args[0]);
        DLTensor* to = RewireTensorOf(&args[1]);
        if (reinterpret_cast<std::uintptr_t>(from->data) % 256 != 0) return -1;
        std::memcpy(to->data, from->data, static_cast<std::size_t>(from->shape[0]) * 4);
        return 0;
      }));
  VirtualMachine vm(ProgramOf(R"(
    .kernel copy = "host.copy" align=256
    .func main(x: f32[3]) -> f32[3]
      %s = alloc_storage _, alignment=256, f32[3], cpu
      %y = alloc_tensor %s, _, f32[3]
      invoke_packed copy(%x, %y), outputs=1
      ret %y
    .end
    .func shifted(x: f32[3]) -> f32[3]
      %bytes = load_consti 16
      %four = load_consti 4
      %s = alloc_storage %bytes, alignment=256, f32, cpu
      %y = alloc_tensor %s, %four, f32[3]
      invoke_packed copy(%x, %y), outputs=1
      ret %y
    .end)",
                              std::move(options)));
  alignas(256) float data[4] = {0, 1, 2, 3};
  for (const char* function : {"main", "shifted"}) {
    const InputHandle input = *vm.program().FindInput("x", function);
    REQUIRE(MessageOf(vm.TrySetInput(input, TensorView(data + 1, {3}))).empty());
  }
  REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2, 3});
  CHECK(MessageOf(vm.TryInvoke("shifted")) ==
        "shifted@23 (invoke_packed copy(%x, %4), outputs=1): argument 1, a tensor f32[3], is not aligned to "
        "the "
        "256 bytes that the kernel needs");
}

TEST_CASE("constants and parameters are aligned for kernels once, when a program is linked") {
  LinkOptions options;
  std::vector<const void*> seen;
  options.kernels.AddFunction(
      "host.look",
      Packed(
          [](void* handle, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
            for (int i = 0; i < 2; ++i) {
              static_cast<std::vector<const void*>*>(handle)->push_back(RewireTensorOf(&args[i])->data);
            }
            std::memcpy(RewireTensorOf(&args[2])->data, RewireTensorOf(&args[1])->data, 12);
            return 0;
          },
          &seen));
  alignas(256) float data[4] = {0, 1, 2, 3};
  ParameterSet set;
  set.Set("p", *Tensor::Wrap(TensorView(data + 1, {3}), nullptr));
  options.parameters.push_back(set);
  VirtualMachine vm(ProgramOf(R"(
    .const c: f32[3] = {4, 5, 6}
    .param p: f32[3]
    .kernel look = "host.look" align=256
    .func main() -> f32[3]
      %c = load_const c
      %p = load_const p
      %s = alloc_storage _, alignment=256, f32[3], cpu
      %y = alloc_tensor %s, _, f32[3]
      invoke_packed look(%c, %p, %y), outputs=1
      ret %y
    .end)",
                              std::move(options)));
  for (int run = 0; run < 2; ++run) {
    REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
    CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{1, 2, 3});
  }
  REQUIRE(seen.size() == 4);
  CHECK(std::vector<const void*>(seen.begin(), seen.begin() + 2) ==
        std::vector<const void*>(seen.begin() + 2, seen.end()));
  for (const void* address : seen) CHECK(reinterpret_cast<std::uintptr_t>(address) % 256 == 0);
}

TEST_CASE("all memory of a program is aligned as its kernels need, whatever the file asks for") {
  LinkOptions options;
  options.kernels.AddFunction("host.fill",
                              Packed([](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
                                const DLTensor* out = RewireTensorOf(&args[0]);
                                std::memset(out->data, 0x3F, 4);
                                return 0;
                              }));
  // Small and large storage, and tensors that instructions make by themselves. Blocks of the usual alignment
  // would serve by chance, all of them hardly ever.
  VirtualMachine vm(ProgramOf(R"(
    .kernel fill = "host.fill" align=4096
    .func main(x: f32[3]) -> (f32[3], f32[600], i64[1], f32[3])
      %s = alloc_storage _, alignment=16, f32[3], cpu
      %a = alloc_tensor %s, _, f32[3]
      invoke_packed fill(%a), outputs=1
      %t = alloc_storage _, alignment=64, f32[600], cpu
      %b = alloc_tensor %t, _, f32[600]
      invoke_packed fill(%b), outputs=1
      %c = shape_of %b
      invoke_packed fill(%c), outputs=1
      %d = device_copy %x, cpu, cpu
      invoke_packed fill(%d), outputs=1
      %r = alloc_adt tag=0 (%a, %b, %c, %d)
      ret %r
    .end)",
                              std::move(options)));
  alignas(4096) float x[3] = {1, 2, 3};
  alignas(4096) float first[4] = {};
  REQUIRE(MessageOf(vm.TrySetInput("x", TensorView(x, {3}))).empty());
  for (const bool misaligned : {false, true}) {
    CAPTURE(misaligned);
    // A tensor that is not made in the caller's memory is made in the program's, and may not fail there.
    if (misaligned) REQUIRE(MessageOf(vm.TrySetOutput(0, TensorView(first + 1, {3}))).empty());
    REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
    for (std::uint32_t leaf = 0; leaf < 4; ++leaf) {
      const Tensor tensor = vm.Output(leaf);
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.dl().data) % 4096 == 0);
      CHECK(*static_cast<const unsigned char*>(tensor.dl().data) == 0x3F);
    }
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, first + 1, 4);
  CHECK(bits == 0x3F3F3F3F);
}

}  // namespace
}  // namespace rewire::test
