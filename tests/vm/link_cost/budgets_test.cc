// SPDX-License-Identifier: Apache-2.0
// Every budget of opening and linking, at its boundary: what a file costs exactly is enough, one less is not.
// A link that fails gives back all that it has taken.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewire/executable_format/compress_constant.h"
#include "rewire/executable_format/module_size.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/tests/executable_format/import/memory_watch.h"
#include "rewire/tests/vm/link_cost/growing_modules.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/plan/output_plan.h"

namespace rewire::test {
namespace {

using Clock = std::chrono::steady_clock;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Module Growing(const std::string& name, std::uint32_t n) {
  std::vector<GrowingModule> all = GrowingModules();
  for (GrowingModule& more : ExplodingModules()) all.push_back(std::move(more));
  for (const GrowingModule& growing : all) {
    if (growing.name == name) return growing.make(n);
  }
  FAIL("no module " << name);
  return {};
}

Executable ExecutableOfModule(Module module) {
  Result<Executable> executable = Executable::FromModule(std::move(module));
  if (!executable) FAIL(executable.error().message());
  return *std::move(executable);
}

// Links twice under these limits, the second time with nothing left over from the first; both must fail
// alike.
Error LinkError(const Executable& executable, const LinkLimits& limits) {
  Result<Program> first = Fail(StatusCode::kInternal, "not linked");
  TestAllocator memory;
  for (int round = 0; round < 2; ++round) {
    LinkOptions options = GrowingLinkOptions();
    options.allocator = memory.allocator();
    options.limits = limits;
    const tvm::MemoryWatch watch;
    {
      const Result<Program> program = Program::Link(executable, options);
      REQUIRE_FALSE(program);
      if (round == 0) first = program;
      CHECK(program.error().message() == first.error().message());
    }
    if (round == 1) CHECK(watch.held() == 0);
  }
  CHECK(memory.blocks() == 0);
  return first.error();
}

Result<Program> LinkUnder(const Executable& executable, const LinkLimits& limits) {
  LinkOptions options = GrowingLinkOptions();
  options.limits = limits;
  return Program::Link(executable, options);
}

TEST_CASE("a meter stops after its budget, and says the same from then on") {
  WorkMeter::Budget budget;
  budget.stage = "counting";
  budget.units = 10;
  budget.units_option = "Options::units";
  budget.bytes = 100;
  budget.bytes_option = "Options::bytes";
  WorkMeter meter(budget);
  CHECK(meter.Charge(10));
  CHECK(meter.left() == 0);
  CHECK(meter.Failure());
  CHECK_FALSE(meter.exhausted());
  const Status failed = meter.Charge(1);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::kStepLimit);
  CHECK(failed.error().message() ==
        "counting takes 11 units of work or more, the limit is 10; raise Options::units if the file may take "
        "more");
  CHECK_FALSE(meter.Spend(0));
  CHECK_FALSE(meter.ChargeBytes(1));

  WorkMeter memory(budget);
  CHECK(memory.ChargeBytes(100));
  CHECK(memory.ChargeBytes(0));
  CHECK(MessageOf(memory.ChargeBytes(std::uint64_t(-1))) ==
        "counting takes 18446744073709551615 bytes of memory or more, the limit is 100; raise Options::bytes "
        "if "
        "the file may take more");
  CHECK_FALSE(memory.Spend(1));

  budget.units = std::uint64_t(-1);
  budget.deadline = Clock::now();
  budget.deadline_option = "Options::deadline";
  WorkMeter late(budget);
  CHECK(late.Spend(1));  // it looks at the clock now and then
  CHECK_FALSE(late.Spend(1u << 20));
  CHECK(late.Failure().code() == StatusCode::kDeadlineExceeded);
  CHECK(MessageOf(late.Failure()) ==
        "counting has not ended at its deadline, after 1048577 units of work; set Options::deadline later");
  WorkMeter early(budget);
  CHECK(early.Check().code() == StatusCode::kDeadlineExceeded);
}

TEST_CASE("verifying takes what it takes, and no unit less") {
  const Module module = Growing("branches", 100);
  WorkMeter meter(VerifierBudget(ModuleSize(module), {}));
  REQUIRE(VerifyModule(module, {}, &meter));
  FormatLimits limits;
  limits.verifier_steps = meter.spent();
  CHECK(MessageOf(VerifyModule(module, limits)) == "");
  --limits.verifier_steps;
  const Status status = VerifyModule(module, limits);
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kVerificationFailed);
  CHECK(Contains(status.error().message(), "the limit is " + std::to_string(limits.verifier_steps) +
                                               "; raise FormatLimits::verifier_steps"));
}

TEST_CASE("verifying ends at its deadline") {
  FormatLimits limits;
  limits.deadline = Clock::now();
  const Status status = VerifyModule(Growing("branches", 100), limits);
  REQUIRE_FALSE(status);
  CHECK(status.error().code() == StatusCode::kDeadlineExceeded);
  CHECK(Contains(status.error().message(), "FormatLimits::deadline"));
  limits.deadline = Clock::now() + std::chrono::hours(1);
  CHECK(MessageOf(VerifyModule(Growing("branches", 100), limits)) == "");
}

TEST_CASE("linking takes what it takes, and no unit less") {
  const Executable executable = ExecutableOfModule(Growing("constants of one stated checksum", 5000));
  const Result<Program> program = LinkUnder(executable, {});
  REQUIRE(MessageOf(program) == "");
  LinkLimits limits;
  limits.work = program->rep().link_work;
  CHECK(MessageOf(LinkUnder(executable, limits)) == "");
  --limits.work;
  const Error error = LinkError(executable, limits);
  CHECK(error.code() == StatusCode::kStepLimit);
  CHECK(Contains(error.message(),
                 "the limit is " + std::to_string(limits.work) + "; raise LinkLimits::work if the file may"));
}

TEST_CASE("linking ends at its deadline") {
  LinkLimits limits;
  limits.deadline = Clock::now();
  const Error error = LinkError(ExecutableOfModule(Growing("branches", 10)), limits);
  CHECK(error.code() == StatusCode::kDeadlineExceeded);
  CHECK(Contains(error.message(), "LinkLimits::deadline"));
}

TEST_CASE("where the plan's part of the work does not suffice outputs are copied, and values stay") {
  const Executable executable = ExecutableOfModule(Growing("calls, callers first", 1000));
  LinkLimits limits;
  const Result<Program> whole = LinkUnder(executable, limits);
  REQUIRE(MessageOf(whole) == "");
  CHECK(whole->rep().plans[0].leaves[0].rewired);
  limits.work = whole->rep().link_work;
  const Result<Program> part = LinkUnder(executable, limits);
  REQUIRE(MessageOf(part) == "");
  const Array<FunctionPlan>& plans = part->rep().code->plans;
  CHECK(plans[0].leaves[0].reason == CopyReason::kTooLarge);
  CHECK_FALSE(plans[0].leaves[0].rewired);
  // Callees come first: those that the work has sufficed for have their plan.
  CHECK(plans[999].leaves[0].rewired);
  VirtualMachine vm(*part);
  std::vector<float> out(4, 1);
  vm.SetOutput(0, TensorView(out.data(), {4}));
  CHECK(MessageOf(vm.TryInvoke()) == "");
  CHECK(Contains(vm.TryOutputReport(OutputHandle{0, 0})->reason, "too large to be analyzed"));
}

// Zeroes compressed to a fraction of a thousandth.
Module Compressed(std::uint64_t bytes) {
  Module module = Growing("devices", 1);
  const auto zeroes = std::make_shared<std::vector<std::byte>>(bytes);
  Constant constant;
  constant.name = "zeroes";
  constant.type = TensorType(kUInt8, {static_cast<std::int64_t>(bytes)}).nodes[0];
  constant.raw_bytes = bytes;
  constant.stored = {{zeroes->data(), bytes}, zeroes};
  REQUIRE(CompressConstant(&constant));
  module.constants.push_back(std::move(constant));
  return module;
}

TEST_CASE("constants are decompressed into what linking may take, and not a byte less") {
  constexpr std::uint64_t kBytes = 8 << 20;
  const Executable executable = ExecutableOfModule(Compressed(kBytes));
  LinkLimits limits;
  limits.bytes = kBytes;
  {
    const Result<Program> program = LinkUnder(executable, limits);
    CHECK(MessageOf(program) == "");
    CHECK(program->rep().link_bytes == kBytes);
  }
  --limits.bytes;
  const tvm::MemoryWatch watch;
  const Error error = LinkError(executable, limits);
  CHECK(error.code() == StatusCode::kMemoryLimit);
  CHECK(error.message() ==
        "constant zeroes: linking takes 8388608 bytes of memory or more, the limit is 8388607; raise "
        "LinkLimits::bytes if the file may take more");
  CHECK(watch.peak() < (1 << 20));  // it has not been decompressed to find that out
}

TEST_CASE("a constant that says more than its bytes can become is damaged, and takes no memory") {
  Module module = Compressed(1 << 20);
  Constant& constant = module.constants[0];
  constant.raw_bytes = std::uint64_t{1} << 40;
  constant.type.dims[0] = std::int64_t{1} << 40;
  LinkLimits limits;
  limits.bytes = std::uint64_t(-1);
  const Error error = LinkError(ExecutableOfModule(std::move(module)), limits);
  CHECK(error.code() == StatusCode::kInvalidFile);
  CHECK(Contains(error.message(), "decompresses to 1048576 bytes at most, its type takes 1099511627776"));
}

constexpr char kInit[] = R"(
  .computed c: f32[4]
  .kernel fill = "host.fill"
  .func __init() -> (f32[4])
    %steps = load_consti 0
    %one = load_consti 1
%LOOP
    %n = load_consti 1048576
    %big = alloc_storage %n, alignment=64, f32, cpu
    %t = alloc_tensor %big, _, f32[4]
    invoke_packed fill(%t), outputs=1
    %r = alloc_adt tag=0 (%t)
    ret %r
  .end
  .func main() -> y: f32[4]
    %c = load_const c
    ret %c
  .end)";

Executable WithInit(const std::string& loop) {
  std::string text = kInit;
  text.replace(text.find("%LOOP"), 5, loop);
  return ExecutableOf(text);
}

TEST_CASE("what __init runs is part of linking") {
  SECTION("its instructions are work") {
    const Executable endless =
        WithInit("again:\n if %steps == %one goto done else again2\nagain2:\n goto again\ndone:");
    const Error error = LinkError(endless, {});
    CHECK(error.code() == StatusCode::kStepLimit);
    CHECK(Contains(error.message(), "LinkLimits::work"));
  }
  SECTION("its memory is memory, to the byte") {
    const Executable executable = WithInit("");
    LinkLimits limits;
    limits.bytes = 1 << 21;
    const Result<Program> program = LinkUnder(executable, limits);
    REQUIRE(MessageOf(program) == "");
    limits.bytes = 1 << 20;  // the tensor, without its header and the stack
    const Error error = LinkError(executable, limits);
    CHECK(error.code() == StatusCode::kMemoryLimit);
    CHECK(Contains(error.message(), "LinkLimits::bytes"));
  }
  SECTION("its own limits say so themselves") {
    LinkOptions options = GrowingLinkOptions();
    options.init_limits.steps = 3;
    const Result<Program> program = Program::Link(WithInit(""), options);
    REQUIRE_FALSE(program);
    CHECK(program.error().code() == StatusCode::kStepLimit);
    CHECK_FALSE(Contains(program.error().message(), "LinkLimits"));
  }
}

TEST_CASE("constants of one stated checksum keep their own bytes") {
  const Executable executable = ExecutableOfModule(Growing("constants of one stated checksum", 1000));
  const Result<Program> program = LinkUnder(executable, {});
  REQUIRE(MessageOf(program) == "");
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const DLTensor& tensor = TensorOf(program->rep().constants[i])->tensor;
    std::uint32_t value = 0;
    std::memcpy(&value, tensor.data, sizeof(value));
    if (value != i) FAIL("constant " << i << " has the bytes of " << value);
  }
}

TEST_CASE("of what is missing as much is named as anybody reads") {
  for (const std::uint32_t missing : {63U, 64U, 5000U}) {
    Module module = Growing("kernels", missing + 1);
    for (std::uint32_t i = 0; i < missing; ++i) module.kernels[i + 1].name = "missing" + std::to_string(i);
    const std::string message = LinkError(ExecutableOfModule(std::move(module)), {}).message();
    CHECK(Contains(message, "'missing62'"));
    CHECK(Contains(message, "'missing63'") == (missing >= 64));
    CHECK_FALSE(Contains(message, "'missing64'"));
    CHECK(Contains(message, "\n  (there may be more)") == (missing >= 64));
  }
}

TEST_CASE("links of one program anew are counted as the first was, without its deadline") {
  Module module = Growing("constants of one stated checksum", 100);
  Constant parameter;
  parameter.kind = ConstantKind::kParameter;
  parameter.name = "p";
  parameter.type = TensorType(kFloat32, {4}).nodes[0];
  module.constants.push_back(parameter);
  LinkOptions options = GrowingLinkOptions();
  ParameterSet set;
  set.Set("p", Floats({1, 2, 3, 4}));
  options.parameters.push_back(set);
  options.limits.deadline = Clock::now() + std::chrono::seconds(20);
  const Result<Program> program = Program::Link(ExecutableOfModule(std::move(module)), options);
  REQUIRE(MessageOf(program) == "");
  set.Set("p", Floats({5, 6, 7, 8}));
  const Result<Program> other = program->Rebind({&set, 1});
  REQUIRE(MessageOf(other) == "");
  CHECK(other->rep().link_work < program->rep().link_work);
  CHECK(other->rep().link_work >= 101);
}

}  // namespace
}  // namespace rewire::test
