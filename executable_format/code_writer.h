// SPDX-License-Identifier: Apache-2.0
// CodeWriter: makes a function's code. One call an instruction, operands in the order of isa.def, jumps to
// labels.
//
//   CodeWriter code;
//   CodeWriter::Label again = code.NewLabel(), done = code.NewLabel();
//   code.Bind(again);
//   code.If(i, n, done, again);
//   code.Bind(done);
//   code.Ret(i);
//   function.code = *code.Finish();
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/isa.h"

namespace rewire {

class CodeWriter {
 public:
  using Reg = std::uint32_t;
  using Regs = Span<const std::uint32_t>;
  using Dims = Span<const std::int64_t>;

  // A position in the code that jumps refer to. It may be bound before or after the jumps. It belongs to the
  // writer that made it.
  class Label {
   private:
    friend class CodeWriter;
    std::uint32_t index_ = 0;
  };
  Label NewLabel();
  // Binds the label to the next instruction. A label is bound once.
  void Bind(Label label);

  // The index of the word at which the next instruction starts.
  std::uint32_t pc() const { return static_cast<std::uint32_t>(words_.size()); }

  // `offset`, `size` and InvokePacked's `dst` may be kNone, and so may `note`.
  void Move(Reg src, Reg dst);
  void Ret(Reg result);
  void Invoke(std::uint32_t function, Reg dst, Regs args);
  void InvokeClosure(Reg closure, Reg dst, Regs args);
  void InvokePacked(std::uint32_t kernel, std::uint32_t outputs, Reg dst, Regs args);
  void AllocTensor(Reg storage, Reg offset, DLDataType dtype, Reg dst, Dims shape);
  void AllocTensorReg(Reg storage, Reg offset, Reg shape, DLDataType dtype, Reg dst);
  void AllocADT(std::uint32_t tag, Reg dst, Regs fields);
  void AllocClosure(std::uint32_t function, Reg dst, Regs captured);
  void GetField(Reg object, std::uint32_t index, Reg dst);
  void If(Reg test, Reg target, Label if_true, Label if_false);
  void LoadConst(std::uint32_t constant, Reg dst);
  void Goto(Label target);
  void GetTag(Reg object, Reg dst);
  void LoadConsti(std::int64_t value, Reg dst);
  void Fatal(std::uint32_t note);
  // Either `size` is the number of bytes, and the shape is empty; or `size` is kNone, and the storage holds
  // `shape` elements of dtype.
  void AllocStorage(Reg size, std::uint32_t alignment, DLDataType dtype, std::uint32_t device, Reg dst,
                    Dims shape);
  void ShapeOf(Reg tensor, Reg dst);
  void ReshapeTensor(Reg tensor, Reg shape, Reg dst);
  void DeviceCopy(Reg src, std::uint32_t src_device, std::uint32_t dst_device, Reg dst);
  void Kill(Reg reg);

  // The same, operand by operand, for a writer that follows the rows of isa.def. Call Begin, then Word,
  // Int64, Target, RegList or DimList for each operand in order, then End.
  void Begin(Opcode opcode);
  void Word(std::uint32_t word) { words_.push_back(word); }
  void Int64(std::int64_t value);
  void Target(Label label);
  void RegList(Regs regs);
  void DimList(Dims dims);
  void End();

  // Returns the code with all jumps resolved; the writer is empty afterwards. Errors: kInvalidArgument if a
  // label is used but not bound, if a label is bound twice, or if an instruction is longer than
  // kMaxInstructionWords.
  Result<Array<std::uint32_t>> Finish();

 private:
  struct Fixup {
    std::uint32_t word;         // where the distance goes
    std::uint32_t instruction;  // what it counts from
    std::uint32_t label;
  };

  void SetError(const Message& message);

  Array<std::uint32_t> words_;
  Array<std::uint32_t> labels_;  // word that each is bound to, kNone until then
  Array<Fixup> fixups_;
  std::uint32_t start_ = 0;  // of the instruction that is being written
  std::string error_;        // the first one
};

}  // namespace rewire
