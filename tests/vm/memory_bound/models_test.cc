// SPDX-License-Identifier: Apache-2.0
// Bounds of whole models, as sizes of arenas and of static memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/memory_bound/bounded_program.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

TEST_CASE("an arena of the largest bound serves all batch sizes, and one byte less not the largest") {
  std::vector<Program> programs;
  std::uint64_t largest = 0;
  for (const int batch : {1, 4, 16}) {
    const std::string type = "f32[" + std::to_string(batch) + ", 1000]";
    programs.push_back(ProgramOf(".kernel add = \"host.add\"\n.func main(x: " + type + ") -> y: " + type +
                                     "\n%s = alloc_storage _, alignment=64, " + type +
                                     ", cpu\n%t = alloc_tensor %s, _, " + type +
                                     "\ninvoke_packed add(%x, %x, %t), outputs=1\n"
                                     "%u = alloc_storage _, alignment=64, " +
                                     type + ", cpu\n%y = alloc_tensor %u, _, " + type +
                                     "\ninvoke_packed add(%t, %x, %y), outputs=1\nret %y\n.end\n",
                                 Kernels()));
    largest = std::max(largest, BoundOf(programs.back()).arena_bytes);
  }
  std::vector<float> x(16000, 1.0F);
  for (const bool enough : {true, false}) {
    VmOptions options;
    options.arena = *SharedArena::TryMake(enough ? largest : largest - 128);
    std::vector<VirtualMachine> vms;
    for (const Program& program : programs) {
      vms.push_back(VirtualMachine::Make(program, options));
      vms.back().SetInput("x", TensorView(x.data(), {vms.size() == 1 ? 1 : vms.size() == 2 ? 4 : 16, 1000}));
    }
    for (const std::size_t i : {2u, 0u, 1u, 2u, 1u, 2u, 0u}) {
      const Status status = vms[i].TryInvoke();
      CAPTURE(i, MessageOf(status));
      CHECK(status.has_value() == (enough || i < 2));
      if (status) CHECK(FloatsOf(vms[i].Output(0))[999] == 3);
    }
  }
}

// Every shape of the digits model is computed from the number of images.
TEST_CASE("the digits model keeps to the bound for every number of images up to the one given") {
  Result<Module> module = AssembleFile(std::string(SourceDir()) + "/examples/digits/digits.asm");
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  LinkOptions options;
  REQUIRE(
      MessageOf(options.kernels.AddLibrary(std::string(BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so"))
          .empty());
  Result<Program> program = Program::Link(*executable, options);
  if (!program) FAIL(program.error().message());
  const MemoryBound bound = BoundOf(*program, false, {{"N", 32}});
  REQUIRE(bound.unbounded == "");  // NOLINT: shows it
  CHECK(bound.undeclared_workspace.empty());
  const std::unique_ptr<void, Freed> memory = Block(bound.static_bytes);
  const std::vector<float> images(32 * 64, 0.5F);
  VmOptions fixed;
  fixed.memory = {memory.get(), bound.static_bytes};
  VirtualMachine in_block = VirtualMachine::Make(*program, fixed);
  for (const std::int64_t n : {32, 31, 20, 7, 1}) {
    const TensorView view(images.data(), {n, 1, 8, 8});
    VirtualMachine vm(*program);
    vm.SetInput("image", view);
    REQUIRE(MessageOf(vm.TryInvoke()).empty());
    CHECK(vm.bytes_peak() <= bound.bytes);
    in_block.SetInput("image", view);
    REQUIRE(MessageOf(in_block.TryInvoke()).empty());
    CHECK(FloatsOf(in_block.Output(0)) == FloatsOf(vm.Output(0)));
  }
}

}  // namespace
}  // namespace rewire::test
