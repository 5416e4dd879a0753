// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/code_writer.h"

#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"

namespace rewire {

CodeWriter::Label CodeWriter::NewLabel() {
  Label label;
  label.index_ = static_cast<std::uint32_t>(labels_.size());
  labels_.push_back(kNone);
  return label;
}

void CodeWriter::Bind(Label label) {
  std::uint32_t& place = labels_[label.index_];
  if (place != kNone) {
    SetError({"label {} is bound at word {} and again at word {}", label.index_, place, pc()});
  }
  place = pc();
}

void CodeWriter::Move(Reg src, Reg dst) {
  Begin(Opcode::kMove);
  Word(src);
  Word(dst);
  End();
}

void CodeWriter::Ret(Reg result) {
  Begin(Opcode::kRet);
  Word(result);
  End();
}

void CodeWriter::Invoke(std::uint32_t function, Reg dst, Regs args) {
  Begin(Opcode::kInvoke);
  Word(function);
  Word(dst);
  RegList(args);
  End();
}

void CodeWriter::InvokeClosure(Reg closure, Reg dst, Regs args) {
  Begin(Opcode::kInvokeClosure);
  Word(closure);
  Word(dst);
  RegList(args);
  End();
}

void CodeWriter::InvokePacked(std::uint32_t kernel, std::uint32_t outputs, Reg dst, Regs args) {
  Begin(Opcode::kInvokePacked);
  Word(kernel);
  Word(outputs);
  Word(dst);
  RegList(args);
  End();
}

void CodeWriter::AllocTensor(Reg storage, Reg offset, DLDataType dtype, Reg dst, Dims shape) {
  Begin(Opcode::kAllocTensor);
  Word(storage);
  Word(offset);
  Word(EncodeDType(dtype));
  Word(dst);
  DimList(shape);
  End();
}

void CodeWriter::AllocTensorReg(Reg storage, Reg offset, Reg shape, DLDataType dtype, Reg dst) {
  Begin(Opcode::kAllocTensorReg);
  Word(storage);
  Word(offset);
  Word(shape);
  Word(EncodeDType(dtype));
  Word(dst);
  End();
}

void CodeWriter::AllocADT(std::uint32_t tag, Reg dst, Regs fields) {
  Begin(Opcode::kAllocADT);
  Word(tag);
  Word(dst);
  RegList(fields);
  End();
}

void CodeWriter::AllocClosure(std::uint32_t function, Reg dst, Regs captured) {
  Begin(Opcode::kAllocClosure);
  Word(function);
  Word(dst);
  RegList(captured);
  End();
}

void CodeWriter::GetField(Reg object, std::uint32_t index, Reg dst) {
  Begin(Opcode::kGetField);
  Word(object);
  Word(index);
  Word(dst);
  End();
}

void CodeWriter::If(Reg test, Reg target, Label if_true, Label if_false) {
  Begin(Opcode::kIf);
  Word(test);
  Word(target);
  Target(if_true);
  Target(if_false);
  End();
}

void CodeWriter::LoadConst(std::uint32_t constant, Reg dst) {
  Begin(Opcode::kLoadConst);
  Word(constant);
  Word(dst);
  End();
}

void CodeWriter::Goto(Label target) {
  Begin(Opcode::kGoto);
  Target(target);
  End();
}

void CodeWriter::GetTag(Reg object, Reg dst) {
  Begin(Opcode::kGetTag);
  Word(object);
  Word(dst);
  End();
}

void CodeWriter::LoadConsti(std::int64_t value, Reg dst) {
  Begin(Opcode::kLoadConsti);
  Int64(value);
  Word(dst);
  End();
}

void CodeWriter::Fatal(std::uint32_t note) {
  Begin(Opcode::kFatal);
  Word(note);
  End();
}

void CodeWriter::AllocStorage(Reg size, std::uint32_t alignment, DLDataType dtype, std::uint32_t device,
                              Reg dst, Dims shape) {
  Begin(Opcode::kAllocStorage);
  Word(size);
  Word(alignment);
  Word(EncodeDType(dtype));
  Word(device);
  Word(dst);
  DimList(shape);
  End();
}

void CodeWriter::ShapeOf(Reg tensor, Reg dst) {
  Begin(Opcode::kShapeOf);
  Word(tensor);
  Word(dst);
  End();
}

void CodeWriter::ReshapeTensor(Reg tensor, Reg shape, Reg dst) {
  Begin(Opcode::kReshapeTensor);
  Word(tensor);
  Word(shape);
  Word(dst);
  End();
}

void CodeWriter::DeviceCopy(Reg src, std::uint32_t src_device, std::uint32_t dst_device, Reg dst) {
  Begin(Opcode::kDeviceCopy);
  Word(src);
  Word(src_device);
  Word(dst_device);
  Word(dst);
  End();
}

void CodeWriter::Kill(Reg reg) {
  Begin(Opcode::kKillRegister);
  Word(reg);
  End();
}

void CodeWriter::Begin(Opcode opcode) {
  start_ = pc();
  Word(static_cast<std::uint32_t>(opcode));
}

void CodeWriter::Int64(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  Word(static_cast<std::uint32_t>(bits));
  Word(static_cast<std::uint32_t>(bits >> 32));
}

void CodeWriter::Target(Label label) {
  fixups_.push_back({pc(), start_, label.index_});
  Word(0);
}

void CodeWriter::RegList(Regs regs) {
  Word(static_cast<std::uint32_t>(regs.size()));
  words_.append(regs.begin(), regs.end());
}

void CodeWriter::DimList(Dims dims) {
  Word(static_cast<std::uint32_t>(dims.size()));
  for (std::int64_t dim : dims) Int64(dim);
}

void CodeWriter::End() {
  const std::size_t length = words_.size() - start_;
  const auto opcode = static_cast<Opcode>(words_[start_]);
  if (length > kMaxInstructionWords) {
    SetError({"the {} at word {} takes {} words, an instruction has at most {}", Info(opcode).mnemonic,
              start_, length, kMaxInstructionWords});
    return;
  }
  words_[start_] = InstructionHeader(opcode, static_cast<std::uint32_t>(length));
}

Result<Array<std::uint32_t>> CodeWriter::Finish() {
  for (const Fixup& fixup : fixups_) {
    const std::uint32_t place = labels_[fixup.label];
    if (place == kNone) {
      SetError({"label {} is used at word {} and bound nowhere", fixup.label, fixup.instruction});
      break;
    }
    words_[fixup.word] = place - fixup.instruction;
  }
  Array<std::uint32_t> code = std::exchange(words_, {});
  const std::string error = std::exchange(error_, {});
  labels_.clear();
  fixups_.clear();
  if (!error.empty()) return Fail(StatusCode::kInvalidArgument, error);
  return code;
}

void CodeWriter::SetError(const Message& message) {
  if (error_.empty()) error_ = message.Text();
}

}  // namespace rewire
