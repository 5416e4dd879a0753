// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/instruction_text.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewire/base/array.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/instruction.h"

namespace rewire {
namespace {

struct Fixture {
  Module module;
  Function function;

  Fixture() {
    module.devices.push_back({kDLCUDA, 1, "global.texture"});
    module.devices.push_back({99, 0, ""});
    module.strings = {"stop", "", "stop"};
    for (const char* name : {"w", "", "fc1 weight", "w"}) module.constants.emplace_back().name = name;
    module.kernels.push_back({"rewire.add", "add_7", {}, 0, 0, {}});
    module.kernels.push_back({"rewire.mul", "", {}, 0, 0, {}});
    module.functions.emplace_back().name = "helper";
    function.inputs = {{"image", {}}, {"", {}}, {"has space", {}}};
    function.register_count = 8;
  }

  template <typename Write>
  std::string Text(Write write) {
    CodeWriter code;
    write(code);
    function.code = *code.Finish();
    return At(0);
  }

  // The short form finds names by searching, and must find the same.
  std::string At(std::size_t pc) const {
    std::string text = InstructionPrinter(module).Text(function, pc);
    CHECK(ShortInstructionText(module, function, pc) == text);
    return text;
  }
};

TEST_CASE("each operand is spelled by its kind") {
  Fixture f;
  CHECK(f.Text([](CodeWriter& c) { c.Move(0, 3); }) == "%3 = move %image");
  CHECK(f.Text([](CodeWriter& c) { c.Ret(1); }) == "ret %1");
  CHECK(f.Text([](CodeWriter& c) { c.Ret(2); }) == "ret %2");
  CHECK(f.Text([](CodeWriter& c) { c.Invoke(0, 4, {0, 3}); }) == "%4 = invoke helper(%image, %3)");
  CHECK(f.Text([](CodeWriter& c) { c.InvokeClosure(3, 4, {}); }) == "%4 = invoke_closure %3()");
  CHECK(f.Text([](CodeWriter& c) {
    c.InvokePacked(0, 1, kNone, {3, 4});
  }) == "invoke_packed add_7(%3, %4), outputs=1");
  CHECK(f.Text([](CodeWriter& c) { c.InvokePacked(1, 0, 5, {3}); }) ==
        "%5 = invoke_packed rewire.mul(%3), outputs=0");
  CHECK(f.Text([](CodeWriter& c) {
    c.AllocTensor(3, kNone, kFloat32, 4, {2, 3});
  }) == "%4 = alloc_tensor %3, _, f32[2, 3]");
  CHECK(f.Text([](CodeWriter& c) { c.AllocTensorReg(3, 4, 5, kInt64, 6); }) ==
        "%6 = alloc_tensor_reg %3, %4, %5, i64");
  CHECK(f.Text([](CodeWriter& c) { c.AllocADT(7, 3, {0, 1}); }) == "%3 = alloc_adt tag=7 (%image, %1)");
  CHECK(f.Text([](CodeWriter& c) { c.AllocClosure(0, 3, {4}); }) == "%3 = alloc_closure helper(%4)");
  CHECK(f.Text([](CodeWriter& c) { c.GetField(3, 2, 4); }) == "%4 = get_field %3, index=2");
  CHECK(f.Text([](CodeWriter& c) { c.LoadConst(0, 3); }) == "%3 = load_const w");
  CHECK(f.Text([](CodeWriter& c) { c.LoadConst(2, 3); }) == "%3 = load_const \"fc1 weight\"");
  CHECK(f.Text([](CodeWriter& c) { c.GetTag(3, 4); }) == "%4 = get_tag %3");
  CHECK(f.Text([](CodeWriter& c) { c.LoadConsti(-5, 4); }) == "%4 = load_consti -5");
  CHECK(f.Text([](CodeWriter& c) { c.Fatal(0); }) == "fatal \"stop\"");
  CHECK(f.Text([](CodeWriter& c) { c.Fatal(kNone); }) == "fatal _");
  CHECK(f.Text([](CodeWriter& c) { c.AllocStorage(3, 64, kFloat32, 0, 4, {}); }) ==
        "%4 = alloc_storage %3, alignment=64, f32, cpu");
  CHECK(f.Text([](CodeWriter& c) { c.AllocStorage(kNone, 64, kFloat32, 1, 4, {5}); }) ==
        "%4 = alloc_storage _, alignment=64, f32[5], cuda:1 \"global.texture\"");
  CHECK(f.Text([](CodeWriter& c) { c.ShapeOf(3, 4); }) == "%4 = shape_of %3");
  CHECK(f.Text([](CodeWriter& c) { c.ReshapeTensor(3, 4, 5); }) == "%5 = reshape_tensor %3, %4");
  CHECK(f.Text([](CodeWriter& c) { c.DeviceCopy(3, 0, 2, 4); }) == "%4 = device_copy %3, cpu, device99:0");
  CHECK(f.Text([](CodeWriter& c) { c.Kill(3); }) == "kill %3");
  const auto jump = [](CodeWriter& c) {
    const CodeWriter::Label here = c.NewLabel(), end = c.NewLabel();
    c.Bind(here);
    c.If(3, 4, end, here);
    c.Bind(end);
    c.Goto(here);
  };
  CHECK(f.Text(jump) == "if %3 == %4 goto L5 else L0");
  CHECK(f.At(5) == "goto L0");
}

TEST_CASE("what has no name of its own is a number") {
  Fixture f;
  CHECK(f.Text([](CodeWriter& c) { c.LoadConst(1, 3); }) == "%3 = load_const #1");  // no name
  CHECK(f.Text([](CodeWriter& c) { c.LoadConst(3, 3); }) == "%3 = load_const #3");  // an earlier entry's name
  CHECK(f.Text([](CodeWriter& c) { c.LoadConst(99, 3); }) == "%3 = load_const #99");  // past the table
  CHECK(f.Text([](CodeWriter& c) { c.Fatal(1); }) == "fatal #1");
  CHECK(f.Text([](CodeWriter& c) { c.Fatal(2); }) == "fatal #2");
  CHECK(f.Text([](CodeWriter& c) { c.Invoke(7, 4, {}); }) == "%4 = invoke #7()");
  CHECK(f.Text([](CodeWriter& c) { c.InvokePacked(7, 0, kNone, {}); }) == "invoke_packed #7(), outputs=0");
  CHECK(f.Text([](CodeWriter& c) { c.DeviceCopy(3, 9, 0, 4); }) == "%4 = device_copy %3, #9, cpu");
  CHECK(f.Text([](CodeWriter& c) { c.Move(70000, kNone); }) == "%4294967295 = move %70000");
}

TEST_CASE("the short form shows the first operands of a list") {
  Fixture f;
  CHECK(f.Text([](CodeWriter& c) { c.AllocADT(0, 3, Array<std::uint32_t>(16, 4)); }).size() == 85);
  CodeWriter code;
  code.AllocADT(0, 3, Array<std::uint32_t>(5000, 4));
  f.function.code = *code.Finish();
  CHECK(
      ShortInstructionText(f.module, f.function, 0) ==
      "%3 = alloc_adt tag=0 (%4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, %4, ... 4984 more)");
  CodeWriter dims;
  dims.AllocStorage(kNone, 64, kFloat32, 0, 4, Array<std::int64_t>(20, 1));
  f.function.code = *dims.Finish();
  CHECK_THAT(ShortInstructionText(f.module, f.function, 0), Catch::EndsWith("1, 1, ... 4 more], cpu"));
  // A name may be as long as the file. It is not cut within a character.
  f.module.constants[0].name = std::string(282, 'n') + "\xC3\xA4\xC3\xA4";
  CodeWriter load;
  load.LoadConst(0, 3);
  f.function.code = *load.Finish();
  CHECK(ShortInstructionText(f.module, f.function, 0) ==
        "%3 = load_const \"" + std::string(282, 'n') + "...");
}

TEST_CASE("broken instructions are printed as words") {
  Fixture f;
  const auto text = [&f](Array<std::uint32_t> code, std::size_t pc = 0) {
    f.function.code = std::move(code);
    return f.At(pc);
  };
  CHECK(text({}) == "(past the end of the code)");
  CHECK(text({1}, 9) == "(past the end of the code)");
  CHECK(text({InstructionHeader(static_cast<Opcode>(200), 1)}) == ".words 0x000001c8");
  CHECK(text({InstructionHeader(Opcode::kRet, 0), 1}) == ".words 0x00000001, 0x00000001");
  CHECK(text({InstructionHeader(Opcode::kRet, 3), 1}) == ".words 0x00000301, 0x00000001");
  CHECK(text({InstructionHeader(Opcode::kRet, 3), 1, 2}) == ".words 0x00000301, 0x00000001, 0x00000002");
  // A list that claims more than the instruction has, and one whose size overflows 32 bits.
  CHECK(text({InstructionHeader(Opcode::kInvoke, 5), 0, 1, 9, 1}) ==
        ".words 0x00000502, 0x00000000, 0x00000001, 0x00000009, ...");
  CHECK(text({InstructionHeader(Opcode::kAllocTensor, 6), 0, 0, 0, 0, 0xFFFFFFFF}) ==
        ".words 0x00000605, 0x00000000, 0x00000000, 0x00000000, ...");
  // Targets outside the function keep their distance.
  CHECK(text({InstructionHeader(Opcode::kGoto, 2), 7}) == "goto +7");
  CHECK(text({InstructionHeader(Opcode::kGoto, 2), 0xFFFFFFFE}) == "goto -2");
}

TEST_CASE("identifiers and quotes") {
  CHECK(IsIdentifier("/conv1/Conv_output_0"));
  CHECK(IsIdentifier("$x.y9"));
  for (const char* no : {"", "_", "9a", ".a", "a b", "a-b", "a:b", "\xc3\xa4"}) CHECK_FALSE(IsIdentifier(no));
  CHECK(NameText("a b") == "\"a b\"");
  CHECK(QuoteText("a\"b\\c\nd\te\rf\x01\x7fg") == R"("a\"b\\c\nd\te\rf\x01\x7fg")");
}

}  // namespace
}  // namespace rewire
