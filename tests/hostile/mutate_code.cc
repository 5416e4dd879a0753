// SPDX-License-Identifier: Apache-2.0
// Changes to instructions.
#include <algorithm>
#include <string>
#include <utility>

#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFFu;
constexpr std::size_t kMostInstructions = 4096;

// Changes one function's code.
class CodeChange {
 public:
  CodeChange(Program& program, Function& function, const Pool& pool, Dice& dice)
      : program_(program), function_(function), code_(function.code), pool_(pool), dice_(dice) {}

  std::string Run() {
    if (code_.empty()) return Insert();
    if (code_.size() > kMostInstructions) return Remove();
    switch (dice_.Below(16)) {
      case 0:
        return Remove();
      case 1:
        return Duplicate();
      case 2:
        return SwapInstructions();
      case 3:
        return Insert();
      case 4:
      case 5:
        return InsertCall();
      case 6:
        return Overlap();
      case 7:
        return ChangeCall();
      case 8:
        return SwapOperands();
      case 9:
        return dice_.OneIn(4) ? Lie() : InsertLoop();
      default:
        return ChangeAny();
    }
  }

 private:
  std::int64_t Register() {
    switch (dice_.Below(24)) {
      case 0:
        return kNone;
      case 1:
        return dice_.Interesting();
      case 2:
        return function_.registers;
      default:
        return static_cast<std::int64_t>(dice_.Below(function_.registers));
    }
  }
  // One that an instruction before `at` writes, or an input.
  std::int64_t Written(std::size_t at) {
    std::vector<std::int64_t> written;
    for (std::size_t i = 0; i < function_.inputs.size(); ++i) written.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = 0; i < at && i < code_.size(); ++i) {
      for (const Operand& operand : code_[i].operands) {
        if (operand.kind == 'w' || (operand.kind == 'v' && operand.value != kNone))
          written.push_back(operand.value);
      }
    }
    return written.empty() || dice_.OneIn(32) ? Register() : dice_.Pick(written);
  }
  std::int64_t Index(std::size_t size) {
    return dice_.OneIn(16) ? dice_.Interesting() : static_cast<std::int64_t>(dice_.Below(size));
  }

  void Change(Operand& operand, std::size_t at) {
    switch (operand.kind) {
      case 'r':
      case 'k':
        operand.value = dice_.OneIn(4) ? Register() : Written(at);
        return;
      case 'w':
        operand.value = Register();
        return;
      case 'o':
        operand.value = dice_.OneIn(2) ? static_cast<std::int64_t>(kNone) : Written(at);
        return;
      case 'v':
        operand.value = dice_.OneIn(2) ? static_cast<std::int64_t>(kNone) : Register();
        return;
      case 'i':
        operand.value = dice_.OneIn(2) ? Plus(operand.value, static_cast<std::int64_t>(dice_.Below(5)) - 2)
                                       : dice_.Interesting();
        return;
      case 'l':
        operand.value = dice_.OneIn(3)   ? Plus(operand.value, static_cast<std::int64_t>(dice_.Below(9)) - 4)
                        : dice_.OneIn(3) ? Plus(operand.value, operand.value)
                                         : dice_.Interesting();
        return;
      case 'd':
        operand.value = AnyDType(dice_);
        return;
      case 'c':
        operand.value = Index(program_.constants.size());
        return;
      case 'f':
        operand.value = Index(program_.functions.size());
        return;
      case 'p':
        operand.value = Index(program_.kernels.size());
        return;
      case 'e':
        operand.value = Index(program_.devices.size());
        return;
      case 's':
        operand.value = dice_.OneIn(4) ? static_cast<std::int64_t>(kNone) : Index(program_.strings.size());
        return;
      case 't':
        operand.raw = dice_.OneIn(8);
        operand.value =
            operand.raw ? dice_.Interesting() : static_cast<std::int64_t>(dice_.Below(code_.size()));
        return;
      case 'D':
        ChangeDims(operand.list, dice_);
        return;
      case 'R':
        ChangeList(operand.list, at);
        return;
      default:
        return;
    }
  }
  void ChangeList(std::vector<std::int64_t>& list, std::size_t at) {
    const auto where = list.begin() + static_cast<std::ptrdiff_t>(dice_.Below(list.size()));
    switch (dice_.Below(6)) {
      case 0:
        if (!list.empty()) list.erase(where);
        return;
      case 1:
        list.insert(where, Written(at));
        return;
      case 2:
        if (list.size() > 1) std::swap(*where, dice_.Pick(list));
        return;
      case 3:
        if (list.size() > 1) *where = dice_.Pick(list);
        return;
      default:
        if (!list.empty()) *where = Written(at);
    }
  }

  Instruction Make(std::uint32_t op, std::size_t at) {
    Instruction instruction;
    instruction.op = op;
    for (const char* kind = OperandsOf(op); *kind != 0; ++kind) {
      Operand operand;
      operand.kind = *kind;
      if (*kind == 'R' || *kind == 'D') {
        for (std::uint64_t i = dice_.Below(4); i > 0; --i)
          operand.list.push_back(*kind == 'R' ? Written(at) : static_cast<std::int64_t>(dice_.Below(5)));
      } else if (*kind == 'i') {
        operand.value = static_cast<std::int64_t>(dice_.Below(3));
      } else {
        Change(operand, at);
      }
      instruction.operands.push_back(std::move(operand));
    }
    return instruction;
  }

  // Jumps to or behind `at` still go where they went.
  void InsertAt(std::size_t at, Instruction instruction) {
    for (Instruction& other : code_) {
      for (Operand& operand : other.operands) {
        if (operand.kind == 't' && !operand.raw && operand.value >= static_cast<std::int64_t>(at))
          operand.value = Plus(operand.value, 1);
      }
    }
    code_.insert(code_.begin() + static_cast<std::ptrdiff_t>(at), std::move(instruction));
  }
  std::size_t Place() { return dice_.Below(code_.size() + 1); }

  std::string Remove() {
    const std::size_t at = dice_.Below(code_.size());
    for (Instruction& other : code_) {
      for (Operand& operand : other.operands) {
        if (operand.kind == 't' && !operand.raw && operand.value > static_cast<std::int64_t>(at))
          --operand.value;
      }
    }
    code_.erase(code_.begin() + static_cast<std::ptrdiff_t>(at));
    return "instruction removed";
  }
  std::string Duplicate() {
    Instruction copy = dice_.Pick(code_);
    InsertAt(Place(), std::move(copy));
    return "instruction copied";
  }
  std::string SwapInstructions() {
    const std::size_t at = dice_.Below(code_.size());
    std::swap(code_[at], dice_.OneIn(2) && at > 0 ? code_[at - 1] : dice_.Pick(code_));
    return "instructions swapped";
  }
  std::string Insert() {
    const std::size_t at = Place();
    InsertAt(at, Make(static_cast<std::uint32_t>(dice_.Below(OpCount())), at));
    return "instruction inserted";
  }
  std::string ChangeAny() {
    const std::size_t at = dice_.Below(code_.size());
    Instruction& instruction = code_[at];
    if (instruction.operands.empty()) return "";
    const std::size_t which = dice_.Below(instruction.operands.size());
    Change(instruction.operands[which], at);
    return "operand " + std::to_string(which) + " of operation " + std::to_string(instruction.op) +
           " changed";
  }
  std::string SwapOperands() {
    Instruction& a = dice_.Pick(code_);
    Instruction& b = dice_.OneIn(2) ? a : dice_.Pick(code_);
    if (a.operands.empty() || b.operands.empty()) return "";
    Operand& one = dice_.Pick(a.operands);
    Operand& other = dice_.Pick(b.operands);
    std::swap(one.value, other.value);
    if (one.kind == other.kind) std::swap(one.list, other.list);
    return "operands swapped";
  }

  // The instructions whose operands are a call's: another change may have put the opcode alone in another's
  // place.
  std::vector<std::size_t> Calls() const {
    std::vector<std::size_t> calls;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      if (code_[i].op == kInvokePacked && code_[i].operands.size() > 3) calls.push_back(i);
    }
    return calls;
  }
  std::string ChangeCall() {
    const std::vector<std::size_t> calls = Calls();
    if (calls.empty()) return InsertCall();
    const std::size_t at = dice_.Pick(calls);
    std::vector<Operand>& operands = code_[at].operands;
    switch (dice_.Below(4)) {
      case 0:
        operands[1].value = static_cast<std::int64_t>(dice_.Below(operands[3].list.size() + 2));
        return "a call's count of outputs changed";
      case 1:
        Change(operands[0], at);
        return "a call's kernel changed";
      case 2:
        Change(operands[2], at);
        return "a call's destination changed";
      default:
        ChangeList(operands[3].list, at);
        return "a call's arguments changed";
    }
  }
  // Arguments of one call in the same memory: the same register, or tensors on one storage.
  std::string Overlap() {
    const std::vector<std::size_t> calls = Calls();
    if (calls.empty()) return "";
    std::vector<std::int64_t>& arguments = code_[dice_.Pick(calls)].operands[3].list;
    if (arguments.size() < 2) return "";
    const std::int64_t from = dice_.Pick(arguments);
    const std::int64_t to = dice_.Pick(arguments);
    if (dice_.OneIn(2)) {
      std::replace(arguments.begin(), arguments.end(), to, from);
      return "arguments made the same";
    }
    // Their allocations take one storage.
    std::vector<std::size_t> allocations;
    for (std::size_t i = 0; i < code_.size(); ++i) {
      const bool allocates = code_[i].op == kAllocTensor || code_[i].op == kAllocTensorReg;
      if (allocates && !code_[i].operands.empty()) allocations.push_back(i);
    }
    if (allocations.size() < 2) return "";
    code_[dice_.Pick(allocations)].operands[0].value = code_[dice_.Pick(allocations)].operands[0].value;
    return "tensors on one storage";
  }
  // A kernel over registers that hold something, into a new tensor.
  std::string InsertCall() {
    const std::size_t at = Place();
    if (program_.kernels.empty() || dice_.OneIn(3)) {
      Kernel kernel;
      kernel.name = dice_.Pick(pool_.kernel_names);
      program_.kernels.push_back(std::move(kernel));
    }
    const auto storage = static_cast<std::int64_t>(function_.registers++);
    const auto tensor = static_cast<std::int64_t>(function_.registers++);
    const std::uint32_t dtype = AnyDType(dice_);
    std::vector<std::int64_t> dims;
    for (std::uint64_t i = dice_.Below(4); i > 0; --i)
      dims.push_back(static_cast<std::int64_t>(dice_.Below(5)));
    Instruction storage_of = Make(kAllocStorage, at);
    storage_of.operands[0].value = kNone;
    storage_of.operands[1].value = 64;
    storage_of.operands[2].value = dtype;
    storage_of.operands[3].value = 0;
    storage_of.operands[4].value = storage;
    storage_of.operands[5].list = dims;
    Instruction tensor_of = Make(kAllocTensor, at);
    tensor_of.operands[0].value = storage;
    tensor_of.operands[1].value = kNone;
    tensor_of.operands[2].value = dtype;
    tensor_of.operands[3].value = tensor;
    tensor_of.operands[4].list = dims;
    Instruction call = Make(kInvokePacked, at);
    call.operands[0].value = static_cast<std::int64_t>(dice_.Below(program_.kernels.size()));
    call.operands[1].value = dice_.OneIn(4) ? 0 : 1;
    call.operands[2].value = kNone;
    call.operands[3].list.push_back(tensor);
    InsertAt(at, std::move(call));
    InsertAt(at, std::move(tensor_of));
    InsertAt(at, std::move(storage_of));
    if (!code_.empty() && code_.back().op == kRet && dice_.OneIn(2)) code_.back().operands[0].value = tensor;
    return "call inserted";
  }
  // Jumps back once or without end: the test compares registers that may be equal.
  std::string InsertLoop() {
    const std::size_t at = Place();
    Instruction jump = Make(kIf, at);
    jump.operands[0].value = Written(at);
    jump.operands[1].value = Written(at);
    jump.operands[2].raw = jump.operands[3].raw = false;
    jump.operands[2].value = static_cast<std::int64_t>(dice_.Below(at + 1));
    jump.operands[3].value = static_cast<std::int64_t>(at);
    InsertAt(at, std::move(jump));
    code_[at].operands[3].value = static_cast<std::int64_t>(at + 1);
    return "loop inserted";
  }
  std::string Lie() {
    Instruction& instruction = dice_.Pick(code_);
    if (dice_.OneIn(3)) {
      instruction.op = static_cast<std::uint32_t>(dice_.Below(32));
      return "operation changed";
    }
    if (!instruction.operands.empty() && dice_.OneIn(2)) {
      Operand& list = instruction.operands.back();
      list.count = static_cast<std::uint32_t>(dice_.Interesting());
      return "a list's count changed";
    }
    instruction.length = static_cast<std::uint32_t>(dice_.Interesting()) & 0xFFFFFF;
    return "an instruction's length changed";
  }

  Program& program_;
  Function& function_;
  std::vector<Instruction>& code_;
  const Pool& pool_;
  Dice& dice_;
};

}  // namespace

std::string ChangeCode(Program& program, const Pool& pool, Dice& dice) {
  if (program.functions.empty()) return "";
  Function& function = dice.Pick(program.functions);
  // Notes stand at words that move.
  if (!dice.OneIn(16)) function.notes.clear();
  if (!function.words.empty()) {
    dice.Pick(function.words) = static_cast<std::uint32_t>(dice.Interesting());
    return "code word changed";
  }
  return CodeChange(program, function, pool, dice).Run();
}

}  // namespace rewire::hostile
