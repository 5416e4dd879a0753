// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/code_writer.h"
#include "rewire/base/array.h"

#include <catch2/catch.hpp>

#include "rewire/executable_format/instruction.h"

namespace rewire {
namespace {

TEST_CASE("an instruction is its header and its operands in the order of isa.def") {
  CodeWriter writer;
  writer.AllocTensor(4, kNone, kFloat32, 5, {3, 1LL << 40});
  Result<Array<std::uint32_t>> code = writer.Finish();
  REQUIRE(code);
  CHECK(*code == Array<std::uint32_t>{InstructionHeader(Opcode::kAllocTensor, 10), 4, kNone,
                                      EncodeDType(kFloat32), 5, 2, 3, 0, 0, 256});
}

TEST_CASE("jumps forward and back count words from their instruction") {
  CodeWriter writer;
  CodeWriter::Label start = writer.NewLabel(), end = writer.NewLabel();
  writer.Bind(start);
  writer.LoadConsti(1, 0);      // words 0 .. 3
  writer.If(0, 0, end, start);  // words 4 .. 8
  writer.Bind(end);
  writer.Ret(0);
  Result<Array<std::uint32_t>> code = writer.Finish();
  REQUIRE(code);
  CHECK((*code)[4 + WordOf(Opcode::kIf, "if_true")] == 5);
  CHECK(static_cast<std::int32_t>((*code)[4 + WordOf(Opcode::kIf, "if_false")]) == -4);
  CHECK(writer.pc() == 0);
}

TEST_CASE("a label that is bound nowhere or twice fails the code") {
  CodeWriter writer;
  writer.Ret(0);
  writer.Goto(writer.NewLabel());
  CHECK(writer.Finish().error().message() == "label 0 is used at word 2 and bound nowhere");

  CodeWriter::Label twice = writer.NewLabel();
  writer.Bind(twice);
  writer.Ret(0);
  writer.Bind(twice);
  CHECK(writer.Finish().error().message() == "label 0 is bound at word 0 and again at word 2");
  CHECK(writer.Finish()->empty());
}

TEST_CASE("an instruction that is too long fails the code") {
  CodeWriter writer;
  std::vector<std::uint32_t> fields(kMaxInstructionWords - 3);
  writer.AllocADT(0, 0, fields);
  CHECK(writer.Finish().error().message() ==
        "the alloc_adt at word 0 takes 16777216 words, an instruction has at most 16777215");
  fields.pop_back();
  writer.AllocADT(0, 0, fields);
  CHECK(writer.Finish()->size() == kMaxInstructionWords);
}

}  // namespace
}  // namespace rewire
