// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;

Module Import(const RelaySpec& spec) {
  Result<Module> module = ImportRelayExecutable(Share(WriteRelay(spec)));
  if (!module) FAIL(module.error().message());
  return std::move(*module);
}

// The one function's code, which the verifier must accept.
std::string CodeOf(const RelaySpec& spec) {
  Module module = Import(spec);
  std::string text = CodeText(module);
  Result<Executable> executable = Executable::FromModule(std::move(module));
  if (!executable) FAIL(executable.error().message());
  return text;
}

std::string ErrorOf(const RelaySpec& spec) {
  Result<Module> module = ImportRelayExecutable(Share(WriteRelay(spec)));
  REQUIRE_FALSE(module);
  return module.error().message();
}

std::string VerifyErrorOf(const RelaySpec& spec) {
  Result<Executable> executable = Executable::FromModule(Import(spec));
  REQUIRE_FALSE(executable);
  CHECK(executable.error().code() == StatusCode::kVerificationFailed);
  return executable.error().message();
}

TEST_CASE("a kernel's call comes over with its storage, and registers are shared") {
  RelaySpec spec = OneFunction({
      {kAllocStorage, 987654321, 3, 2, 32, 1, 0, 2, 20, 2, 3},  // size and alignment: garbage
      {kLoadConst, 0, 0, 21},
      {kAllocTensor, 20, 21, 2, 32, 1, 2, 22, 2, 3},
      {kKill, 20},
      {kInvokePacked, 1, 2, 1, 0, 22},
      {kKill, 0},
      {kRet, 22},
  });
  spec.constants = {Scalar64(0)};
  CHECK(CodeOf(spec) ==
        "%1 = alloc_storage _, alignment=64, f32[2, 3], cpu\n"
        "%2 = alloc_tensor %1, _, f32[2, 3]\n"
        "kill %1\n"
        "invoke_packed kernel_b(%x, %2), outputs=1\n"
        "ret %2\n");
  const Module module = Import(spec);
  CHECK(module.functions[0].register_count == 3);
  CHECK(module.kernels[1].alignment == 64);
  CHECK(module.metadata[0].second == "Relay VM executable of TVM 0.14.0");
}

TEST_CASE("sizes and offsets in constants become part of the instruction where they are known") {
  RelaySpec spec = OneFunction({
      {kLoadConst, 0, 1},
      {kAllocStorage, 1, 32, 2, 32, 1, 0, 2},
      {kLoadConst, 1, 3},
      {kAllocTensor, 2, 3, 2, 32, 1, 1, 4, 2},
      {kRet, 4},
  });
  spec.form = RelaySpec::Devices::kPlain;
  spec.version = "0.9.0";
  spec.constants = {Scalar64(40), Scalar64(32)};
  CHECK(CodeOf(spec) ==
        "%1 = alloc_storage _, alignment=128, u8[40], cpu\n"
        "%2 = load_const #1\n"
        "%3 = alloc_tensor %1, %2, f32[2]\n"
        "ret %3\n");
}

TEST_CASE("what a register is known to hold ends where another path joins") {
  RelaySpec spec = OneFunction({
      {kLoadConst, 0, 1},                      // 0
      {kIf, 0, 1, 1, 2},                       // 1: to 2 or 3
      {kMove, 0, 1},                           // 2
      {kAllocStorage, 1, 64, 2, 32, 1, 0, 2},  // 3
      {kAllocTensor, 2, 1, 2, 32, 1, 1, 4, 2},
      {kRet, 4},
  });
  spec.constants = {Scalar64(0)};
  CHECK(CodeOf(spec) ==
        "%1 = load_const #0\n"
        "if %x == %1 goto L8 else L11\n"
        "%1 = move %x\n"
        "%2 = alloc_storage %1, alignment=64, f32, cpu\n"
        "%3 = alloc_tensor %2, %1, f32[2]\n"
        "ret %3\n");
}

TEST_CASE("every opcode comes over with its operands in place") {
  RelaySpec spec = OneFunction(
      {
          {kShapeOf, 0, 2},
          {kReshape, 0, 2, 3},
          {kAllocAdt, -2013265920, 2, 4, 3, 1},
          {kGetTag, 4, 5},
          {kLoadConsti, -2013265920, 6},
          {kIf, 5, 6, 2, 1},
          {kFatal},
          {kGetField, 4, 1, 7},
          {kAllocClosure, 1, 1, 8, 7},
          {kMove, 8, 16},
          {kInvokeClosure, 16, 1, 9, 0},
          {kInvoke, 1, 2, 10, 9, 0},
          {kLoadConst, 0, 0, 11},
          {kAllocStorage, 11, 64, 2, 32, 1, 0, 0, 12},
          {kAllocTensorReg, 12, 11, 2, 2, 16, 1, 13},
          {kDeviceCopy, 13, 0, 1, 14},
          {kAllocAdt, 0, 2, 15, 14, 10},
          {kGoto, 2},
          {kFatal},
          {kRet, 15},
      },
      {"x", "y"});
  spec.functions.push_back({"other", "2", {"a", "b"}, {{kRet, 1}}, ""});
  spec.devices = {DeviceEntry{}, DeviceEntry{kDLCUDA, 0, ""}};
  spec.constants = {{"size", kInt64, {}, "", 0}};
  CHECK(CodeOf(spec) ==
        "%2 = shape_of %x\n"
        "%3 = reshape_tensor %x, %2\n"
        "%4 = alloc_adt tag=2281701376 (%3, %y)\n"
        "%3 = get_tag %4\n"
        "%5 = load_consti -2013265920\n"
        "if %3 == %5 goto L27 else L25\n"
        "fatal \"no clause of a match applies\"\n"
        "%3 = get_field %4, index=1\n"
        "%4 = alloc_closure other(%3)\n"
        "%3 = move %4\n"
        "%4 = invoke_closure %3(%x)\n"
        "%3 = invoke other(%4, %x)\n"
        "%4 = load_const size\n"
        "%5 = alloc_storage %4, alignment=64, f32, cpu\n"
        "%6 = alloc_tensor_reg %5, %4, %2, f16\n"
        "%2 = device_copy %6, cpu, cuda:0\n"
        "%4 = alloc_adt tag=0 (%2, %3)\n"
        "goto L79\n"
        "ret %4\n");
}

TEST_CASE("a closure that is made just before its call becomes a call") {
  RelaySpec spec = OneFunction(
      {{kAllocClosure, 1, 1, 2, 0}, {kInvokeClosure, 2, 1, 3, 1}, {kKill, 2}, {kRet, 3}}, {"x", "y"});
  spec.functions.push_back({"other", "2", {"a", "b"}, {{kRet, 1}}, ""});
  CHECK(CodeOf(spec) == "%2 = invoke other(%x, %y)\nret %2\n");

  // Not when what it captured has changed since, or when another path joins.
  spec.functions[0].code = {
      {kMove, 0, 4}, {kAllocClosure, 1, 1, 2, 4}, {kMove, 1, 4}, {kInvokeClosure, 2, 1, 3, 4}, {kRet, 3}};
  CHECK_THAT(CodeOf(spec), Contains("invoke_closure"));
  spec.functions[0].code = {{kAllocClosure, 1, 1, 2, 0},
                            {kIf, 0, 1, 1, 2},
                            {kAllocClosure, 1, 1, 2, 1},
                            {kInvokeClosure, 2, 1, 3, 1},
                            {kRet, 3}};
  CHECK_THAT(CodeOf(spec), Contains("invoke_closure"));
  spec.functions[0].code = {
      {kMove, 0, 2}, {kAllocClosure, 1, 1, 2, 2}, {kInvokeClosure, 2, 1, 3, 1}, {kRet, 3}};
  CHECK_THAT(CodeOf(spec), Contains("invoke_closure"));
}

TEST_CASE("code that nothing reaches, idle loads and kills before a ret are dropped") {
  CHECK(CodeOf(OneFunction({
            {kLoadConsti, 7, 1},  // never read
            {kMove, 0, 2},
            {kGoto, 3},
            {kMove, 40, 40},
            {kFatal},
            {kKill, 1},
            {kKill, 0},
            {kRet, 2},
        })) == "%1 = move %x\ngoto L5\nret %1\n");
}

TEST_CASE("parameters may share a name or have none") {
  const Module module = Import(OneFunction({{kRet, 0}}, {"w", "w", "", "w_2"}));
  std::vector<std::string> names;
  for (const NamedType& input : module.functions[0].inputs) names.push_back(input.name);
  CHECK(names == std::vector<std::string>{"w", "w_2", "input2", "w_2_2"});
  CHECK(module.functions[0].inputs[0].type == SimpleType(TypeKind::kValue));
  CHECK(module.functions[0].register_count == 4);
}

TEST_CASE("late-bound constants are parameters, the others keep their bytes aligned") {
  RelaySpec spec =
      OneFunction({{kLoadConst, 0, 0, 1}, {kLoadConst, 1, 0, 2}, {kAllocAdt, 0, 2, 3, 1, 2}, {kRet, 3}});
  spec.constants = {{"weight", kInt64, {}, "", 0},
                    {"", MakeDType(kUInt, 1), {3}, std::string("\1\0\1", 3), 0}};
  Result<Executable> executable = Executable::FromModule(Import(spec));
  REQUIRE(executable);
  const Constant& weight = executable->module().constants[0];
  CHECK(weight.kind == ConstantKind::kParameter);
  CHECK(weight.name == "weight");
  CHECK(weight.type.rank == kUnknownRank);
  const Constant& flags = executable->module().constants[1];
  CHECK((flags.type.dtype == kBool8));
  CHECK(flags.stored.view.size() == 3);
  CHECK(reinterpret_cast<std::uintptr_t>(flags.stored.view.data()) % 64 == 0);
  CHECK(flags.stored.view[2] == std::byte{1});
}

TEST_CASE("only the form with a shape honors a device's memory scope") {
  RelaySpec spec = OneFunction({{kAllocStorage, 0, 64, 2, 32, 1, 1, 0, 1},
                                {kAllocStorage, 0, 0, 2, 32, 1, 1, 1, 2, 4},
                                {kAllocStorage, 0, 0, 2, 32, 1, 2, 1, 3, 4},
                                {kAllocAdt, 0, 3, 4, 1, 2, 3},
                                {kRet, 0}});
  spec.devices = {DeviceEntry{}, DeviceEntry{kDLOpenCL, 0, "global.texture"},
                  DeviceEntry{kDLOpenCL, 0, "global"}};
  const Module module = Import(spec);
  CHECK(module.devices ==
        std::vector<DeviceEntry>{{kDLCPU, 0, ""}, {kDLOpenCL, 0, ""}, {kDLOpenCL, 0, "global.texture"}});
  CHECK(CodeText(module) ==
        "%1 = alloc_storage %x, alignment=64, f32, opencl:0\n"
        "%2 = alloc_storage _, alignment=64, f32[4], opencl:0 \"global.texture\"\n"
        "%3 = alloc_storage _, alignment=64, f32[4], opencl:0\n"
        "%4 = alloc_adt tag=0 (%1, %2, %3)\n"
        "ret %x\n");
}

TEST_CASE("indices past their tables are refused by instruction") {
  CHECK(ErrorOf(OneFunction({{kInvokePacked, 2, 1, 1, 0}, {kRet, 0}})) ==
        "main@0 (invoke_packed) names kernel 2, there are 2");
  CHECK(ErrorOf(OneFunction({{kMove, 64, 1}, {kRet, 1}})) == "main@0 (move) names register 64, there are 64");
  CHECK(ErrorOf(OneFunction({{kMove, 0, -1}, {kRet, 1}})) == "main@0 (move) names register -1, there are 64");
  CHECK_THAT(ErrorOf(OneFunction({{kLoadConst, 0, 0, 1}, {kRet, 1}})),
             Contains("names constant 0, there are 0"));
  CHECK_THAT(ErrorOf(OneFunction({{kInvoke, 1, 0, 1}, {kRet, 1}})),
             Contains("names function 1, there are 1"));
  CHECK_THAT(ErrorOf(OneFunction({{kDeviceCopy, 0, 0, 1, 1}, {kRet, 1}})),
             Contains("names device 1, there are 1"));
  CHECK_THAT(ErrorOf(OneFunction({{kAllocAdt, 1LL << 32, 0, 1}, {kRet, 1}})), Contains("tag 4294967296"));
  CHECK_THAT(ErrorOf(OneFunction({{kAllocTensor, 0, 0, 2, 288, 1, 0, 1}, {kRet, 1}})), Contains("288 bits"));
  CHECK_THAT(ErrorOf(OneFunction({{kAllocTensor, 0, 0, 2, 32, 1, 1, 1, -4}, {kRet, 1}})),
             Contains("dimension of -4"));
}

TEST_CASE("jumps to nowhere are refused") {
  for (std::int64_t offset : {std::int64_t{0}, std::int64_t{2}, std::int64_t{-1}, INT64_MAX, INT64_MIN}) {
    CHECK_THAT(ErrorOf(OneFunction({{kGoto, offset}, {kRet, 0}})), Contains("main@0 (goto): jumps by"));
    CHECK_THAT(ErrorOf(OneFunction({{kIf, 0, 0, 1, offset}, {kRet, 0}})),
               Contains("main@0 (if): jumps by " + std::to_string(offset) +
                        ", which is not to another of the 2 instructions"));
  }
}

TEST_CASE("a function that runs past its end is refused") {
  CHECK_THAT(ErrorOf(OneFunction({{kMove, 0, 1}})),
             Contains("the last instruction goes on past the end of the function"));
  CHECK_THAT(VerifyErrorOf(OneFunction({})), Contains("main"));
}

TEST_CASE("the verifier judges what comes out: undefined registers and sizes that overflow") {
  // Defined on one path alone: sharing registers must not hide it.
  CHECK_THAT(VerifyErrorOf(OneFunction({{kIf, 0, 0, 1, 2}, {kMove, 0, 5}, {kRet, 5}})), Contains("ret"));
  CHECK_THAT(
      VerifyErrorOf(OneFunction({{kAllocStorage, 0, 0, 2, 32, 1, 0, 2, 1, 1LL << 62, 1LL << 62}, {kRet, 0}})),
      Contains("alloc_storage"));
}

TEST_CASE("a loop keeps what its next turn reads") {
  // %1 is read at the top again, after %2 was made: they may not share.
  const std::string text = CodeOf(OneFunction({
      {kMove, 0, 1},
      {kGetField, 1, 0, 2},  // 1: top of the loop
      {kIf, 2, 0, 1, 2},
      {kGoto, -2},
      {kRet, 1},
  }));
  CHECK(text == "%1 = move %x\n%2 = get_field %1, index=0\nif %2 == %x goto L12 else L14\ngoto L3\nret %1\n");
}

TEST_CASE("what cannot be run is refused by name") {
  RelaySpec spec = OneFunction({{kRet, 0}});
  spec.functions[0].name = "__init";
  CHECK_THAT(ErrorOf(spec), Contains("a function is called '__init', which has a meaning of its own here"));
  spec = OneFunction({{kRet, 0}});
  spec.devices = {DeviceEntry{}, DeviceEntry{kDLCUDA + 128, 0, ""}};
  CHECK_THAT(ErrorOf(spec), Contains("a device of type 130 is on another machine, reached by RPC"));
  spec.devices = {DeviceEntry{kDLCUDA, 0, ""}};
  CHECK_THAT(ErrorOf(spec), Contains("the host is a device of type 2"));
}

}  // namespace
}  // namespace rewire::tvm
