// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/value_spec.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"

namespace rewire::tools {
namespace {

using Kind = SpecNode::Kind;

SpecNode One(const char* text) {
  const Result<ValueSpec> spec = ParseValueSpec(text);
  INFO((spec ? "" : spec.error().message()));
  REQUIRE(spec.has_value());
  REQUIRE(spec->size() == 1);
  return spec->front();
}

template <typename T>
std::vector<T> Elements(const HostTensor& tensor) {
  std::vector<T> elements(tensor.bytes.view.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes.view.data(), tensor.bytes.view.size());
  return elements;
}

std::string ErrorOf(const std::string& text) {
  const Result<ValueSpec> spec = ParseValueSpec(text);
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().code() == StatusCode::kInvalidArgument);
  return spec.error().message();
}

TEST_CASE("files: everything behind @ at the top level") {
  CHECK(One("@x.npy").text == "x.npy");
  CHECK(One("@a,(b).npz:w").text == "a,(b).npz:w");
}

TEST_CASE("literal tensors: shape, dtype, elements") {
  const SpecNode node = One("1x3xf32=1,2.5,-3");
  CHECK(node.kind == Kind::kLiteral);
  CHECK(node.tensor.shape == std::vector<std::int64_t>{1, 3});
  CHECK((node.tensor.dtype == kFloat32));
  CHECK(Elements<float>(node.tensor) == std::vector<float>{1, 2.5F, -3});
  CHECK(Elements<std::int64_t>(One("2x2xi64=7").tensor) == std::vector<std::int64_t>{7, 7, 7, 7});
  CHECK(One("f64=1e3").tensor.shape.empty());
  CHECK(Elements<std::uint8_t>(One("2xbool=true,false").tensor) == std::vector<std::uint8_t>{1, 0});
  CHECK(One("0x4xf32=").tensor.shape == std::vector<std::int64_t>{0, 4});
  CHECK((One("2xint32=1,2").tensor.dtype == kInt32));
}

TEST_CASE("random tensors and numbers") {
  const SpecNode random = One("8x3xf32=random");
  CHECK(random.kind == Kind::kRandom);
  CHECK(random.tensor.shape == std::vector<std::int64_t>{8, 3});
  CHECK(One("-5").kind == Kind::kNumber);
  CHECK(One("2.5").text == "2.5");
}

TEST_CASE("trees in pre-order, with tags") {
  const Result<ValueSpec> spec = ParseValueSpec("(@a.npy,7(2xf32=1,2,@b.npz:m),(),3)");
  REQUIRE(spec.has_value());
  REQUIRE(spec->size() == 7);
  CHECK((*spec)[0].kind == Kind::kTree);
  CHECK((*spec)[0].field_count == 4);
  CHECK_FALSE((*spec)[0].tag.has_value());
  CHECK((*spec)[1].text == "a.npy");
  CHECK((*spec)[2].tag == 7U);
  CHECK((*spec)[2].field_count == 2);
  CHECK(Elements<float>((*spec)[3].tensor) == std::vector<float>{1, 2});
  CHECK((*spec)[4].text == "b.npz:m");
  CHECK((*spec)[5].field_count == 0);
  CHECK((*spec)[6].text == "3");
}

TEST_CASE("what is wrong is said with its column") {
  CHECK(ErrorOf("") == "expected @file, SHAPExDTYPE=NUMBERS, a number or '(' at column 1 of ''");
  CHECK(ErrorOf("@") == "expected a file's name after '@' at column 2 of '@'");
  CHECK(ErrorOf("(@a.npy") == "expected ',' or ')' at column 8 of '(@a.npy'");
  CHECK(ErrorOf("(1)x") == "unexpected text after the value at column 4 of '(1)x'");
  CHECK(ErrorOf("3xq32=1") == "'3xq32' is no shape and dtype such as 1x3xf32 at column 1 of '3xq32=1'");
  CHECK(ErrorOf("3xf32=1,2") ==
        "2 numbers for f32[3], expected 3, or one for all at column 10 of '3xf32=1,2'");
  CHECK(ErrorOf("2xf32=1,x") == "unexpected text after the value at column 8 of '2xf32=1,x'");
  CHECK(ErrorOf("2xi8=1,300") == "'300' does not fit i8 at column 8 of '2xi8=1,300'");
  CHECK(ErrorOf("99999999999x99xf32=0").rfind("a tensor of 36.0 TiB is asked for, and the machine has ", 0) ==
        0);
  CHECK(ErrorOf(std::string(100, '(')).substr(0, 28) == "trees nest deeper than 64 at");
  CHECK(ErrorOf("99999999999(1)") == "the tag does not fit 32 bits at column 1 of '99999999999(1)'");
}

TEST_CASE("bindings of inputs and outputs") {
  const Result<ValueBinding> input = ParseValueBinding("x=@x.npy");
  REQUIRE(input.has_value());
  CHECK(input->target == "x");
  CHECK(ParseValueBinding("@all.npz")->archive == "all.npz");
  CHECK_FALSE(ParseValueBinding("@x.npy").has_value());
  CHECK_FALSE(ParseValueBinding("x").has_value());
  CHECK_FALSE(ParseValueBinding("=@x.npy").has_value());
  const Result<FileBinding> output = ParseFileBinding("0=@y.npy");
  REQUIRE(output.has_value());
  CHECK(output->target == "0");
  CHECK(output->path == "y.npy");
  CHECK(ParseFileBinding("@all.safetensors")->target.empty());
  for (const char* wrong : {"y", "y=", "y=@", "y=y.npy", "@y.npy", "@", ""}) {
    INFO(wrong);
    CHECK_FALSE(ParseFileBinding(wrong).has_value());
  }
}

}  // namespace
}  // namespace rewire::tools
