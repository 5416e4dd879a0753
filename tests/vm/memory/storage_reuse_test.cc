// SPDX-License-Identifier: Apache-2.0
// A storage that a register still holds serves again only for what the instruction asks for.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
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

// A tensor lies where one died that may have had its type and shape.
TEST_CASE("a tensor in the place of a dead one has its own type, shape and strides") {
  std::vector<std::string> seen;
  LinkOptions options;
  options.kernels.AddFunction("note", MakePackedFunction([&seen](kernel::TensorView out) {
                                const DLTensor& dl = *out.dl_tensor();
                                std::string text = std::to_string(dl.dtype.code);
                                for (std::int32_t i = 0; i < dl.ndim; ++i) {
                                  text +=
                                      " " + std::to_string(dl.shape[i]) + "/" + std::to_string(dl.strides[i]);
                                }
                                seen.push_back(text);
                              }));
  const auto one = [](const char* type) {
    return std::string("  %t = alloc_tensor %s, _, ") + type +
           "\n  invoke_packed note(%t), outputs=1\n  kill %t\n";
  };
  const Program program = ProgramOf(
      ".kernel note = \"note\"\n.func main() -> value\n"
      "  %s = alloc_storage _, alignment=64, f32[8], cpu\n" +
          one("f32[4]") + one("f32[4]") + one("i32[4]") + one("f32[2, 2]") + one("f32[4, 1]") +
          one("f32[2, 2]") + one("f32[]") + one("f32[]") + one("f32[4]") + "  ret %s\n.end",
      std::move(options));
  REQUIRE(MessageOf(program.TryRun("main", Span<const Value>())).empty());
  CHECK(seen == std::vector<std::string>{"2 4/1", "2 4/1", "0 4/1", "2 2/2 2/1", "2 4/1 1/1", "2 2/2 2/1",
                                         "2", "2", "2 4/1"});
}

TEST_CASE("a tensor in the place of a dead one must fit on its own storage") {
  const Program program = ProgramOf(R"(
.func main() -> value
  %s = alloc_storage _, alignment=64, f32[4], cpu
  %t = alloc_tensor %s, _, f32[4]
  kill %t
  %small = alloc_storage _, alignment=64, f32[2], cpu
  %t = alloc_tensor %small, _, f32[4]
  ret %t
.end)");
  CHECK_THAT(MessageOf(program.TryRun("main", Span<const Value>())),
             Catch::Contains("f32[4] at offset 0 takes 16 bytes, the storage has 8"));
}

// A tensor's header keeps 48 bits of its size.
TEST_CASE("a tensor of 2^48 bytes and a few does not fit on a storage of a few") {
  for (const std::string shape : {"u8[281474976710660]", "f32[70368744177665]", "u8[4503599627370496, 2, 33]",
                                  "i64[1125899906842625, 8]"}) {
    CAPTURE(shape);
    const Program program = ProgramOf(R"(
.func main() -> value
  %s = alloc_storage _, alignment=64, u8[4096], cpu
  %t = alloc_tensor %s, _, )" + shape +
                                      R"(
  ret %t
.end)");
    CHECK_THAT(MessageOf(program.TryRun("main", Span<const Value>())),
               Catch::Contains(shape + " at offset 0 takes"));
  }
  const Program computed = ProgramOf(R"(
.const dims: i64[2] = {281474976710657, 4}
.func main() -> value
  %d = load_const dims
  %s = alloc_storage _, alignment=64, u8[4096], cpu
  %t = alloc_tensor_reg %s, _, %d, u8
  ret %t
.end)");
  CHECK_THAT(MessageOf(computed.TryRun("main", Span<const Value>())),
             Catch::Contains("u8[281474976710657, 4] at offset 0 takes"));
}

}  // namespace
}  // namespace rewire::test
