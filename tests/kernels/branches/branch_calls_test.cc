// SPDX-License-Identifier: Apache-2.0
// rewire.branches: what it computes, and the attributes that it refuses.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

// Arguments: the inputs x (0) and y (1); outputs 2 of branch 0, and 3 of branch 1.
AttributeList TwoBranches() {
  return {{"inputs", 2},
          {"outputs", Ints{0, 1}},
          {"kernels", "rewire.add rewire.relu rewire.softmax"},
          {"calls", Ints{0, 3, 0, 1, 2, 0, 2, 2, 2, 1, 2, 0, 3}},
          {"2.axis", 0}};
}

AttributeList With(AttributeList attributes, const std::string& name, AttributeValue value) {
  for (auto& [known, given] : attributes) {
    if (known == name) {
      given = std::move(value);
      return attributes;
    }
  }
  attributes.emplace_back(name, std::move(value));
  return attributes;
}

std::string ErrorOf(const AttributeList& attributes) {
  return StockKernel("rewire.branches", attributes).error();
}
std::string ErrorWith(const std::string& name, AttributeValue value) {
  return ErrorOf(With(TwoBranches(), name, std::move(value)));
}

TEST_CASE("branches: calls follow each other within a branch, in place too") {
  HostTensor x = HostTensor::Random({6}, 1), y = HostTensor::Random({6}, 2);
  HostTensor sum = HostTensor::Empty<float>({6}), soft = HostTensor::Empty<float>({6});
  REQUIRE(Run("rewire.branches", {&x, &y, &sum, &soft}, TwoBranches()).empty());
  HostTensor expected = HostTensor::Empty<float>({6});
  REQUIRE(Run("rewire.add", {&x, &y, &expected}).empty());
  REQUIRE(Run("rewire.relu", {&expected, &expected}).empty());
  CHECK(sum.values<float>() == expected.values<float>());
  REQUIRE(Run("rewire.softmax", {&x, &expected}, {{"axis", 0}}).empty());
  CHECK(soft.values<float>() == expected.values<float>());
}

TEST_CASE("branches: a view shows an argument under another shape") {
  // The calls read the input's [2, 3] view, and what the branch itself has written.
  const AttributeList attributes = {{"inputs", 1},
                                    {"outputs", Ints{0, 0}},
                                    {"kernels", "rewire.relu rewire.transpose"},
                                    {"calls", Ints{0, 2, 0, 1, 0, 2, 3, 2}},
                                    {"views", Ints{1, 2, 2, 3}},
                                    {"1.perm", Ints{1, 0}}};
  HostTensor x = HostTensor::Of<float>({6}, {-1, 2, 3, 4, 5, 6});
  HostTensor positive = HostTensor::Empty<float>({6}), turned = HostTensor::Empty<float>({3, 2});
  REQUIRE(Run("rewire.branches", {&x, &positive, &turned}, attributes).empty());
  CHECK(turned.values<float>() == std::vector<float>{0, 4, 2, 5, 3, 6});
  HostTensor longer = HostTensor::Empty<float>({7});
  CHECK(Run("rewire.branches", {&x, &longer, &turned}, attributes) ==
        "ValueError: rewire.branches: view 0 has 6 elements; argument 1 has [7]");
  HostTensor strided = HostTensor::Empty<float>({11});
  strided.SetView({6}, {2});
  CHECK(Run("rewire.branches", {&x, &strided, &turned}, attributes) ==
        "ValueError: rewire.branches: view 0 has 6 elements; argument 1 has [6] and is strided");
}

// The blocks of two products that follow each other lie in the same memory, those of two branches apart.
TEST_CASE("branches: workspace of calls is declared, and taken from the branch's own") {
  HostTensor x = HostTensor::Random({40, 50}, 1), w = HostTensor::Random({50, 60}, 2),
             v = HostTensor::Random({60, 70}, 3);
  HostTensor a = HostTensor::Empty<float>({40, 60}), b = HostTensor::Empty<float>({40, 70});
  HostTensor c = HostTensor::Empty<float>({40, 60}), expected = HostTensor::Empty<float>({40, 60});
  const StockKernel branches("rewire.branches",
                             {{"inputs", 3},
                              {"outputs", Ints{0, 0, 1}},
                              {"kernels", "rewire.gemm rewire.gemm rewire.gemm"},
                              {"calls", Ints{0, 3, 0, 1, 3, 0, 3, 3, 2, 4, 1, 3, 0, 1, 5}}});
  REQUIRE(branches({&x, &w, &v, &a, &b, &c}).empty());
  REQUIRE(Run("rewire.gemm", {&x, &w, &expected}).empty());
  CHECK(a.values<float>() == expected.values<float>());
  CHECK(c.values<float>() == expected.values<float>());
  FailWorkspace(true);
  CHECK(branches({&x, &w, &v, &a, &b, &c}) == "MemoryError: the test gives no workspace");
  FailWorkspace(false);
}

TEST_CASE("branches: an error of a call names its kernel and its node") {
  HostTensor x = HostTensor::Random({6}, 1), y = HostTensor::Random({5}, 2);
  HostTensor sum = HostTensor::Empty<float>({6}), soft = HostTensor::Empty<float>({6});
  const std::string error = Run("rewire.branches", {&x, &y, &sum, &soft},
                                With(TwoBranches(), "debug.nodes", "Add 'n'\nRelu 'r'\nSoftmax 's'"));
  CHECK(error ==
        "Add 'n': ValueError: rewire.add: shapes [6] and [5] do not broadcast: 6 and 5 at axis 0 of the "
        "result");
  CHECK(Run("rewire.branches", {&x, &x, &sum}, TwoBranches()) ==
        "ValueError: rewire.branches: expected 4 tensors, got 3");
}

TEST_CASE("branches: a call is not begun after the host has said stop") {
  HostTensor x = HostTensor::Random({6}, 1), sum = HostTensor::Empty<float>({6}),
             soft = HostTensor::Empty<float>({6});
  const StockKernel branches("rewire.branches", TwoBranches());
  for (std::int64_t answered = 0; answered < 3; ++answered) {
    StopAfter(answered);
    CHECK(branches({&x, &x, &sum, &soft}) ==
          "RuntimeError: stopped: the run was cancelled or its deadline has passed");
  }
  StopAfter(3);
  CHECK(branches({&x, &x, &sum, &soft}).empty());
  StopAfter(-1);
}

TEST_CASE("branches: wrong calls are refused when they are made") {
  const std::string at = "ValueError: rewire.branches: ";
  CHECK(ErrorOf(TwoBranches()).empty());
  CHECK(ErrorOf({{"inputs", 2}}) == at + "attribute 'outputs' is missing");
  // Numbers that are no call.
  CHECK(ErrorWith("calls", Ints{0}) == at + "attribute 'calls': no call at 1");
  CHECK(ErrorWith("calls", Ints{-1, 3, 0, 1, 2}) == at + "attribute 'calls': no call at 2");
  CHECK(ErrorWith("calls", Ints{16, 3, 0, 1, 2}) == at + "attribute 'calls': no call at 2");
  CHECK(ErrorWith("calls", Ints{0, 4, 0, 1, 2}) == at + "attribute 'calls': no call at 2");
  CHECK(ErrorWith("calls", Ints{0, std::int64_t{1} << 60, 0}) == at + "attribute 'calls': no call at 2");
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 1, 4}) ==
        at + "call 0 (rewire.add) names argument 4, expected 0 to 3");
  CHECK(ErrorWith("calls", Ints{0, 3, 0, -1, 2}) ==
        at + "call 0 (rewire.add) names argument -1, expected 0 to 3");
  CHECK(ErrorWith("inputs", std::int64_t{1} << 40) ==
        at + "attribute 'inputs' is 1099511627776, expected at least 0 and at most 1024");
  CHECK(ErrorWith("outputs", Ints(1025, 0)) ==
        at + "attribute 'outputs' has 1025 elements, expected at most 1024");
  // Names of kernels, and attributes of calls.
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu") ==
        at + "attribute 'calls': there are more calls than the 2 names of attribute 'kernels'");
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu rewire.softmax rewire.add") ==
        at + "attribute 'kernels' has 4 names for 3 calls");
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu no.kernel") ==
        at + "call 2 (no.kernel) is of a kernel that this library does not have");
  CHECK(
      ErrorWith("kernels", "rewire.add rewire.relu rewire.random_uniform") ==
      at +
          "call 2 (rewire.random_uniform) is of a kernel that keeps state, takes objects or returns a value");
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu rewire.seq.length") ==
        at + "call 2 (rewire.seq.length) is of a kernel that keeps state, takes objects or returns a value");
  CHECK(ErrorWith("3.axis", 0) == at + "attribute '3.axis' is of a call that there is not: there are 3");
  CHECK(ErrorWith("0.axis", 0) == at + "call 0 (rewire.add) has attributes, but the kernel takes none");
  CHECK(ErrorWith("2.axes", 0).find("rewire.softmax: unknown attribute 'axes'") != std::string::npos);
  CHECK(ErrorWith("256.axis", 0).find("unknown attribute '256.axis'") != std::string::npos);
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu rewire.add") ==
        at + "call 2 (rewire.add) has 2 arguments, which the kernel does not take");
  // A kernel that is its own call.
  CHECK(ErrorWith("kernels", "rewire.add rewire.relu rewire.branches") ==
        at + "call 2 (rewire.branches) has branches of its own, expected none");
}

// Rules that keep two threads from touching the same memory, and tensors from being read before they are
// written.
TEST_CASE("branches: an argument that is written belongs to one branch") {
  const std::string at = "ValueError: rewire.branches: ";
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 1, 1, 0, 2, 2, 2, 1, 2, 0, 3}) ==
        at + "call 0 (rewire.add) writes argument 1, which is only read");
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 2, 2, 0, 2, 2, 2, 1, 2, 0, 3}) ==
        at + "call 0 (rewire.add) reads argument 2 before it is written");
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 1, 2, 0, 2, 2, 2, 1, 2, 2, 3}) ==
        at + "call 2 (rewire.softmax) of branch 1 reads argument 2 of branch 0");
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 1, 2, 0, 2, 2, 2, 1, 2, 0, 2}) ==
        at + "call 2 (rewire.softmax) of branch 1 writes argument 2 of branch 0");
  // Within a branch it may be written again.
  CHECK(ErrorWith("calls", Ints{0, 3, 0, 1, 2, 0, 2, 0, 2, 1, 2, 0, 3}).empty());
  CHECK(ErrorWith("outputs", Ints{0, 1, 1}) == at + "attribute 'outputs': no call writes argument 4");
  // Over another argument, as rewire.transpose must not. Nor may rewire.concat, around what it copies.
  AttributeList over = With(TwoBranches(), "kernels", "rewire.add rewire.transpose rewire.softmax");
  CHECK(ErrorOf(over) ==
        at + "call 1 (rewire.transpose) writes argument 2 over another one, which the kernel does not allow");
  over = With(TwoBranches(), "kernels", "rewire.add rewire.concat rewire.softmax");
  CHECK(ErrorOf(With(over, "1.axis", 0)) ==
        at + "call 1 (rewire.concat) writes argument 2 over another one, which the kernel does not allow");
  // The same output twice: of one call.
  CHECK(ErrorOf({{"inputs", 1},
                 {"outputs", Ints{0}},
                 {"kernels", "rewire.top_k"},
                 {"calls", Ints{0, 3, 0, 1, 1}},
                 {"0.k", 1}})
            .find("writes argument 1 over another one") != std::string::npos);
}

TEST_CASE("branches: wrong views are refused") {
  const std::string at = "ValueError: rewire.branches: ";
  CHECK(ErrorWith("views", Ints{0}) == at + "attribute 'views': no view at 1");
  CHECK(ErrorWith("views", Ints{4, 0}) == at + "attribute 'views': no view at 2");
  CHECK(ErrorWith("views", Ints{-1, 0}) == at + "attribute 'views': no view at 2");
  CHECK(ErrorWith("views", Ints{0, 17}) == at + "attribute 'views': no view at 2");
  CHECK(ErrorWith("views", Ints{0, 3, 1, 2}) == at + "attribute 'views': no view at 2");
  CHECK(ErrorWith("views", Ints{0, 1, -6}) == at + "attribute 'views': view 0 has a dimension -6");
  // Written, of another branch, and of what the call writes.
  AttributeList viewed = With(TwoBranches(), "views", Ints{2, 1, 6});
  CHECK(ErrorOf(With(viewed, "calls", Ints{0, 3, 0, 1, 4, 0, 2, 2, 2, 1, 2, 0, 3})) ==
        at + "call 0 (rewire.add) writes argument 4, which is only read");
  CHECK(ErrorOf(With(viewed, "calls", Ints{0, 3, 0, 1, 2, 0, 2, 2, 2, 1, 2, 4, 3})) ==
        at + "call 2 (rewire.softmax) of branch 1 reads argument 2 of branch 0");
  CHECK(ErrorOf(With(viewed, "calls", Ints{0, 3, 0, 1, 2, 0, 2, 4, 2, 1, 2, 0, 3})) ==
        at + "call 1 (rewire.relu) writes argument 2 over another one, which the kernel does not allow");
}

}  // namespace
}  // namespace rewire::test
