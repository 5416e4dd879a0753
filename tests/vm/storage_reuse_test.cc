// SPDX-License-Identifier: Apache-2.0
// A storage that a register still holds serves again only for what the instruction asks for.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

struct Seen {
  std::vector<const void*> data;
  std::vector<std::int64_t> sizes;
};

Program LoopOf(const std::string& body, Seen* seen) {
  LinkOptions options;
  options.kernels.AddFunction("note", MakePackedFunction([seen](kernel::TensorView out) {
                                seen->data.push_back(out.raw_data());
                                seen->sizes.push_back(out.dim(0));
                              }));
  options.kernels.AddFunction("next",
                              MakePackedFunction([](kernel::TensorView size, kernel::TensorView twice) {
                                *twice.data<std::int64_t>() = 2 * *size.data<std::int64_t>();
                              }));
  return ProgramOf(R"(
.kernel note = "note"
.kernel next = "next"
.const first: i64[] = 16
.const last: i64[] = 256
.func main() -> value
  %size = load_const first
  %end = load_const last
again:
)" + body + R"(
  %m = alloc_storage _, alignment=64, i64[], cpu
  %twice = alloc_tensor %m, _, i64[]
  invoke_packed next(%size, %twice), outputs=1
  %size = move %twice
  if %size == %end goto done else again
done:
  ret %size
.end)",
                   std::move(options));
}

TEST_CASE("two instructions that make storages in one register make one of their own each") {
  Seen seen;
  const Program program = LoopOf(R"(
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %t = alloc_tensor %s, _, f32[4]
  invoke_packed note(%t), outputs=1
  kill %t
  %s = alloc_storage _, alignment=128, f32[40], cpu
  %t = alloc_tensor %s, _, f32[40]
  invoke_packed note(%t), outputs=1
  kill %t)",
                                 &seen);
  REQUIRE(MessageOf(program.TryRun("main", Span<const Value>())).empty());
  CHECK(seen.sizes == std::vector<std::int64_t>{4, 40, 4, 40, 4, 40, 4, 40});
  for (std::size_t i = 1; i < seen.data.size(); i += 2) {
    CHECK(reinterpret_cast<std::uintptr_t>(seen.data[i]) % 128 == 0);
  }
}

TEST_CASE("a storage whose size is computed has the size of each round") {
  Seen seen;
  const Program program = LoopOf(R"(
  %s = alloc_storage %size, alignment=64, u8, cpu
  %t = alloc_tensor_reg %s, _, %size, u8
  invoke_packed note(%t), outputs=1
  kill %t)",
                                 &seen);
  REQUIRE(MessageOf(program.TryRun("main", Span<const Value>())).empty());
  CHECK(seen.sizes == std::vector<std::int64_t>{16, 32, 64, 128});
}

TEST_CASE("a storage that a tensor lies on does not serve for another one") {
  Seen seen;
  const Program program = LoopOf(R"(
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %t = alloc_tensor %s, _, f32[4]
  invoke_packed note(%t), outputs=1)",
                                 &seen);
  REQUIRE(MessageOf(program.TryRun("main", Span<const Value>())).empty());
  REQUIRE(seen.data.size() == 4);
  for (std::size_t i = 1; i < seen.data.size(); ++i) CHECK(seen.data[i] != seen.data[i - 1]);
}

}  // namespace
}  // namespace rewire::test
