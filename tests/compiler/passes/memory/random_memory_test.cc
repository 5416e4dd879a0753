// SPDX-License-Identifier: Apache-2.0
// Random graphs that join, cut, view and overwrite tensors: their memory plan changes no bit of any output,
// and a run takes what the bound says.
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "rewire/tests/support/random_graph.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

enum class Peak : std::uint8_t { kUnknown, kAtMost, kEqual };

std::vector<std::vector<float>> Outputs(const Executable& executable, const RandomGraph& graph, Peak peak,
                                        std::int64_t n = 0) {
  LinkOptions link;
  link.storage_fill = StorageFill::kPoison;
  const Result<Program> poisoned = Program::Link(executable, link);
  const Result<Program> program = Program::Link(executable);
  REQUIRE(poisoned);
  REQUIRE(program);
  const Shape shape = graph.input(n);
  std::vector<float> x(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 29) * 0.125F - 1.5F;
  const Result<MemoryBound> bound = program->TryMemoryBound();
  REQUIRE(bound);
  VirtualMachine measured(*program);
  REQUIRE(measured.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  REQUIRE(measured.TryInvoke());
  if (peak != Peak::kUnknown) CHECK(bound->unbounded.empty());
  if (peak == Peak::kAtMost) CHECK(measured.bytes_peak() <= bound->bytes);
  if (peak == Peak::kEqual) CHECK(measured.bytes_peak() == bound->bytes);

  VirtualMachine vm(*poisoned);
  REQUIRE(vm.TrySetInput("x", TensorView(x.data(), DTypeOf<float>(), shape)));
  const Status done = vm.TryInvoke();
  INFO((done ? "" : done.error().message()));
  REQUIRE(done);
  std::vector<std::vector<float>> outputs;
  for (int i = 0; i < graph.outputs(); ++i) {
    const Value& result = vm.result();
    const Tensor output =
        graph.outputs() == 1 ? result.tensor() : result.field(static_cast<std::uint32_t>(i)).tensor();
    outputs.emplace_back(output.data<float>(), output.data<float>() + output.view().size());
  }
  return outputs;
}

Executable ExecutableOf(Outcome outcome) {
  REQUIRE(outcome.message.empty());
  Result<Executable> executable = Executable::FromModule(std::move(outcome.compiled.module));
  REQUIRE(executable);
  return *std::move(executable);
}

TEST_CASE("no memory plan changes what random graphs compute") {
  std::size_t arenas = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed);
    if (graph.outputs() == 0) continue;
    Outcome planned = CompileProto(graph.model());
    compiler::CompileOptions options;
    options.disabled_passes = {"in-place", "arena"};
    Outcome plain = CompileProto(graph.model(), options);
    arenas += planned.compiled.arena_bytes > 0 ? 1 : 0;
    CHECK(planned.compiled.arena_bytes <= planned.compiled.separate_bytes);
    const auto expected = Outputs(ExecutableOf(std::move(plain)), graph, Peak::kEqual);
    const auto outputs = Outputs(ExecutableOf(std::move(planned)), graph, Peak::kEqual);
    CHECK(outputs == expected);
  }
  CHECK(arenas > 20);
}

TEST_CASE("nor at any size of a dimension, limited or not") {
  std::size_t laid_out = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const RandomGraph graph(seed, true);
    if (graph.outputs() == 0) continue;
    compiler::CompileOptions plain, by_shape, limited, limited_by_shape;
    plain.disabled_passes = {"in-place", "arena", "shape-arena"};
    by_shape.dump = [&](const std::string& stage, const std::string& text) {
      if (stage == "shape-arena" && text.find("arena by shape") != std::string::npos) ++laid_out;
    };
    limited.max_dims = limited_by_shape.max_dims = {{"N", 300}};
    limited_by_shape.disabled_passes = {"arena"};
    const Executable expected = ExecutableOf(CompileProto(graph.model(), plain));
    const Executable unlimited = ExecutableOf(CompileProto(graph.model(), by_shape));
    const Executable most = ExecutableOf(CompileProto(graph.model(), limited));
    const Executable most_by_shape = ExecutableOf(CompileProto(graph.model(), limited_by_shape));
    for (const std::int64_t n : {30, 1, 7}) {
      CAPTURE(n);
      const auto outputs = Outputs(expected, graph, Peak::kUnknown, n);
      CHECK(Outputs(unlimited, graph, Peak::kUnknown, n) == outputs);
      CHECK(Outputs(most, graph, Peak::kAtMost, n) == outputs);
      CHECK(Outputs(most_by_shape, graph, Peak::kAtMost, n) == outputs);
    }
  }
  CHECK(laid_out > 10);
}

}  // namespace
}  // namespace rewire::test
