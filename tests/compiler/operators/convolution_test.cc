// SPDX-License-Identifier: Apache-2.0
// The compiler names the attribute of a window that has a wrong number, with the range, for every operator.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/kernels/contract/window.h"
#include "rewire/tests/compiler/one_output.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kMostWindow = contract::WindowAttributes::kMost;
constexpr std::size_t kSpatial = 2;

struct Given {
  const char* name;
  std::vector<std::int64_t> values;
};

// The reason why an operator over [1, 2, 9, 9] is refused; empty if it compiles. A convolution has weights of
// [2, 2, 3, 3], a pool a window of 3 x 3.
std::string Reason(const std::string& type, const Given& given) {
  OneOutput model(22, {1, 2, 9, 9});
  onnx::NodeProto* node = nullptr;
  if (type == "Conv") {
    AddFloats(model.graph(), "w", {2, 2, 3, 3}, std::vector<float>(36, 1));
    node = AddNode(model.graph(), type, {"x", "w"}, "y");
  } else {
    node = AddNode(model.graph(), type, {"x"}, "y");
    if (std::string(given.name) != "kernel_shape") AddIntList(node, "kernel_shape", {3, 3});
  }
  AddIntList(node, given.name, given.values);
  const Outcome outcome = CompileProto(*model.model());
  return outcome.unsupported.empty() ? outcome.message : outcome.unsupported[0].reason;
}

TEST_CASE("a number of a window that is out of range is named with its attribute, place and range") {
  for (const char* type : {"Conv", "AveragePool", "MaxPool", "LpPool"}) {
    const bool pool = std::string(type) != "Conv";
    const auto check = [&](const char* name, std::size_t count, std::int64_t least, std::int64_t usual) {
      for (std::size_t i = 0; i < count; ++i) {
        for (const std::int64_t value :
             {least - 1, std::int64_t{-5}, kMostWindow + 1, std::int64_t{1} << 40}) {
          std::vector<std::int64_t> values(count, usual);
          values[i] = value;
          INFO(type << ' ' << name << '[' << i << "] = " << value);
          CHECK(Reason(type, {name, values}) ==
                std::string(name) + '[' + std::to_string(i) + "] is " + std::to_string(value) +
                    ", expected " + std::to_string(least) + " to " + std::to_string(kMostWindow));
        }
      }
      std::vector<std::int64_t> values(count + 1, usual);
      CHECK(Reason(type, {name, values}) == std::string(name) + " has " + std::to_string(count + 1) +
                                                " numbers, expected " + std::to_string(count) +
                                                " for 2 spatial axes");
      values.resize(count);
      CHECK(Reason(type, {name, values}).empty());
    };
    contract::WindowAttributes().ForEachList(kSpatial, [&](const contract::WindowAttributes::List& list) {
      check(list.name, list.count, list.least, list.least == 0 ? 1 : list.least);
    });
    if (pool) check("kernel_shape", kSpatial, 1, 3);
  }
}

TEST_CASE("a window's auto_pad is one of four texts") {
  OneOutput model(22, {1, 2, 9, 9});
  onnx::NodeProto* node = AddNode(model.graph(), "MaxPool", {"x"}, "y");
  AddIntList(node, "kernel_shape", {3, 3});
  AddString(node, "auto_pad", "SAME");
  const Outcome outcome = CompileProto(*model.model());
  REQUIRE(outcome.unsupported.size() == 1);
  CHECK(outcome.unsupported[0].reason ==
        "auto_pad is 'SAME', expected one of NOTSET, SAME_UPPER, SAME_LOWER, VALID");
}

}  // namespace
}  // namespace rewire::test
