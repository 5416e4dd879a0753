// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/verifier.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/bad_modules.h"
#include "rewire/tests/support/paths.h"

namespace rewire {
namespace {

std::string RuleOf(const std::string& bad_name) { return bad_name.substr(0, bad_name.find('/')); }

// The ids in the tables of docs/verification.md: "| `id` | ...".
std::set<std::string> DocumentedRules() {
  std::ifstream file(std::string(test::SourceDir()) + "/docs/verification.md");
  REQUIRE(file);
  const std::regex row(R"(^\| `([a-z_]+\.[a-z_0-9]+)` \|.*)");
  std::set<std::string> rules;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, match, row)) rules.insert(match[1]);
  }
  return rules;
}

TEST_CASE("every bad module is refused with its message, as a file too") {
  for (const test::BadModule& bad : test::BadModules()) {
    CAPTURE(bad.name);
    Status status = VerifyModule(bad.module, bad.limits);
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kVerificationFailed);
    CHECK(status.error().message() == bad.message);
    if (bad.in_memory_only) continue;
    auto bytes = std::make_shared<std::vector<std::byte>>(*SerializeModule(bad.module));
    OpenOptions options;
    options.limits = bad.limits;
    Result<Executable> opened = Executable::FromBytes({{bytes->data(), bytes->size()}, bytes}, options);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().message() == bad.message);
  }
}

TEST_CASE("every rule of docs/verification.md has a bad module and the reverse") {
  std::set<std::string> tested;
  for (const test::BadModule& bad : test::BadModules()) tested.insert(RuleOf(bad.name));
  CHECK(tested == DocumentedRules());
}

TEST_CASE("the good module passes") {
  Status status = VerifyModule(test::GoodModule());
  if (!status) FAIL(status.error().message());
}

// Code of "main" of the good module, with a return of its input behind.
Status VerifyCode(void (*emit)(CodeWriter&), void (*change)(Module&) = nullptr) {
  Module module = test::GoodModule();
  CodeWriter code;
  emit(code);
  code.Ret(0);
  module.functions[0].code = *code.Finish();
  if (change != nullptr) change(module);
  return VerifyModule(module);
}

void CheckAccepted(const Status& status) {
  if (!status) FAIL_CHECK(status.error().message());
}

TEST_CASE("what the verifier leaves to the run") {
  SECTION("code that is never reached") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      c.Ret(0);
      c.Move(5, 6);
      c.InvokeClosure(0, 1, {});
    }));
  }
  SECTION("an endless loop, which the step limit ends") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      auto self = c.NewLabel();
      c.Bind(self);
      c.Goto(self);
    }));
  }
  SECTION("a register that may hold the right kind") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      auto one = c.NewLabel(), other = c.NewLabel(), both = c.NewLabel();
      c.If(0, 0, one, other);
      c.Bind(one);
      c.AllocADT(0, 1, {});
      c.Goto(both);
      c.Bind(other);
      c.AllocClosure(0, 1, {});
      c.Bind(both);
      c.InvokeClosure(1, 2, {0});
    }));
  }
  SECTION("a write to what is read-only on one path alone") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      auto one = c.NewLabel(), other = c.NewLabel(), both = c.NewLabel();
      c.AllocStorage(kNone, 64, kFloat32, 0, 2, {4});
      c.If(0, 0, one, other);
      c.Bind(one);
      c.LoadConst(0, 1);
      c.Goto(both);
      c.Bind(other);
      c.AllocTensor(2, kNone, kFloat32, 1, {4});
      c.Bind(both);
      c.InvokePacked(0, 1, kNone, {0, 1});
    }));
  }
  SECTION("a write through an ADT, whose fields become the arguments") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      c.AllocStorage(kNone, 64, kFloat32, 0, 2, {4});
      c.AllocTensor(2, kNone, kFloat32, 1, {4});
      c.AllocADT(0, 3, {0, 1});
      c.InvokePacked(0, 1, kNone, {3});
      c.InvokePacked(0, 2, kNone, {3});
    }));
  }
  SECTION("writes before an ADT, whose fields may be all that is written") {
    CheckAccepted(VerifyCode([](CodeWriter& c) {
      c.AllocStorage(kNone, 64, kFloat32, 0, 2, {4});
      c.AllocTensor(2, kNone, kFloat32, 1, {4});
      c.AllocADT(0, 3, {1, 1});
      c.InvokePacked(0, 2, kNone, {0, 3});
    }));
  }
  SECTION("an integer for a one-element integer tensor") {
    CheckAccepted(VerifyCode(
        [](CodeWriter& c) {
          c.LoadConsti(0, 1);
          c.Invoke(1, 1, {1, 1});
        },
        [](Module& m) {
          m.functions[1].inputs[0].type = TensorType(kInt64, {});
          m.functions[1].inputs[1].type = UnrankedTensorType();
          m.functions[1].result = TensorType(kInt64, {1});
          m.functions[1].output_names = {"y"};
        }));
  }
  SECTION("emptying an empty register") {
    CheckAccepted(VerifyCode([](CodeWriter& c) { c.Kill(5); }));
  }
}

TEST_CASE("the largest rank and the largest alignment are allowed") {
  CheckAccepted(VerifyCode([](CodeWriter& c) {
    c.AllocStorage(kNone, 1u << 16, kFloat32, 0, 2, {4});
    c.AllocTensor(2, kNone, kFloat32, 1, std::vector<std::int64_t>(FormatLimits().rank, 1));
  }));
}

// A chain of moves that passes one register on by each round of a loop: the walk is quadratic, and ends by
// the limit and not by patience.
TEST_CASE("code that nothing reaches is checked for structure, not for flow") {
  Module module = test::GoodModule();
  Function& function = module.functions[0];
  const auto accepts = [&](bool reached, std::uint32_t read) {
    CodeWriter code;
    if (!reached) code.Ret(0);
    code.Move(read, 0);
    code.Ret(0);
    function.code = *code.Finish();
    return VerifyModule(module, {}).has_value();
  };
  const std::uint32_t undefined = function.register_count++;
  CHECK(accepts(false, undefined));
  CHECK_FALSE(accepts(true, undefined));
  CHECK_FALSE(accepts(false, function.register_count));
}

TEST_CASE("a function that is slow to verify is refused") {
  constexpr std::uint32_t kRegisters = 20000;
  Module module = test::GoodModule();
  module.functions[0].register_count = kRegisters;
  CodeWriter code;
  auto again = code.NewLabel(), done = code.NewLabel();
  for (std::uint32_t i = 1; i < kRegisters; ++i) code.LoadConsti(0, i);
  code.Bind(again);
  for (std::uint32_t i = kRegisters - 1; i > 0; --i) code.Move(i - 1, i);
  code.If(0, 0, done, again);
  code.Bind(done);
  code.Ret(0);
  module.functions[0].code = *code.Finish();
  FormatLimits limits;
  limits.verifier_steps = 1u << 22;
  Status status = VerifyModule(module, limits);
  REQUIRE_FALSE(status);
  const std::string message = status.error().message();
  CHECK(message.rfind("'main': verifying takes 4194", 0) == 0);  // a block more than the limit
  CHECK(message.find("the limit is 4194304; raise FormatLimits::verifier_steps") != std::string::npos);
}

}  // namespace
}  // namespace rewire
