// SPDX-License-Identifier: Apache-2.0
// Inputs whose dimensions vary: the source has a version for each size.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// Every product of an element of x and one of y. Its shapes and sizes are computed by kernels.
constexpr char kOuter[] = R"(
.symbol N max 4
.const one: i64[1] = {1}
.const four: i64[1] = {4}
.kernel concat = "rewire.concat" {axis=0}
.kernel mul = "rewire.mul"
.func main(x: f32[N], y: f32[M]) -> products: f32[N, M]
  %one = load_const one
  %four = load_const four
  %n = shape_of %x
  %m = shape_of %y
  %shapes = alloc_storage _, alignment=64, i64[6], cpu
  %both = alloc_tensor %shapes, _, i64[2]
  invoke_packed concat(%n, %m, %both), outputs=1
  %at = load_consti 16
  %column = alloc_tensor %shapes, %at, i64[2]
  invoke_packed concat(%n, %one, %column), outputs=1
  %at = load_consti 32
  %bytes = alloc_tensor %shapes, %at, i64[1]
  invoke_packed mul(%n, %m, %bytes), outputs=1
  invoke_packed mul(%bytes, %four, %bytes), outputs=1
  %rows = reshape_tensor %x, %column
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %products = alloc_tensor_reg %storage, _, %both, f32
  invoke_packed mul(%rows, %y, %products), outputs=1
  %again = alloc_storage %bytes, alignment=64, f32, cpu
  %squares = alloc_tensor_reg %again, _, %both, f32
  invoke_packed mul(%products, %products, %squares), outputs=1
  ret %squares
.end
.func by_data(x: f32[4], shape: i64[1]) -> y: f32[?]
  %y = reshape_tensor %x, %shape
  ret %y
.end
)";

Executable Outer() {
  Result<Module> module = Assemble(kOuter);
  if (!module) FAIL(module.error().message());
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

std::string RefusalOf(const EmitCOptions& options) {
  const Result<CSource> source = EmitC(Outer(), options, "model.h");
  REQUIRE(!source);
  return source.error().message();
}

TEST_CASE("C source has a version for each size of its inputs, and each gives what the VM gives") {
  const Executable executable = Outer();
  EmitCOptions options;
  options.prefix = "outer";
  options.max_dims["M"] = 3;
  options.max_dims["N"] = 9;  // the executable allows 4
  const Result<CSource> source = EmitC(executable, options, "outer.h");
  if (!source) FAIL(source.error().message());
  CHECK_THAT(source->header,
             Catch::Contains("int outer_main(int64_t N, int64_t M, const float *x, const float *y, "
                             "float *products);"));
  CHECK(source->arena_bytes == 48);  // the products alone: shapes are computed while the source is made
  CLibrary library;
  library.Add("outer", *source);
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile({}, "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  const auto* const info = library.Find<RewireAotFunctionInfo>("outer_functions");
  REQUIRE(info->size_count == 2);
  CHECK(info->sizes[0].name == std::string("N"));
  CHECK(info->sizes[0].most == 4);
  CHECK(info->sizes[1].most == 3);
  CHECK(info->outputs[0].bytes == 48);

  const Result<Program> program = Program::Link(executable);
  REQUIRE(program);
  const float x[] = {1, -2.5F, 3, 0.125F, 9};
  const float y[] = {7, -0.5F, 11};
  int compared = 0;
  for (std::int64_t n = 1; n <= 4; ++n) {
    for (std::int64_t m = 1; m <= 3; ++m) {
      const std::int64_t sizes[] = {n, m};
      std::int64_t dims[2] = {};
      REQUIRE(info->output_dims(sizes, 0, dims) == 0);
      CHECK(dims[0] == n);
      CHECK(dims[1] == m);
      const Value inputs[] = {*Tensor::CopyOf(TensorView(x, {n})), *Tensor::CopyOf(TensorView(y, {m}))};
      const Result<Value> expected = VirtualMachine(*program).TryInvoke("main", {inputs, 2});
      REQUIRE(expected);
      const CResult given = CallC(*info, nullptr, {x, y}, nullptr, sizes);
      REQUIRE(given.code == 0);
      CHECK(given.is_within);
      const TensorView view = expected->tensor().view();
      CHECK(std::memcmp(given.outputs[0].data(), view.data(), view.bytes()) == 0);
      ++compared;
    }
  }
  CHECK(compared == 12);
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{5}, std::int64_t{-1}, INT64_MAX}) {
    const std::int64_t sizes[] = {wrong, 1};
    std::int64_t dims[2] = {};
    CHECK(info->output_dims(sizes, 0, dims) == 1);
    CHECK(CallC(*info, nullptr, {x, y}, nullptr, sizes).code ==
          static_cast<int>(StatusCode::kInvalidArgument));
  }
  const std::int64_t sizes[] = {1, 1};
  std::int64_t dims[2] = {};
  CHECK(info->output_dims(sizes, 1, dims) == 1);
}

TEST_CASE("sizes that are not to be had are refused by name") {
  EmitCOptions options;
  CHECK_THAT(RefusalOf(options), Catch::Contains("main: dimension M of the inputs has no largest size"));
  options.max_dims["M"] = 0;
  CHECK_THAT(RefusalOf(options), Catch::Contains("the largest size of M is 0, at least 1 is expected"));
  options.max_dims["M"] = 3;
  options.max_instructions = 200;
  CHECK_THAT(RefusalOf(options),
             Catch::Contains("main: a version for each size of its inputs takes more than 200 words"));
  options = {};
  options.max_dims["L"] = 3;
  CHECK_THAT(RefusalOf(options), Catch::Contains("no dimension of the executable is called L"));
  options = {};
  options.functions = {"by_data"};
  CHECK_THAT(RefusalOf(options), Catch::Contains("the shape depends on data"));
}

}  // namespace
}  // namespace rewire::test
