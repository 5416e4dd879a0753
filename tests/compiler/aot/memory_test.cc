// SPDX-License-Identifier: Apache-2.0
// Places of tensors in the arena of C source.
#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

struct Placed {
  const char* what;
  std::string text;
  std::uint64_t arena_bytes;
};

// main of x f32[1, 8, 8, 16]. The storage has a tensor of x's size at its begin, and the pool's behind it.
std::string PoolProgram(const std::string& window, const std::string& pooled, const std::string& type,
                        const std::string& rest) {
  return R"(
.kernel negate = "rewire.neg"
.kernel pool = "rewire.max_pool" {layout="NHWC", )" +
         window + R"(}
.func main(x: f32[1, 8, 8, 16]) -> )" +
         type + R"(
  %s = alloc_storage _, alignment=64, u8[8192], cpu
  %a = alloc_tensor %s, _, f32[1, 8, 8, 16]
  invoke_packed negate(%x, %a), outputs=1
  %at = load_consti 4096
  %p = alloc_tensor %s, %at, )" +
         pooled + R"(
  invoke_packed pool(%a, %p), outputs=1
)" + rest +
         ".end\n";
}

constexpr char kPoolType[] = "f32[1, 4, 4, 16]";
constexpr char kHalves[] = "kernel_shape=[2, 2], strides=[2, 2]";
std::string PoolAlone(const std::string& window, const std::string& type) {
  return PoolProgram(window, type, type,
                     "  %t = alloc_storage _, alignment=64, " + type + ", cpu\n  %y = alloc_tensor %t, _, " +
                         type + "\n  invoke_packed negate(%p, %y), outputs=1\n  ret %y\n");
}

constexpr char kBothType[] = "(f32[1, 4, 4, 16], f32[1, 8, 8, 16])";
constexpr char kReturnBoth[] = R"(
  %t = alloc_storage _, alignment=64, f32[1, 4, 4, 16], cpu
  %y = alloc_tensor %t, _, f32[1, 4, 4, 16]
  invoke_packed negate(%p, %y), outputs=1
  %u = alloc_storage _, alignment=64, f32[1, 8, 8, 16], cpu
  %z = alloc_tensor %u, _, f32[1, 8, 8, 16]
  invoke_packed negate(%a, %z), outputs=1
  %r = alloc_adt tag=0 (%y, %z)
  ret %r
)";

// The inputs of the concatenation lie in its output, and most of the storage is not used.
constexpr char kNested[] = R"(
.kernel negate = "rewire.neg"
.kernel concat = "rewire.concat" {axis=0}
.func main(x: f32[1, 8, 8, 16]) -> f32[2, 8, 8, 16]
  %s = alloc_storage _, alignment=64, u8[65536], cpu
  %first = load_consti 16384
  %second = load_consti 20480
  %a = alloc_tensor %s, %first, f32[1, 8, 8, 16]
  invoke_packed negate(%x, %a), outputs=1
  %b = alloc_tensor %s, %second, f32[1, 8, 8, 16]
  invoke_packed negate(%a, %b), outputs=1
  %c = alloc_tensor %s, %first, f32[2, 8, 8, 16]
  invoke_packed concat(%a, %b, %c), outputs=1
  %u = alloc_storage _, alignment=64, f32[2, 8, 8, 16], cpu
  %y = alloc_tensor %u, _, f32[2, 8, 8, 16]
  invoke_packed negate(%c, %y), outputs=1
  ret %y
.end
)";

TEST_CASE("tensors have places of their own in the arena, a pool over its input's where nothing forbids it") {
  // A window that begins a row and a position in front of the output's place.
  constexpr std::uint64_t kLead = (8 + 1) * 16 * sizeof(float);
  const std::vector<Placed> cases = {
      {"a pool is written in place of its input", PoolAlone(kHalves, kPoolType), 4096},
      {"so is one whose padding leaves its steps as large",
       PoolAlone(std::string(kHalves) + ", pads=[1, 1, 0, 0]", kPoolType), 4096},
      {"one that looks back begins in front of its input",
       PoolAlone("kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]", "f32[1, 8, 8, 16]"), 4096 + kLead},
      {"a pool whose input is read once more is not", PoolProgram(kHalves, kPoolType, kBothType, kReturnBoth),
       5120},
      {"tensors inside each other stay where the executable has them", kNested, 65536},
  };
  CLibrary library;
  std::vector<Program> programs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].what);
    Result<Module> module = Assemble(cases[i].text);
    if (!module) FAIL(module.error().message());
    const Result<Executable> executable = Executable::FromModule(*std::move(module));
    if (!executable) FAIL(executable.error().message());
    EmitCOptions options;
    options.prefix = "places" + std::to_string(i);
    const Result<CSource> source = EmitC(*executable, options, options.prefix + ".h");
    if (!source) FAIL(source.error().message());
    CHECK(source->arena_bytes == cases[i].arena_bytes);
    library.Add(options.prefix, *source);
    const Result<Program> program = Program::Link(*executable);
    if (!program) FAIL(program.error().message());
    programs.push_back(*program);
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile({}, "'" + folder + "'/*.c '" + folder + "'/*/*.c");
  std::vector<float> x;
  for (int i = 0; i < 1024; ++i) x.push_back(static_cast<float>((i * 37) % 101 - 50));
  const Value input(*Tensor::CopyOf(TensorView(x.data(), {1, 8, 8, 16})));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].what);
    const Result<Value> result = VirtualMachine(programs[i]).TryInvoke("main", {&input, 1});
    if (!result) FAIL(result.error().message());
    const CResult given =
        CallC(*library.Find<RewireAotFunctionInfo>("places" + std::to_string(i) + "_functions"), nullptr,
              {x.data()});
    REQUIRE(given.code == 0);
    CHECK(given.is_within);
    const bool is_adt = result->kind() == ValueKind::kAdt;
    REQUIRE(given.outputs.size() == (is_adt ? result->field_count() : 1));
    for (std::uint32_t k = 0; k < given.outputs.size(); ++k) {
      const TensorView view = (is_adt ? result->field(k) : *result).tensor().view();
      const auto* const bytes = static_cast<const std::byte*>(view.data());
      CHECK(given.outputs[k] == std::vector<std::byte>(bytes, bytes + view.bytes()));
    }
  }
}

}  // namespace
}  // namespace rewire::test
