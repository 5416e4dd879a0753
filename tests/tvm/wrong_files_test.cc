// SPDX-License-Identifier: Apache-2.0
// Relay VM executables that crash TVM or corrupt its heap: each is refused, with the reason.
#include <catch2/catch.hpp>
#include <random>

#include "rewire/executable_format/import/relay_file.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/tvm/relay_program.h"

namespace rewire::test {
namespace {

using Catch::Matchers::Contains;
using tvm::RelaySpec;

// The error of import or verification; "" when the file is accepted.
std::string Refusal(const RelaySpec& spec) {
  Result<Module> module = tvm::ImportRelayExecutable(tvm::Share(WriteRelay(spec)));
  if (!module) return module.error().message();
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  return executable ? "" : executable.error().message();
}
std::string Refusal(Code code) { return Refusal(RelayOf({FunctionOf("main", {"x"}, std::move(code))})); }

TEST_CASE("a kernel's index that equals the size of the table") {
  CHECK(Refusal(Join({MakeTensor(1, {6}), {Call(2, {1}), {kRet, 1}}})).empty());
  CHECK_THAT(Refusal(Join({MakeTensor(1, {6}), {Call(3, {1}), {kRet, 1}}})),
             Contains("names kernel 3, there are 3"));
}

TEST_CASE("a register that the function does not have") {
  for (const std::int64_t wild : {std::int64_t{64}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    CHECK_THAT(Refusal({{kRet, wild}}), Contains("names register"));
    CHECK_THAT(Refusal({{kMove, 0, wild}, {kRet, 0}}), Contains("names register"));
    CHECK_THAT(Refusal({Call(kInc, {0, wild}), {kRet, 0}}), Contains("names register"));
  }
}

TEST_CASE("a function without Ret at its end") {
  CHECK_THAT(Refusal({{kMove, 0, 1}}), Contains("goes on past the end"));
  CHECK_THAT(Refusal(Code()), Contains("main"));
}

TEST_CASE("negative counts") {
  CHECK_THAT(Refusal({{kInvokePacked, 0, -1, 1}, {kRet, 0}}), Contains("main@0"));
  CHECK_THAT(Refusal({{kInvokePacked, 0, 2, -1, 0, 0}, {kRet, 0}}), Contains("output count -1"));
  CHECK_THAT(Refusal({{kAllocAdt, 0, -1, 1}, {kRet, 0}}), Contains("main@0"));
  CHECK_THAT(Refusal({{kInvoke, 0, -1, 1}, {kRet, 0}}), Contains("main@0"));
  CHECK_THAT(Refusal({{kAllocStorage, 0, 64, 2, 32, 1, 0, -1, 1}, {kRet, 0}}), Contains("main@0"));
}

TEST_CASE("a shape whose product overflows") {
  const std::int64_t half = std::int64_t{1} << 32;
  CHECK_THAT(Refusal({{kAllocStorage, 0, 64, 2, 32, 1, 0, 2, 1, half, half}, {kRet, 0}}),
             Contains("alloc_storage"));
  CHECK_THAT(
      Refusal(Join({MakeTensor(1, {6}), {{kAllocTensor, 60, 61, 2, 32, 1, 2, 2, half, half}, {kRet, 2}}})),
      Contains("alloc_tensor"));
}

TEST_CASE("two globals with one function") {
  RelaySpec spec = RelayOf({FunctionOf("main", {"x"}, {{kRet, 0}})});
  spec.globals = {"main", "other"};
  CHECK_THAT(Refusal(spec), Contains("1 functions and 2 names"));
}

// A program of stock kernels, which check what they are given, so that whatever is accepted may run.
RelaySpec Runnable() {
  RelaySpec spec = RelayOf(
      {FunctionOf("main", {"x"},
                  Join({MakeTensor(1, {6}),
                        {Call(0, {0, 1}), {kShapeOf, 1, 2}, {kReshape, 1, 2, 3}, {kInvoke, 1, 2, 4, 3, 0}},
                        {{kLoadConsti, 1, 5}, {kIf, 5, 5, 1, 2}, {kMove, 4, 6}, {kAllocAdt, 0, 2, 7, 4, 3}},
                        {{kGetField, 7, 1, 8}, {kRet, 8}}})),
       FunctionOf("inner", {"a", "b"}, Join({MakeTensor(2, {6}), {Call(1, {0, 1, 2}), {kRet, 2}}}))});
  spec.kernels = {"rewire.relu", "rewire.add", "rewire.neg"};
  return spec;
}

// Runs the file if it is accepted. True when it was.
bool RunAccepted(const RelaySpec& spec) {
  Result<Module> module = tvm::ImportRelayExecutable(tvm::Share(WriteRelay(spec)));
  if (!module) return false;
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return false;
  LinkOptions options;
  options.storage_fill = StorageFill::kZero;
  const Result<Program> program = Program::Link(*executable, options);
  if (!program) return false;
  Limits limits;
  limits.steps = 10000;
  limits.depth = 100;
  limits.bytes = 16 << 20;
  VirtualMachine vm(*program, limits);
  float x[6] = {1, -2, 3, -4, 5, -6};
  for (std::uint32_t f = 0; f < program->executable().module().functions.size(); ++f) {
    for (std::uint32_t i = 0; i < program->executable().module().functions[f].inputs.size(); ++i) {
      (void)vm.TrySetInput(InputHandle{f, i}, TensorView(x, {6}));
    }
    (void)vm.TryInvoke(f);  // an error is as good as a result
  }
  return true;
}

TEST_CASE("of 200 files with one changed field and a right hash none ends the process") {
  REQUIRE(RunAccepted(Runnable()));
  std::mt19937_64 random(7);
  int accepted = 0;
  for (int i = 0; i < 200; ++i) {
    RelaySpec spec = Runnable();  // WriteRelay makes the hashes
    Code& code = spec.functions[random() % 2].code;
    tvm::RelayWords& words = code[random() % code.size()];
    std::int64_t& field = words[random() % words.size()];
    const std::int64_t odd[] = {field + 1, field - 1, -field,
                                INT64_MAX, INT64_MIN, static_cast<std::int64_t>(random() % 70)};
    field = odd[random() % 6];
    accepted += RunAccepted(spec) ? 1 : 0;
  }
  CHECK(accepted > 20);  // else nothing but the importer was tried
  CHECK(accepted < 180);
}

}  // namespace
}  // namespace rewire::test
