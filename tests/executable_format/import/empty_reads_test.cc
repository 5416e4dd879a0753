// SPDX-License-Identifier: Apache-2.0
// Relay VM executables that read registers which hold nothing, as TVM makes them of nested matches.
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"
#include "rewire/vm/vm.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;
using Code = std::vector<RelayWords>;

// Opens a program that calls no kernel.
Result<Executable> Open(RelaySpec spec) {
  spec.kernels = {};
  Result<Module> module = ImportRelayExecutable(Share(WriteRelay(spec)));
  if (!module) return Forward(module);
  return Executable::FromModule(*std::move(module));
}

std::string OpenedCodeOf(Code code) {
  const Result<Executable> executable = Open(OneFunction(std::move(code)));
  if (!executable) FAIL(executable.error().message());
  return CodeText(executable->module());
}

std::string OpenErrorOf(Code code) {
  const Result<Executable> executable = Open(OneFunction(std::move(code)));
  return executable ? "no error" : executable.error().message();
}

std::string FatalText(int instruction, const std::string& mnemonic, int reg) {
  return "fatal \"instruction " + std::to_string(instruction) + " of TVM's code (" + mnemonic +
         ") reads register " + std::to_string(reg) + ", which holds nothing\"\n";
}

TEST_CASE("a read of what holds nothing stops the program there") {
  CHECK(OpenedCodeOf({{kRet, 50}}) == FatalText(0, "ret", 50));
  CHECK(OpenedCodeOf({{kMove, 0, 5}, {kKill, 5}, {kRet, 5}}) == FatalText(2, "ret", 5));
  // An ADT is made although nobody reads it: its register is empty because of the kill alone.
  CHECK(OpenedCodeOf({{kAllocAdt, 5, 0, 5}, {kKill, 5}, {kRet, 5}}) ==
        "%1 = alloc_adt tag=5 ()\nkill %1\n" + FatalText(2, "ret", 5));
  // The code behind it is not reached, so that its writes do not count.
  CHECK(OpenedCodeOf({{kGetField, 50, 0, 7}, {kLoadConsti, 1, 8}, {kRet, 8}}) ==
        FatalText(0, "get_field", 50));
  CHECK(OpenedCodeOf({{kGetTag, 5, 6}, {kMove, 0, 5}, {kIf, 6, 6, -2, 1}, {kRet, 0}}) ==
        FatalText(0, "get_tag", 5));
  // The copy of a clause: it writes register 21 and reads that of the first copy.
  CHECK(OpenedCodeOf({
            {kGetTag, 0, 1},        // 0
            {kLoadConsti, 7, 2},    // 1
            {kIf, 1, 2, 1, 4},      // 2: to 3 or 6
            {kAllocAdt, 5, 0, 20},  // 3: the clause
            {kMove, 20, 19},        // 4
            {kGoto, 3},             // 5: to 8
            {kAllocAdt, 5, 0, 21},  // 6: its copy
            {kMove, 20, 19},        // 7
            {kRet, 19},             // 8
        }) ==
        "%1 = get_tag %x\n"
        "%2 = load_consti 7\n"
        "if %1 == %2 goto L12 else L21\n"
        "%1 = alloc_adt tag=5 ()\n"
        "%2 = move %1\n"
        "goto L27\n"
        "%1 = alloc_adt tag=5 ()\n" +
            FatalText(7, "move", 20) + "ret %2\n");
}

TEST_CASE("a dead move of what nobody writes is no read") {
  CHECK(OpenedCodeOf({{kMove, 5, 6}, {kRet, 0}}) == "ret %x\n");
}

TEST_CASE("the verifier still refuses a read of what holds something on some paths alone") {
  CHECK_THAT(OpenErrorOf({{kIf, 0, 0, 1, 2}, {kMove, 0, 5}, {kRet, 5}}),
             Contains("register %1 is undefined"));
  CHECK_THAT(OpenErrorOf({{kMove, 0, 5}, {kIf, 0, 0, 1, 2}, {kKill, 5}, {kRet, 5}}),
             Contains("register %1 is undefined"));
}

TEST_CASE("the run names function, place and register") {
  const Result<Executable> executable =
      Open(OneFunction({{kIf, 0, 1, 1, 2}, {kRet, 0}, {kRet, 50}}, {"x", "y"}));
  REQUIRE(executable);
  LinkOptions options;
  options.stock_kernels = false;
  VirtualMachine vm(*Program::Link(*executable, options));
  const auto run = [&](std::int64_t y) { return vm.TryInvoke("main", {Value(std::int64_t{3}), Value(y)}); };
  CHECK(run(3)->integer() == 3);
  const Result<Value> stopped = run(4);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code() == StatusCode::kRuntimeFailed);
  CHECK_THAT(
      stopped.error().message(),
      Catch::StartsWith("main@") && Catch::EndsWith("the program stopped itself: instruction 2 of TVM's code "
                                                    "(ret) reads register 50, which holds nothing"));
}

// A run of the file's own instructions, with registers that are null until they are written.
class Reference {
 public:
  enum class End : std::uint8_t { kValue, kNullRead };
  struct Outcome {
    End end;
    std::int64_t value;
    bool moved_null;  // a Move that may be dead
  };

  static Outcome Run(const Code& code, const std::vector<std::int64_t>& inputs) {
    std::map<std::int64_t, std::optional<std::int64_t>> registers;
    for (std::size_t i = 0; i < inputs.size(); ++i) registers[static_cast<std::int64_t>(i)] = inputs[i];
    Outcome outcome{End::kNullRead, 0, false};
    for (std::size_t pc = 0;;) {
      const RelayWords& words = code[pc];
      std::int64_t step = 1;
      switch (words[0]) {
        case kLoadConsti:
          registers[words[2]] = words[1];
          break;
        case kMove:
          outcome.moved_null = outcome.moved_null || !registers[words[1]];
          registers[words[2]] = registers[words[1]];
          break;
        case kKill:
          registers.erase(words[1]);
          break;
        case kGoto:
          step = words[1];
          break;
        case kIf:
          if (!registers[words[1]] || !registers[words[2]]) return outcome;
          step = *registers[words[1]] == *registers[words[2]] ? words[3] : words[4];
          break;
        default:
          if (!registers[words[1]]) return outcome;
          return {End::kValue, *registers[words[1]], outcome.moved_null};
      }
      pc = static_cast<std::size_t>(static_cast<std::int64_t>(pc) + step);
    }
  }
};

// Code that only jumps forwards, over a few registers, of which some may never be written.
Code RandomCode(std::mt19937_64& random) {
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  const std::int64_t size = 4 + draw(12);
  Code code;
  for (std::int64_t i = 0; i + 1 < size; ++i) {
    const std::int64_t left = size - 1 - i;
    switch (draw(7)) {
      case 0:
      case 1:
        code.push_back({kLoadConsti, draw(3), 2 + draw(5)});
        break;
      case 2:
      case 3:
        code.push_back({kMove, draw(7), 2 + draw(5)});
        break;
      case 4:
        code.push_back({kKill, 2 + draw(5)});
        break;
      case 5:
        code.push_back({kIf, draw(3), draw(7), 1 + draw(left), 1 + draw(left)});
        break;
      default:
        code.push_back(draw(2) == 0 ? RelayWords{kGoto, 1 + draw(left)} : RelayWords{kRet, draw(7)});
    }
  }
  code.push_back({kRet, draw(7)});
  return code;
}

TEST_CASE("drawn programs end as the file's own instructions do, and never read a register without a value") {
  std::mt19937_64 random(40);
  int refused = 0, stopped = 0, values = 0;
  for (int i = 0; i < 3000; ++i) {
    const Code code = RandomCode(random);
    const Result<Executable> executable = Open(OneFunction(code, {"x", "y"}));
    if (!executable) {
      // A register that holds something on some paths alone is the verifier's to refuse.
      CHECK_THAT(executable.error().message(), Contains("is undefined"));
      ++refused;
      continue;
    }
    LinkOptions options;
    options.stock_kernels = false;
    VirtualMachine vm(*Program::Link(*executable, options));
    for (const std::vector<std::int64_t>& inputs : {std::vector<std::int64_t>{0, 1}, {1, 1}, {2, 0}}) {
      const Reference::Outcome expected = Reference::Run(code, inputs);
      const Result<Value> result = vm.TryInvoke("main", {Value(inputs[0]), Value(inputs[1])});
      if (result) {
        REQUIRE(expected.end == Reference::End::kValue);
        REQUIRE(result->integer() == expected.value);
        ++values;
      } else {
        CHECK_THAT(result.error().message(), Contains("main@") && Contains("which holds nothing"));
        REQUIRE((expected.end == Reference::End::kNullRead || expected.moved_null));
        ++stopped;
      }
    }
  }
  CHECK(refused > 10);
  CHECK(stopped > 100);
  CHECK(values > 1000);
}

// Each block has a read of its own, so that finding the file's number of each takes one walk.
TEST_CASE("many unwritten reads cost no more than the code") {
  Code code;
  constexpr std::int64_t kReads = 50000;
  for (std::int64_t i = 0; i < kReads; ++i) {
    code.push_back({kIf, 0, 0, 1, 2});
    code.push_back({kRet, 50});
  }
  code.push_back({kRet, 0});
  const Result<Executable> executable = Open(OneFunction(code));
  REQUIRE(executable);
  CHECK(executable->module().strings.size() == kReads + 1);
}

}  // namespace
}  // namespace rewire::tvm
