// SPDX-License-Identifier: Apache-2.0
// Kernels that make and take lists of tensors, which need a VM.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// A tensor without elements may have null data. Moving a null pointer on is undefined.
TEST_CASE("a tensor without elements and without memory is split") {
  Result<Program> program = Program::Link(ExecutableOf(R"(
.kernel split = "rewire.seq.split" {axis=-1} objects
.func main(x: i32[?, ?, ?]) -> value
  %parts = invoke_packed split(%x), outputs=0
  ret %parts
.end
)"),
                                          {});
  if (!program) FAIL(program.error().message());
  VirtualMachine vm(*program);
  vm.SetInput(0, TensorView(static_cast<std::int32_t*>(nullptr), {std::int64_t{1} << 40, 0, 2}));
  REQUIRE(MessageOf(vm.TryInvoke()).empty());
  REQUIRE(vm.result().kind() == ValueKind::kAdt);
}

}  // namespace
}  // namespace rewire::test
