// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/code_writer.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/tests/executable_format/bad_modules.h"

namespace rewire::test {
namespace {

BadModule BadWords(std::string name, Array<std::uint32_t> words, std::string message) {
  BadModule bad{std::move(name), GoodModule(), std::move(message)};
  bad.module.functions[0].code = std::move(words);
  return bad;
}

BadModule BadNotes(std::string name, Array<SourceNote> notes, std::string message) {
  BadModule bad{std::move(name), GoodModule(), std::move(message)};
  bad.module.functions[0].notes = std::move(notes);
  return bad;
}

constexpr std::uint32_t kRet = InstructionHeader(Opcode::kRet, 2);

}  // namespace

std::vector<BadModule> BadCode() {
  return {
      BadWords("code.empty", {}, "'main' has no code"),
      BadWords("code.opcode", {InstructionHeader(static_cast<Opcode>(21), 1), kRet, 0},
               "main@0 (.words 0x00000115, 0x00000201, 0x00000000): there is no opcode 21"),
      BadWords("code.length/short", {InstructionHeader(Opcode::kMove, 2), 0, kRet, 0},
               "main@0 (.words 0x00000200, 0x00000000, 0x00000201, 0x00000000): move has a length of 2 "
               "words; it takes at least 3, and 4 are left"),
      BadWords("code.length/zero", {0, 0, 0},
               "main@0 (.words 0x00000000, 0x00000000, 0x00000000): move has a length of 0 words; it takes "
               "at least 3, and 3 are left"),
      BadWords("code.length/end", {InstructionHeader(Opcode::kRet, 3), 0},
               "main@0 (.words 0x00000301, 0x00000000): ret has a length of 3 words; it takes at least 2, "
               "and 2 are left"),
      BadWords("code.length/fixed", {InstructionHeader(Opcode::kRet, 3), 0, 0},
               "main@0 (.words 0x00000301, 0x00000000, 0x00000000): ret has a length of 3 words; its "
               "operands take 2"),
      BadWords("code.length/list", {InstructionHeader(Opcode::kAllocADT, 5), 0, 1, 2, 0, kRet, 0},
               "main@0 (.words 0x00000507, 0x00000000, 0x00000001, 0x00000002, ...): alloc_adt has a length "
               "of 5 words; its operands take 6"),
      BadWords("code.length/huge_list", {InstructionHeader(Opcode::kAllocADT, 4), 0, 1, 0xFFFFFFFF, kRet, 0},
               "main@0 (.words 0x00000407, 0x00000000, 0x00000001, 0xffffffff, ...): alloc_adt has a length "
               "of 4 words; its operands take 4294967299"),
      Emitted(
          "code.register/read", [](CodeWriter& c) { c.Move(8, 1); },
          "main@0 (%1 = move %8): operand src names register 8, the frame has 8"),
      Emitted(
          "code.register/write", [](CodeWriter& c) { c.Move(0, 8); },
          "main@0 (%8 = move %x): operand dst names register 8, the frame has 8"),
      Emitted(
          "code.register/kill", [](CodeWriter& c) { c.Kill(8); },
          "main@0 (kill %8): operand reg names register 8, the frame has 8"),
      Emitted(
          "code.register/optional", [](CodeWriter& c) { c.AllocTensor(0, 8, kFloat32, 1, {4}); },
          "main@0 (%1 = alloc_tensor %x, %8, f32[4]): operand offset names register 8, the frame has 8"),
      Emitted(
          "code.register/list",
          [](CodeWriter& c) {
            c.AllocADT(0, 1, {0, 8});
          },
          "main@0 (%1 = alloc_adt tag=0 (%x, %8)): operand fields names register 8, the frame has 8"),
      Emitted(
          "code.register/none", [](CodeWriter& c) { c.Move(kNone, 1); },
          "main@0 (%1 = move %4294967295): operand src names register 4294967295, the frame has 8"),
      Emitted(
          "code.dtype",
          [](CodeWriter& c) {
            c.AllocTensor(0, kNone, {7, 32, 1}, 1, {4});
          },
          "main@0 (%1 = alloc_tensor %x, _, code7_32[4]): operand dtype is a dtype of code 7, 32 bits and 1 "
          "lanes"),
      Emitted(
          "code.constant", [](CodeWriter& c) { c.LoadConst(1, 1); },
          "main@0 (%1 = load_const #1): operand constant names constant 1, there are 1"),
      Emitted(
          "code.function", [](CodeWriter& c) { c.Invoke(2, 1, {}); },
          "main@0 (%1 = invoke #2()): operand function names function 2, there are 2"),
      Emitted(
          "code.kernel", [](CodeWriter& c) { c.InvokePacked(1, 0, kNone, {}); },
          "main@0 (invoke_packed #1(), outputs=0): operand kernel names kernel 1, there are 1"),
      Emitted(
          "code.device/storage", [](CodeWriter& c) { c.AllocStorage(kNone, 64, kFloat32, 1, 1, {4}); },
          "main@0 (%1 = alloc_storage _, alignment=64, f32[4], #1): operand device names device 1, there are "
          "1"),
      Emitted(
          "code.device/copy", [](CodeWriter& c) { c.DeviceCopy(0, 0, 1, 1); },
          "main@0 (%1 = device_copy %x, cpu, #1): operand dst_device names device 1, there are 1"),
      Emitted(
          "code.string", [](CodeWriter& c) { c.Fatal(1); },
          "main@0 (fatal #1): operand note names string 1, there are 1"),
      BadWords("code.target/after", {InstructionHeader(Opcode::kGoto, 2), 4, kRet, 0},
               "main@0 (goto +4): operand target leads to word 4, the function has 4"),
      BadWords("code.target/before", {InstructionHeader(Opcode::kGoto, 2), 0xFFFFFFFF, kRet, 0},
               "main@0 (goto -1): operand target leads to word -1, the function has 4"),
      BadWords("code.target_start", {InstructionHeader(Opcode::kGoto, 2), 3, kRet, 0},
               "main@0 (goto L3): it leads to word 3, where no instruction starts"),
      Emitted(
          "code.rank",
          [](CodeWriter& c) { c.AllocTensor(0, kNone, kFloat32, 1, std::vector<std::int64_t>(33, 1)); },
          "main@0 (%1 = alloc_tensor %x, _, f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ... 17 "
          "more]): operand shape has 33 dimensions, the limit is 32"),
      Emitted(
          "code.dim",
          [](CodeWriter& c) {
            c.AllocTensor(0, kNone, kFloat32, 1, {4, -1});
          },
          "main@0 (%1 = alloc_tensor %x, _, f32[4, -1]): operand shape has dimension -1, it must not be "
          "negative"),
      Emitted(
          "code.arity", [](CodeWriter& c) { c.Invoke(1, 1, {0}); },
          "main@0 (%1 = invoke helper(%x)): 'helper' is called with 1 arguments, it takes 2"),
      Emitted(
          "code.captures",
          [](CodeWriter& c) {
            c.AllocClosure(0, 1, {0, 0});
          },
          "main@0 (%1 = alloc_closure main(%x, %x)): the closure captures 2 values, 'main' takes 1"),
      Emitted(
          "code.self_branch",
          [](CodeWriter& c) {
            auto self = c.NewLabel(), next = c.NewLabel();
            c.Bind(self);
            c.If(0, 0, next, self);
            c.Bind(next);
          },
          "main@0 (if %x == %x goto L5 else L0): a branch leads to its own instruction, which could never "
          "end"),
      Emitted(
          "code.shape_bytes/tensor",
          [](CodeWriter& c) {
            c.AllocTensor(0, kNone, kFloat32, 1, {1LL << 31, 1LL << 31});
          },
          "main@0 (%1 = alloc_tensor %x, _, f32[2147483648, 2147483648]): a tensor of this shape takes more "
          "than 2^63 bytes"),
      Emitted(
          "code.shape_bytes/zero",
          [](CodeWriter& c) {
            c.AllocTensor(0, kNone, kFloat32, 1, {0, 1LL << 62, 1LL << 62});
          },
          "main@0 (%1 = alloc_tensor %x, _, f32[0, 4611686018427387904, 4611686018427387904]): a tensor of "
          "this shape takes more than 2^63 bytes"),
      Emitted(
          "code.shape_bytes/storage",
          [](CodeWriter& c) { c.AllocStorage(kNone, 64, kFloat64, 0, 1, {1LL << 60}); },
          "main@0 (%1 = alloc_storage _, alignment=64, f64[1152921504606846976], cpu): a tensor of this "
          "shape takes more than 2^63 bytes"),
      Emitted(
          "code.alignment/zero", [](CodeWriter& c) { c.AllocStorage(kNone, 0, kFloat32, 0, 1, {4}); },
          "main@0 (%1 = alloc_storage _, alignment=0, f32[4], cpu): the alignment is 0; it is a power of two "
          "up to 65536"),
      Emitted(
          "code.alignment/huge", [](CodeWriter& c) { c.AllocStorage(kNone, 1u << 17, kFloat32, 0, 1, {4}); },
          "main@0 (%1 = alloc_storage _, alignment=131072, f32[4], cpu): the alignment is 131072; it is a "
          "power of two up to 65536"),
      Emitted(
          "code.size_and_shape", [](CodeWriter& c) { c.AllocStorage(0, 64, kFloat32, 0, 1, {4}); },
          "main@0 (%1 = alloc_storage %x, alignment=64, f32[4], cpu): there is both a size and a shape"),
      BadWords("code.terminator", {kRet, 0, InstructionHeader(Opcode::kMove, 3), 0, 1},
               "main@2 (%1 = move %x): the code ends here without a ret, goto, if or fatal"),
      BadNotes("note.place/end", {{2, "n"}}, "note 0 of 'main' is for word 2, where no instruction starts"),
      BadNotes("note.place/operand", {{1, "n"}},
               "note 0 of 'main' is for word 1, where no instruction starts"),
      BadNotes("note.order", {{0, "n"}, {0, "n"}},
               "note 1 of 'main' is for word 0, the one before it for word 0; they ascend"),
      BadNotes("note.text", {{0, "\xFF"}}, "note 0 of 'main' is not UTF-8"),
  };
}

}  // namespace rewire::test
