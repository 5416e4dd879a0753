// SPDX-License-Identifier: Apache-2.0
// The results of `__init` of one Program lie in one block, without room for what is shared.
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/huge_page.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kCount = 1 << 18;
constexpr std::int64_t kBytes = kCount * 4;  // half of a huge page
constexpr int kWeights = 5;

std::string Name(const char* what, int i) { return what + std::to_string(i); }

// `__init` negates the weights w0, w1, ..., which gives the constants n0, n1, ..., of `size` elements each.
std::string Negating(const std::string& size = std::to_string(kCount)) {
  const std::string weight = "f32[" + std::to_string(kCount) + "]", type = "f32[" + size + "]";
  std::string tables = "  .kernel negate = \"host.negate\"\n", body, types, fields;
  for (int i = 0; i < kWeights; ++i) {
    const std::string k = std::to_string(i);
    tables.append("  .param w").append(k).append(": ").append(weight).append("\n");
    tables.append("  .computed n").append(k).append(": ").append(type).append("\n");
    body.append("    %w").append(k).append(" = load_const w").append(k).append("\n");
    body.append("    %s")
        .append(k)
        .append(" = alloc_storage _, alignment=64, ")
        .append(type)
        .append(", cpu\n");
    body.append("    %n").append(k).append(" = alloc_tensor %s").append(k).append(", _, ").append(type);
    body.append("\n    invoke_packed negate(%w").append(k).append(", %n").append(k).append("), outputs=1\n");
    types += (i > 0 ? ", " : "") + type;
    fields += (i > 0 ? ", %n" : "%n") + k;
  }
  return tables + "  .func __init() -> (" + types + ")\n" + body + "    %r = alloc_adt tag=0 (" + fields +
         ")\n    ret %r\n  .end\n  .func main() -> y: " + type +
         "\n    %y = load_const n0\n    ret %y\n  .end\n";
}

// Weight i is i + 1, and `changed` is another one.
ParameterSet Weights(int changed = -1, float value = 0) {
  Named weights;
  for (int i = 0; i < kWeights; ++i) {
    const float element = i == changed ? value : static_cast<float>(i + 1);
    weights.emplace_back(Name("w", i), Floats(std::vector<float>(kCount, element)));
  }
  return SetOf(weights);
}

LinkOptions With(const ParameterSet& weights) {
  LinkOptions options;
  options.parameters = {weights};
  options.init_sharing = ShareInitResults();
  options.kernels.AddFunction("host.negate",
                              MakePackedFunction([](kernel::TensorView x, kernel::TensorView y) {
                                for (std::int64_t i = 0; i < kCount; ++i)
                                  y.data<float>()[i] = -x.data<float>()[i];
                              }));
  return options;
}

const char* PlaceOf(const Program& program, int i) {
  return static_cast<const char*>(AddressIn(program, Name("n", i)));
}
float ValueOf(const Program& program, int i) {
  return *At(ParameterSet::Of(program), Name("n", i)).data<float>();
}

TEST_CASE("the results of __init lie in one block at a multiple of a huge page") {
  const Program program = ProgramOf(Negating(), With(Weights()));
  CHECK(reinterpret_cast<std::uintptr_t>(PlaceOf(program, 0)) % kHugePage == 0);
  for (int i = 0; i < kWeights; ++i) {
    CHECK(PlaceOf(program, i) == PlaceOf(program, 0) + i * kBytes);
    CHECK(ValueOf(program, i) == static_cast<float>(-i - 1));
  }
}

TEST_CASE("a Program has no memory for results of which another one has equals") {
  TestAllocator allocator;
  LinkOptions options = With(Weights());
  options.allocator = allocator.allocator();
  std::optional<Program> first = ProgramOf(Negating(), options);
  const std::int64_t of_first = allocator.bytes();
  CHECK(of_first >= kWeights * kBytes);
  options.parameters = {Weights(1, 50)};
  std::optional<Program> tuned = ProgramOf(Negating(), options);
  CHECK(ValueOf(*tuned, 1) == -50);
  for (const int i : {0, 2, 3, 4}) CHECK(PlaceOf(*tuned, i) == PlaceOf(*first, i));
  CHECK(allocator.bytes() - of_first >= kBytes);
  CHECK(allocator.bytes() - of_first < kBytes + kBytes / 8);
  // Others find what was moved, too.
  options.init_sharing = nullptr;
  std::optional<Program> another = ProgramOf(Negating(), options);
  CHECK(PlaceOf(*another, 1) == PlaceOf(*tuned, 1));
  first.reset();
  CHECK(ValueOf(*tuned, 3) == -4);
  another.reset();
  tuned.reset();
  CHECK(allocator.blocks() == 0);
}

TEST_CASE("a limit that suffices without a block suffices with one") {
  LinkOptions options = With(Weights());
  options.init_sharing = nullptr;
  const std::uint64_t bytes = ProgramOf(Negating(), options).rep().init_bytes;
  options.init_sharing = ShareInitResults();
  for (const std::uint64_t limit : {bytes, bytes + kBytes, 3 * bytes}) {
    options.init_limits.bytes = limit;
    const Program program = ProgramOf(Negating(), options);
    CHECK(program.rep().init_bytes <= limit);
    CHECK(ValueOf(program, 4) == -5);
  }
  options.init_limits.bytes = bytes / 2;
  CHECK(Program::Link(ExecutableOf(Negating()), options).error().code() == StatusCode::kMemoryLimit);
}

TEST_CASE("each allocation of a Program with a block may fail") {
  TestAllocator allocator;
  LinkOptions options = With(Weights());
  options.allocator = allocator.allocator();
  const Executable executable = ExecutableOf(Negating());
  const std::optional<Program> first = *Program::Link(executable, options);
  options.parameters = {Weights(2, 9)};
  for (int k = 1;; ++k) {
    allocator.FailAt(k);
    const Result<Program> tuned = Program::Link(executable, options);
    const bool failed = allocator.failed();
    allocator.FailAt(0);
    if (tuned) {
      CHECK(ValueOf(*tuned, 2) == -9);
    } else {
      CHECK(tuned.error().code() == StatusCode::kOutOfMemory);
    }
    if (!failed) break;
  }
}

TEST_CASE("results larger than any memory get no block") {
  const Executable executable = ExecutableOf(Negating(std::to_string(std::int64_t{1} << 60)));
  LinkOptions options = With(Weights());
  const Result<Program> shared = Program::Link(executable, options);
  REQUIRE_FALSE(shared);
  options.init_sharing = nullptr;
  CHECK(MessageOf(shared) == MessageOf(Program::Link(executable, options)));
}

}  // namespace
}  // namespace rewire::test
