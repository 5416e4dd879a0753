// SPDX-License-Identifier: Apache-2.0
// The kernel on RE2 as programs use it.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

Result<Program> MatchProgram(const std::string& attributes) {
  return Program::Link(
      ExecutableOf(".kernel match = \"rewire.re2.full_match\" {" + attributes +
                   "}\n.func main(x: i64[?], offsets: i64[?], bytes: u8[?]) -> y: bool[3]\n"
                   "  %s = alloc_storage _, alignment=64, bool[3], cpu\n  %y = alloc_tensor %s, _, bool[3]\n"
                   "  invoke_packed match(%x, %offsets, %bytes, %y), outputs=1\n  ret %y\n.end\n"));
}

template <typename T>
Tensor VectorOf(std::vector<T> elements) {
  const std::int64_t size = std::ssize(elements);
  return *Tensor::CopyOf(TensorView(elements.data(), DTypeOf<T>(), Array<std::int64_t>{size}));
}

TEST_CASE("re2: an expression describes the whole string") {
  const Result<Program> program = MatchProgram("pattern=\"[a-z]+.?\"");
  REQUIRE(program);
  VirtualMachine vm(*program);
  // "ab", "a\u00e9", "aB1"
  const std::vector<Value> inputs = {
      Value(VectorOf<std::int64_t>({2, 1, 0})), Value(VectorOf<std::int64_t>({0, 2, 5, 8})),
      Value(VectorOf<std::uint8_t>({'a', 'b', 'a', 0xC3, 0xA9, 'a', 'B', '1'}))};
  const Result<Value> result = vm.TryInvoke("main", inputs);
  REQUIRE(result);
  const Tensor matches = result->tensor();
  const auto* given = static_cast<const std::uint8_t*>(matches.view().data());
  CHECK(std::vector<int>(given, given + 3) == std::vector<int>{0, 1, 1});
  const std::vector<Value> outside = {Value(VectorOf<std::int64_t>({0, 3, 0})), inputs[1], inputs[2]};
  CHECK_THAT(MessageOf(vm.TryInvoke("main", outside)),
             Catch::Contains("a position is 3, the list has 3 strings"));
}

TEST_CASE("re2: an expression that takes too much memory is refused at link") {
  const std::string letters = "\\\\pL{1000}";  // some hundred ranges of UTF-8, a thousand times
  std::string many;
  for (int i = 0; i < 20; ++i) many += letters;
  CHECK(MessageOf(MatchProgram("pattern=\"\\\\pL{3}\"")).empty());
  CHECK_THAT(MessageOf(MatchProgram("pattern=\"" + many + "\"")),
             Catch::Contains("is no expression of RE2: pattern too large"));
}

TEST_CASE("re2: what is no expression is refused at link") {
  CHECK_THAT(MessageOf(MatchProgram("pattern=\"(a\"")),
             Catch::Contains("attribute 'pattern' is no expression of RE2: missing ): (a"));
  CHECK_THAT(MessageOf(MatchProgram("pattern=\"(?=a)\"")), Catch::Contains("is no expression of RE2"));
  CHECK_THAT(MessageOf(MatchProgram("")), Catch::Contains("attribute 'pattern' is missing"));
}

}  // namespace
}  // namespace rewire::test
