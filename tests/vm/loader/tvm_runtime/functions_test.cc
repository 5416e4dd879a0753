// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/loader/tvm_functions.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

using test::MessageOf;
using test::TestLibrary;

// Runs main of `text`, whose kernels are in the classic test library, on one input.
Result<Value> Run(const std::string& text, const std::vector<Value>& inputs) {
  Result<Module> module = Assemble(text, {});
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return Forward(executable);
  LinkOptions options;
  if (Status added = options.kernels.AddLibrary(TestLibrary("classic")); !added) return Forward(added);
  Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) return Forward(program);
  VirtualMachine vm(*program);
  return vm.TryInvoke("main", inputs);
}

template <typename T>
Value TensorOf(const std::vector<T>& elements, const std::vector<std::int64_t>& shape) {
  return Value(*Tensor::CopyOf(TensorView(const_cast<T*>(elements.data()), DTypeOf<T>(), shape)));
}

template <typename T>
std::vector<T> Elements(const Value& value) {
  const TensorView view = value.tensor().view();
  REQUIRE((view.dtype() == DTypeOf<T>()));
  const T* data = static_cast<const T*>(view.data());
  return {data, data + view.bytes() / sizeof(T)};
}

// One kernel with an input and an output of the given types.
std::string Program1(const std::string& kernel, const std::string& from, const std::string& to) {
  return ".kernel k = \"" + kernel + "\"\n.func main(x: " + from + ") -> y: " + to +
         "\n  %s = alloc_storage _, alignment=128, " + to + ", cpu\n  %y = alloc_tensor %s, _, " + to +
         "\n  invoke_packed k(%x, %y), outputs=1\n  ret %y\n.end\n";
}

template <typename T>
std::vector<T> Sorted(const char* kernel, const char* from, const char* to, const Value& x) {
  const Result<Value> y = Run(Program1(kernel, from, to), {x});
  INFO(MessageOf(y));
  REQUIRE(y);
  return Elements<T>(*y);
}

TEST_CASE("argsort gives the places of the elements in order, equal ones as they stood") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Along axis 0 of a 3 x 2 tensor.
  const Value x = TensorOf<float>({2, nan, 1, 5, 2, 4}, {3, 2});
  CHECK(Sorted<std::int32_t>("classic_argsort", "f32[3, 2]", "i32[3, 2]", x) ==
        std::vector<std::int32_t>{1, 2, 0, 1, 2, 0});
  CHECK(Sorted<std::int64_t>("classic_argsort", "f32[3, 2]", "i64[3, 2]", x) ==
        std::vector<std::int64_t>{1, 2, 0, 1, 2, 0});
  CHECK(Sorted<float>("classic_argsort", "f32[3, 2]", "f32[3, 2]", x) ==
        std::vector<float>{1, 2, 0, 1, 2, 0});
  CHECK(Sorted<std::int32_t>("classic_argsort", "u64[3]", "i32[3]",
                             TensorOf<std::uint64_t>({~std::uint64_t{0}, 0, std::uint64_t{1} << 63}, {3})) ==
        std::vector<std::int32_t>{1, 2, 0});
  CHECK(Sorted<std::int32_t>("classic_argsort", "i8[3]", "i32[3]", TensorOf<std::int8_t>({5, -5, 0}, {3})) ==
        std::vector<std::int32_t>{1, 2, 0});
}

TEST_CASE("sort gives the elements in order, downwards when asked to") {
  CHECK(Sorted<double>("classic_sort_down", "f64[2, 3]", "f64[2, 3]",
                       TensorOf<double>({1, 3, 2, -1, -3, -2}, {2, 3})) ==
        std::vector<double>{3, 2, 1, -1, -2, -3});
  std::vector<std::int32_t> many(10000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>((i * 7919) % many.size());
  std::vector<std::int32_t> expected = many;
  std::sort(expected.rbegin(), expected.rend());
  CHECK(Sorted<std::int32_t>("classic_sort_down", "i32[10000]", "i32[10000]", TensorOf(many, {10000})) ==
        expected);
}

TEST_CASE("topk gives the largest elements and their places") {
  const Result<Value> both = Run(R"(
    .kernel k = "classic_top2"
    .func main(x: f32[2, 4]) -> (values: f32[2, 2], places: i64[2, 2])
      %s = alloc_storage _, alignment=128, f32[2, 2], cpu
      %v = alloc_tensor %s, _, f32[2, 2]
      %t = alloc_storage _, alignment=128, i64[2, 2], cpu
      %p = alloc_tensor %t, _, i64[2, 2]
      invoke_packed k(%x, %v, %p), outputs=2
      %r = alloc_adt tag=0 (%v, %p)
      ret %r
    .end)",
                                 {TensorOf<float>({1, 4, 2, 4, 9, 7, 8, 6}, {2, 4})});
  INFO(MessageOf(both));
  REQUIRE(both);
  CHECK(Elements<float>(both->field(0)) == std::vector<float>{4, 4, 9, 8});
  CHECK(Elements<std::int64_t>(both->field(1)) == std::vector<std::int64_t>{1, 3, 0, 2});
}

TEST_CASE("matrices are multiplied as they are or transposed") {
  const auto multiply = [](const char* kernel, const char* a, const char* b) {
    return std::string(".kernel k = \"") + kernel + "\"\n.func main(a: f32[" + a + "], b: f32[" + b +
           "]) -> y: f32[2, 2]\n  %s = alloc_storage _, alignment=128, f32[2, 2], cpu\n"
           "  %y = alloc_tensor %s, _, f32[2, 2]\n  invoke_packed k(%a, %b, %y), outputs=1\n  ret %y\n.end\n";
  };
  const Result<Value> plain =
      Run(multiply("classic_matmul", "2, 3", "3, 2"),
          {TensorOf<float>({1, 2, 3, 4, 5, 6}, {2, 3}), TensorOf<float>({1, 0, 0, 1, 2, 3}, {3, 2})});
  INFO(MessageOf(plain));
  REQUIRE(plain);
  CHECK(Elements<float>(*plain) == std::vector<float>{7, 11, 16, 23});
  const Result<Value> transposed =
      Run(multiply("classic_matmul_transposed", "3, 2", "2, 3"),
          {TensorOf<float>({1, 4, 2, 5, 3, 6}, {3, 2}), TensorOf<float>({1, 0, 2, 0, 1, 3}, {2, 3})});
  INFO(MessageOf(transposed));
  REQUIRE(transposed);
  CHECK(Elements<float>(*transposed) == std::vector<float>{7, 11, 16, 23});
}

TEST_CASE("what the runtime's functions cannot do is said, and nothing is written") {
  const auto error = [](const char* kernel, const char* from, const char* to, const Value& x) {
    return MessageOf(Run(Program1(kernel, from, to), {x}));
  };
  CHECK_THAT(error("classic_argsort", "f32[3]", "i32[2]", TensorOf<float>({1, 2, 3}, {3})),
             Catch::EndsWith("tvm.contrib.sort.argsort: an output has another shape"));
  CHECK_THAT(error("classic_argsort", "f32[3]", "f16[3]", TensorOf<float>({1, 2, 3}, {3})),
             Catch::EndsWith("tvm.contrib.sort.argsort: indices cannot be f16"));
  CHECK_THAT(error("classic_sort_down", "f32[3]", "f64[3]", TensorOf<float>({1, 2, 3}, {3})),
             Catch::EndsWith("tvm.contrib.sort.sort: the sorted elements have another dtype"));
  CHECK_THAT(error("classic_argsort", "f32[]", "i32[]", TensorOf<float>({1}, {})),
             Catch::EndsWith("tvm.contrib.sort.argsort: axis 0 of a tensor of rank 0"));
  CHECK_THAT(error("classic_matmul", "f32[3]", "f32[3]", TensorOf<float>({1, 2, 3}, {3})),
             Catch::Contains("tvm.contrib.cblas.matmul: "));
}

TEST_CASE("docs/vm-convert.md says which functions of TVM's runtime are provided") {
  std::ifstream page(std::string(test::SourceDir()) + "/docs/vm-convert.md");
  REQUIRE(page);
  const std::regex name("`(tvm\\.contrib\\.[^`]+)`");
  std::set<std::string> provided, refused;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `tvm.", 0) != 0) continue;
    const bool yes = line.find(" | yes: ") != std::string::npos;
    CHECK(yes != (line.find(" | no: ") != std::string::npos));
    for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
      (yes ? provided : refused).insert((*at)[1]);
    }
  }
  const Result<Span<const tvm_runtime::Function>> all = TvmFunctions();
  REQUIRE(all);
  std::set<std::string> functions;
  for (const tvm_runtime::Function& function : *all) {
    functions.emplace(function.name);
    // By this text the loader knows which libraries call them.
    CHECK(std::string(function.name).rfind(tvm_runtime::kPrefix, 0) == 0);
  }
  CHECK(provided == functions);
  CHECK(refused.size() > 20);
  for (const std::string& each : refused) CHECK(functions.count(each) == 0);
}

}  // namespace
}  // namespace rewire
