// SPDX-License-Identifier: Apache-2.0
// The example kernel libraries. tests/embedding builds them outside the tree, too.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

Program Link(const std::string& folder, const std::string& name, const std::string& text = {}) {
  const std::string path = std::string(test::SourceDir()) + "/examples/" + folder + "/" + name + ".asm";
  const Executable executable =
      *Executable::FromModule(*(text.empty() ? AssembleFile(path) : Assemble(text)));
  LinkOptions options;
  REQUIRE(options.kernels.AddLibrary(std::string(test::BuildDir()) + "/lib/example_" + folder + ".so"));
  options.threads = ThreadPool::Make(3);
  const Result<Program> program = Program::Link(executable, options);
  if (!program) throw Error(program.error());
  return *program;
}

std::vector<float> Output(const VirtualMachine& vm) {
  const Tensor tensor = vm.Output();
  return {tensor.data<float>(), tensor.data<float>() + tensor.view().size()};
}

TEST_CASE("the C example computes") {
  VirtualMachine vm(Link("kernels_c", "saxpy"));
  const float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetInput("y", TensorView(y, {4}));
  vm.Invoke();
  CHECK(Output(vm) == std::vector<float>{12, 24, 36, 48});
}

TEST_CASE("the C example names what is wrong with an argument") {
  const Program program = Link("kernels_c", "", R"(
    .kernel example_saxpy
    .func main(alpha: value, x: value, y: value) -> value
      %bytes = load_consti 8
      %storage = alloc_storage %bytes, alignment=64, f32, cpu
      %sum = alloc_tensor %storage, _, f32[2]
      invoke_packed example_saxpy(%alpha, %x, %y, %sum), outputs=1
      ret %sum
    .end)");
  const float pair[] = {1, 2}, one[] = {1};
  const std::int64_t integers[] = {1, 2};
  const auto error = [&](const TensorView& alpha, const TensorView& x, const TensorView& y) {
    VirtualMachine vm(program);
    vm.SetInput("alpha", alpha);
    vm.SetInput("x", x);
    vm.SetInput("y", y);
    const Status status = vm.TryInvoke();
    return status ? "no error" : status.error().message();
  };
  const TensorView scalar(one, {}), vector(pair, {2});
  CHECK(error(scalar, vector, vector) == "no error");
  CHECK_THAT(error(vector, vector, vector), Catch::EndsWith("ValueError: alpha: expected a scalar"));
  CHECK_THAT(error(scalar, TensorView(integers, {2}), vector),
             Catch::EndsWith("TypeError: x: expected an f32 tensor on the host"));
  CHECK_THAT(error(scalar, vector, TensorView(one, {1})),
             Catch::EndsWith("ValueError: y: expected a contiguous tensor of out's shape"));
}

TEST_CASE("the C++ example keeps a history for each VM and refuses wrong attributes at link") {
  const Program program = Link("kernels_cpp", "moving_average");
  VirtualMachine first(program), second(program);
  const auto call = [](VirtualMachine& vm, float a, float b) {
    const float sample[] = {a, b};
    vm.SetInput("x", TensorView(sample, {2}), InputMode::kCopy);
    vm.Invoke();
    return Output(vm);
  };
  CHECK(call(first, 3, 0) == std::vector<float>{3, 0});
  CHECK(call(second, 100, 100) == std::vector<float>{100, 100});
  CHECK(call(first, 5, 2) == std::vector<float>{4, 1});
  CHECK(call(first, 7, 4) == std::vector<float>{5, 2});
  CHECK(call(first, 9, 6) == std::vector<float>{7, 4});  // without the first

  const auto refusal = [](const std::string& attributes) {
    const std::string text = ".kernel k = \"example.moving_average\"" + attributes +
                             "\n.func main(x: f32[2]) -> value\n ret %x\n.end";
    LinkOptions options;
    REQUIRE(options.kernels.AddLibrary(std::string(test::BuildDir()) + "/lib/example_kernels_cpp.so"));
    const auto linked = Program::Link(*Executable::FromModule(*Assemble(text)), options);
    return linked ? "no error" : linked.error().message();
  };
  CHECK(refusal(" {window=2}") == "no error");
  CHECK_THAT(refusal(""),
             Catch::EndsWith("ValueError: example.moving_average: attribute 'window' is missing"));
  CHECK_THAT(refusal(" {window=3, windos=4}"),
             Catch::EndsWith(
                 "ValueError: example.moving_average: unknown attribute 'windos'; did you mean 'window'? "
                 "(it takes: window)"));
  CHECK_THAT(
      refusal(" {window=0}"),
      Catch::EndsWith("ValueError: example.moving_average: attribute 'window' is 0, expected at least 1 and "
                      "at most 1000"));
}

TEST_CASE("a large saxpy is split over threads and right everywhere") {
  constexpr std::int64_t kSize = 100001;
  VirtualMachine vm(Link("kernels_c", "", R"(
    .kernel example_saxpy
    .const alpha: f32[] = 3
    .func main(x: f32[100001]) -> f32[100001]
      %alpha = load_const alpha
      %bytes = load_consti 400004
      %storage = alloc_storage %bytes, alignment=64, f32, cpu
      %sum = alloc_tensor %storage, _, f32[100001]
      invoke_packed example_saxpy(%alpha, %x, %x, %sum), outputs=1
      ret %sum
    .end)"));
  std::vector<float> x(kSize);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  vm.SetInput(0, TensorView(x.data(), {kSize}));
  vm.Invoke();
  const std::vector<float> sum = Output(vm);
  bool right = true;
  for (std::size_t i = 0; i < x.size(); ++i) right &= sum[i] == 4 * x[i];
  CHECK(right);
}

}  // namespace
}  // namespace rewire
