// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "executable_format/import/tvm.h"
#include "tests/executable_format/import/foreign_files.h"

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

std::string ErrorOf(const std::string& bytes) {
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
  CHECK_THAT(ErrorOf(List(kInt32, {3}, "12345678")),
             Contains("parameter 'weight' claims 8 bytes") && Contains("12"));
  CHECK_THAT(ErrorOf(List(kInt32, {-2}, "12345678")), Contains("no valid number"));
  CHECK_THAT(ErrorOf(List(kInt32, {1LL << 32, 1LL << 32}, "12345678")), Contains("no valid number"));
  CHECK_THAT(ErrorOf(List(kInt32, std::vector<std::int64_t>(33, 1), "1234")), Contains("rank 33"));
  CHECK_THAT(ErrorOf(List(MakeDType(kFloat, 32, 4), {1}, "1234567812345678")), Contains("4 lanes"));
  CHECK_THAT(ErrorOf(List(DLDataType{77, 32, 1}, {1}, "1234")), Contains("code 77"));
  CHECK_THAT(ErrorOf(List(kInt32, {2}, "12345678", 2)), Contains("1 names and 2 tensors"));
  CHECK_THAT(ErrorOf("not parameters"), Contains("not a parameter file"));
}

TEST_CASE("the old boolean, one bit in a byte, is a boolean") {
  Result<NamedTensors> list =
      ReadParameterList(Share(List(MakeDType(kUInt, 1), {2}, std::string("\1\0", 2))).view);
  REQUIRE(list);
  CHECK((list->front().second.dtype == kBool8));
}

}  // namespace
}  // namespace rewire::tvm
