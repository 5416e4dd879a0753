// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "rewire/base/array.h"
#include "rewire/base/checked_math.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/verify/context.h"

namespace rewire::verify {
namespace {

constexpr std::uint32_t kMaxStorageAlignment = 1u << 16;

struct Lengths {
  std::uint32_t fixed = 0;        // words with an empty list
  std::uint32_t per_element = 0;  // words of a list's element, 0 without a list
};

constexpr std::array<Lengths, kOpcodeCount> kLengths = [] {
  std::array<Lengths, kOpcodeCount> lengths;
  for (const OpcodeInfo& info : kOpcodes) {
    Lengths& row = lengths[static_cast<std::size_t>(info.opcode)];
    row.fixed = MinWords(info.opcode);
    const OperandKind last = info.operands[info.operand_count - 1u].kind;
    if (IsList(last)) row.per_element = OperandWords(last);
  }
  return lengths;
}();

class Structure {
 public:
  Structure(const Module& module, const Function& function, const FormatLimits& limits)
      : module_(module),
        function_(function),
        limits_(limits),
        code_(function.code.data()),
        size_(static_cast<std::uint32_t>(function.code.size())),
        starts_((function.code.size() + 63) / 64) {}

  Result<Leaders> Check() {
    if (size_ == 0) return Violation("'{}' has no code", function_.name);
    std::uint32_t last = 0;
    for (std::uint32_t pc = 0; pc < size_; pc += WordsOf(code_[pc])) {
      if (!CheckInstruction(pc)) return error_;
      starts_[pc / 64] |= std::uint64_t{1} << (pc % 64);
      last = pc;
    }
    switch (Info(OpcodeOf(code_[last])).flow) {
      case Flow::kNext:
      case Flow::kCall:
        return ViolationAt(module_, function_, last, "the code ends here without a ret, goto, if or fatal");
      case Flow::kJump:
      case Flow::kBranch:
      case Flow::kEnd:
        break;
    }
    if (Status targets = CheckTargets(); !targets) return Forward(targets);
    if (Status notes = CheckNotes(); !notes) return Forward(notes);
    return std::move(leaders_);
  }

 private:
  // Set when a check returns false.
  bool Reject(std::uint32_t pc, const Message& message) {
    error_ = ViolationAt(module_, function_, pc, message);
    return false;
  }

  bool IsStart(std::uint32_t pc) const { return ((starts_[pc / 64] >> (pc % 64)) & 1) != 0; }

  bool CheckInstruction(std::uint32_t pc) {
    const std::uint32_t header = code_[pc];
    if (!IsOpcode(header & 0xFF)) return Reject(pc, {"there is no opcode {}", header & 0xFF});
    const Opcode opcode = OpcodeOf(header);
    const Lengths lengths = kLengths[static_cast<std::size_t>(opcode)];
    const std::uint32_t words = WordsOf(header);
    if (words > size_ - pc || words < lengths.fixed) {
      return Reject(pc, {"{} has a length of {} words; it takes at least {}, and {} are left",
                         Info(opcode).mnemonic, words, lengths.fixed, size_ - pc});
    }
    std::uint64_t expected = lengths.fixed;
    if (lengths.per_element != 0) {
      expected += std::uint64_t{code_[pc + lengths.fixed - 1]} * lengths.per_element;
    }
    if (words != expected) {
      return Reject(
          pc, {"{} has a length of {} words; its operands take {}", Info(opcode).mnemonic, words, expected});
    }
    return CheckOperands(pc) && CheckValues(pc);
  }

  bool CheckRegister(std::uint32_t pc, const OperandInfo& operand, std::uint32_t reg) {
    if (reg < function_.register_count) return true;
    return Reject(
        pc, {"operand {} names register {}, the frame has {}", operand.name, reg, function_.register_count});
  }
  bool CheckIndex(std::uint32_t pc, const OperandInfo& operand, std::string_view table, std::uint32_t index,
                  std::size_t size) {
    if (index < size) return true;
    return Reject(pc, {"operand {} names {} {}, there are {}", operand.name, table, index, size});
  }

  // Each operand by its kind alone.
  bool CheckOperands(std::uint32_t pc) {
    const OpcodeInfo& info = Info(OpcodeOf(code_[pc]));
    const std::uint32_t* word = code_ + pc + 1;
    for (std::size_t i = 0; i < info.operand_count; ++i) {
      const OperandInfo& operand = info.operands[i];
      if (!CheckOperand(pc, operand, word)) return false;
      word += OperandWords(operand.kind);  // a list is the last
    }
    return true;
  }

  bool CheckOperand(std::uint32_t pc, const OperandInfo& operand, const std::uint32_t* word) {
    switch (operand.kind) {
      case OperandKind::kRead:
      case OperandKind::kWrite:
      case OperandKind::kKill:
        return CheckRegister(pc, operand, *word);
      case OperandKind::kOptRead:
      case OperandKind::kOptWrite:
        return *word == kNone || CheckRegister(pc, operand, *word);
      case OperandKind::kImm32:
      case OperandKind::kImm64:
        return true;
      case OperandKind::kDType: {
        const DLDataType dtype = DecodeDType(*word);
        if (IsValidDType(dtype)) return true;
        return Reject(pc, {"operand {} is a dtype of code {}, {} bits and {} lanes", operand.name, dtype.code,
                           dtype.bits, dtype.lanes});
      }
      case OperandKind::kConstant:
        return CheckIndex(pc, operand, "constant", *word, module_.constants.size());
      case OperandKind::kFunction:
        return CheckIndex(pc, operand, "function", *word, module_.functions.size());
      case OperandKind::kKernel:
        return CheckIndex(pc, operand, "kernel", *word, module_.kernels.size());
      case OperandKind::kDevice:
        return CheckIndex(pc, operand, "device", *word, module_.devices.size());
      case OperandKind::kString:
        return *word == kNone || CheckIndex(pc, operand, "string", *word, module_.strings.size());
      case OperandKind::kTarget:
        return CheckTarget(pc, operand, static_cast<std::int32_t>(*word));
      case OperandKind::kReads:
        for (std::uint32_t reg : ReadsView(word)) {
          if (!CheckRegister(pc, operand, reg)) return false;
        }
        return true;
      case OperandKind::kDims:
        return CheckDims(pc, operand, DimsView(word));
    }
    return true;
  }

  bool CheckTarget(std::uint32_t pc, const OperandInfo& operand, std::int32_t distance) {
    const std::int64_t target = std::int64_t{pc} + distance;
    if (target < 0 || target >= std::int64_t{size_}) {
      return Reject(pc, {"operand {} leads to word {}, the function has {}", operand.name, target, size_});
    }
    targets_.push_back({pc, static_cast<std::uint32_t>(target)});
    return true;
  }

  bool CheckDims(std::uint32_t pc, const OperandInfo& operand, DimsView dims) {
    if (dims.size() > limits_.rank) {
      return Reject(
          pc, {"operand {} has {} dimensions, the limit is {}", operand.name, dims.size(), limits_.rank});
    }
    for (std::uint32_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) {
        return Reject(pc, {"operand {} has dimension {}, it must not be negative", operand.name, dims[i]});
      }
    }
    return true;
  }

  bool CheckShapeBytes(std::uint32_t pc, std::uint32_t dtype_word, const std::uint32_t* dims_word) {
    const DimsView dims(dims_word);
    shape_.clear();
    for (std::uint32_t i = 0; i < dims.size(); ++i) shape_.push_back(dims[i]);
    if (TensorBytes(DecodeDType(dtype_word), shape_)) return true;
    return Reject(pc, "a tensor of this shape takes more than 2^63 bytes");
  }

  // Checks what a row asks of its operands together.
  bool CheckValues(std::uint32_t pc) {
    const std::uint32_t* at = code_ + pc;
    const Effects& effects = EffectsOf(at);
    if (effects.list.accepts == Accepts::kInputs && !CheckArgumentCount(pc, effects)) return false;
    if (Info(OpcodeOf(*at)).flow == Flow::kBranch) {
      bool stays = false;
      ForEachTarget(at, pc, [&](std::uint32_t target) { stays = stays || target == pc; });
      if (stays) return Reject(pc, "a branch leads to its own instruction, which could never end");
    }
    if (OpcodeOf(*at) == Opcode::kAllocStorage) {
      const std::uint32_t alignment = at[WordOf(Opcode::kAllocStorage, "alignment")];
      if (!IsPowerOfTwo(alignment) || alignment > kMaxStorageAlignment) {
        return Reject(
            pc, {"the alignment is {}; it is a power of two up to {}", alignment, kMaxStorageAlignment});
      }
      if (at[WordOf(Opcode::kAllocStorage, "size")] != kNone && at[effects.dims] != 0)
        return Reject(pc, "there is both a size and a shape");
    }
    return effects.dims == 0 || CheckShapeBytes(pc, at[effects.dtype], at + effects.dims);
  }

  // A call gives all inputs of its function, a closure captures the first ones.
  bool CheckArgumentCount(std::uint32_t pc, const Effects& effects) {
    const Function& callee = module_.functions[code_[pc + effects.function]];
    const std::uint32_t count = code_[pc + effects.list.word];
    if (effects.makes == Makes::kClosure) {
      if (count <= callee.inputs.size()) return true;
      return Reject(
          pc, {"the closure captures {} values, '{}' takes {}", count, callee.name, callee.inputs.size()});
    }
    if (count == callee.inputs.size()) return true;
    return Reject(
        pc, {"'{}' is called with {} arguments, it takes {}", callee.name, count, callee.inputs.size()});
  }

  Status CheckTargets() {
    Array<std::uint64_t> leads(starts_.size());  // one bit a word
    leads[0] = 1;
    for (const Jump& jump : targets_) {
      if (!IsStart(jump.target)) {
        return ViolationAt(module_, function_, jump.from,
                           {"it leads to word {}, where no instruction starts", jump.target});
      }
      leads[jump.target / 64] |= std::uint64_t{1} << (jump.target % 64);
    }
    for (std::size_t i = 0; i < leads.size(); ++i) {
      for (std::uint64_t bits = leads[i]; bits != 0; bits &= bits - 1) {
        leaders_.push_back(
            static_cast<std::uint32_t>(i * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))));
      }
    }
    return {};
  }

  Status CheckNotes() {
    for (std::size_t i = 0; i < function_.notes.size(); ++i) {
      const SourceNote& note = function_.notes[i];
      const Message what{"note {} of '{}'", i, function_.name};
      if (note.pc >= size_ || !IsStart(note.pc)) {
        return Violation("{} is for word {}, where no instruction starts", what, note.pc);
      }
      if (i != 0 && function_.notes[i - 1].pc >= note.pc) {
        return Violation("{} is for word {}, the one before it for word {}; they ascend", what, note.pc,
                         function_.notes[i - 1].pc);
      }
      if (Status text = CheckText(what, note.text, limits_); !text) return text;
    }
    return {};
  }

  struct Jump {
    std::uint32_t from;
    std::uint32_t target;
  };

  const Module& module_;
  const Function& function_;
  const FormatLimits& limits_;
  const std::uint32_t* code_;
  const std::uint32_t size_;
  Array<std::uint64_t> starts_;  // one bit a word
  Array<Jump> targets_;
  Array<Dim> shape_;
  Leaders leaders_;
  Status error_;
};

}  // namespace

Result<Leaders> CheckStructure(const Module& module, const Function& function, const FormatLimits& limits) {
  return Structure(module, function, limits).Check();
}

}  // namespace rewire::verify
