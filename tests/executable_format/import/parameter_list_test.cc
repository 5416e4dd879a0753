// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;

std::string List(DLDataType dtype, const std::vector<std::int64_t>& shape, const std::string& elements,
                 std::uint64_t count = 1) {
  StreamWriter out;
  out.Put(std::uint64_t{0xF7E58D4F05049CB7});
  out.Put(std::uint64_t{0});
  out.Strings({"weight"});
  out.Count(count);
  out.Tensor(dtype, shape, elements);
  return out.bytes();
}

std::string ListErrorOf(const std::string& bytes) {
  Result<NamedTensors> list = ReadParameterList(Share(bytes).view);
  REQUIRE_FALSE(list);
  return list.error().message();
}

TEST_CASE("a parameter file gives names and tensors that point into it") {
  const SharedBytes file = Share(List(kInt32, {2}, std::string("\1\0\0\0\2\0\0\0", 8)));
  CHECK(IsParameterList(file.view));
  Result<NamedTensors> list = ReadParameterList(file.view);
  REQUIRE(list);
  REQUIRE(list->size() == 1);
  const auto& [name, tensor] = list->front();
  CHECK(name == "weight");
  CHECK((tensor.dtype == kInt32));
  CHECK(tensor.shape == std::vector<std::int64_t>{2});
  CHECK(tensor.bytes.data() == file.view.data() + file.view.size() - 8);
}

TEST_CASE("a parameter file cut anywhere is refused") {
  const std::string bytes = List(kInt32, {2}, "12345678");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(ReadParameterList(Share(bytes.substr(0, size)).view));
}

TEST_CASE("tensors whose header contradicts itself are refused") {
  CHECK(ListErrorOf(List(kInt32, {3}, "12345678")) ==
        "parameter 'weight' claims 8 bytes, its i32 elements of shape [3] take 12");
  CHECK_THAT(ListErrorOf(List(kInt32, {-2}, "12345678")), Contains("no valid number"));
  CHECK_THAT(ListErrorOf(List(kInt32, {1LL << 32, 1LL << 32}, "12345678")), Contains("no valid number"));
  CHECK(ListErrorOf(List(kInt32, std::vector<std::int64_t>(33, 1), "1234")) ==
        "parameter 'weight' has rank 33; it is 0 to 32");
  CHECK(ListErrorOf(List(MakeDType(kFloat, 32, 4), {1}, "1234567812345678")) ==
        "parameter 'weight' has elements of 4 lanes; only 1 can be read back");
  CHECK_THAT(ListErrorOf(List(DLDataType{77, 32, 1}, {1}, "1234")), Contains("code 77"));
  CHECK(ListErrorOf(List(kInt32, {2}, "12345678", 2)) == "the parameter file has 1 names and 2 tensors");
  CHECK(ListErrorOf("not parameters") ==
        "not a parameter file of TVM: it starts with 0x6172617020746f6e instead of 0xf7e58d4f05049cb7");
  std::string negative = List(kInt32, {2}, "12345678"), headless = negative;
  const std::size_t header =
      headless.find("weight") + 6 + sizeof(std::uint64_t);    // behind the count of tensors
  negative[header + 3 * sizeof(std::uint64_t) + 3] = '\x80';  // of the rank
  CHECK(ListErrorOf(negative) == "parameter 'weight' has rank -2147483647; it is 0 to 32");
  headless[header] = 0;
  CHECK(ListErrorOf(headless) ==
        "parameter 'weight' starts with 0xdd5e40f096b4a100 instead of a tensor's 0xdd5e40f096b4a13f");
}

TEST_CASE("the old boolean, one bit in a byte, is a boolean") {
  Result<NamedTensors> list =
      ReadParameterList(Share(List(MakeDType(kUInt, 1), {2}, std::string("\1\0", 2))).view);
  REQUIRE(list);
  CHECK((list->front().second.dtype == kBool8));
}

}  // namespace
}  // namespace rewire::tvm
