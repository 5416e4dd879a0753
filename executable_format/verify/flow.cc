// SPDX-License-Identifier: Apache-2.0
//
// An abstract interpretation. Code is followed from word 0 along every jump, with one byte of knowledge per
// register (kinds.h). A state is stored only at jump targets. States that reach a target are joined into its
// state, and its code is visited again if that state changed. Bits are only ever added, so this ends.
#include <algorithm>
#include <cstring>
#include <memory>

#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/blocks.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/executable_format/verify/context.h"
#include "rewire/executable_format/verify/kinds.h"

namespace rewire::verify {
namespace {

constexpr Kinds kScalar = kMayInteger | kMayTensor;
constexpr Kinds kKernelArgument = kMayInteger | kMayTensor | kMayAdt;

// States are padded to whole words so that joining takes eight registers at a time.
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

class FlowAnalysis {
 public:
  FlowAnalysis(const Module& module, const Function& function, const Leaders& leaders, WorkMeter* meter)
      : meter_(*meter),
        module_(module),
        function_(function),
        leaders_(leaders),
        code_(function.code.data()),
        size_(static_cast<std::uint32_t>(function.code.size())),
        width_((function.register_count + kWordBytes - 1) / kWordBytes * kWordBytes),
        registers_(width_, kMayUndefined),
        states_(leaders.size()),
        queue_(leaders.size(), BlockQueue::Order::kFirstBlockFirst),
        result_kinds_(KindsOf(function.result)) {}

  Status Run() {
    for (std::size_t i = 0; i < function_.inputs.size(); ++i)
      registers_[i] = KindsOf(function_.inputs[i].type);
    Reach(0);
    while (!queue_.empty()) {
      const std::uint32_t leader = queue_.Pop();
      std::copy_n(states_[leader].get(), width_, registers_.data());
      WalkFrom(leader);
      if (!error_) return error_;
      if (meter_.exhausted()) return Forward(meter_.Failure(), {"'{}'", function_.name});
    }
    return {};
  }

 private:
  // Joins the current state into the one at leaders_[leader].
  void Reach(std::uint32_t leader) {
    meter_.Spend(1 + width_ / 64);
    std::unique_ptr<Kinds[]>& state = states_[leader];
    std::uint64_t learned = 0;
    if (state == nullptr) {
      state.reset(new Kinds[width_]);
      std::copy_n(registers_.data(), width_, state.get());
      learned = 1;
    } else {
      for (std::size_t i = 0; i < width_; i += kWordBytes) {
        std::uint64_t old, now;
        std::memcpy(&old, state.get() + i, kWordBytes);
        std::memcpy(&now, registers_.data() + i, kWordBytes);
        learned |= now & ~old;
        now |= old;
        std::memcpy(state.get() + i, &now, kWordBytes);
      }
    }
    if (learned != 0) queue_.Push(leader);
  }
  void ReachTarget(std::uint32_t pc) {
    const auto found = std::lower_bound(leaders_.begin(), leaders_.end(), pc);
    Reach(static_cast<std::uint32_t>(found - leaders_.begin()));
  }

  void WalkFrom(std::uint32_t leader) {
    const std::uint32_t end = leader + 1 < leaders_.size() ? leaders_[leader + 1] : size_;
    for (pc_ = leaders_[leader]; pc_ < end; pc_ += WordsOf(code_[pc_])) {
      if (!meter_.Spend(WordsOf(code_[pc_]))) return;
      if (!Step(code_ + pc_)) return;
    }
    // The structure check left no function that runs off its end, so this is the next leader.
    Reach(leader + 1);
  }

  // False when what follows is not the next instruction, or after an error.
  bool Step(const std::uint32_t* at) {
    switch (OpcodeOf(*at)) {
      case Opcode::kMove: {
        const std::uint32_t src = at[WordOf(Opcode::kMove, "src")];
        return Defined(src) && Set(at[WordOf(Opcode::kMove, "dst")], registers_[src]);
      }
      case Opcode::kRet:
        Return(at[WordOf(Opcode::kRet, "result")]);
        return false;
      case Opcode::kInvoke: {
        const Function& callee = module_.functions[at[WordOf(Opcode::kInvoke, "function")]];
        return Arguments(callee, ReadsView(at + WordOf(Opcode::kInvoke, "args"))) &&
               Set(at[WordOf(Opcode::kInvoke, "dst")], KindsOf(callee.result) | kMayWrite);
      }
      case Opcode::kInvokeClosure:
        return Is("closure", at[WordOf(Opcode::kInvokeClosure, "closure")], kMayClosure) &&
               AllDefined(ReadsView(at + WordOf(Opcode::kInvokeClosure, "args"))) &&
               Set(at[WordOf(Opcode::kInvokeClosure, "dst")], kAnyKind | kMayWrite);
      case Opcode::kInvokePacked: {
        const std::uint32_t dst = at[WordOf(Opcode::kInvokePacked, "dst")];
        return KernelCall(at) && (dst == kNone || Set(dst, kKernelArgument | kMayWrite));
      }
      case Opcode::kAllocTensor:
        return Is("storage", at[WordOf(Opcode::kAllocTensor, "storage")], kMayStorage) &&
               IsOptional("offset", at[WordOf(Opcode::kAllocTensor, "offset")], kScalar) &&
               Set(at[WordOf(Opcode::kAllocTensor, "dst")], kMayTensor | kMayWrite);
      case Opcode::kAllocTensorReg:
        return Is("storage", at[WordOf(Opcode::kAllocTensorReg, "storage")], kMayStorage) &&
               IsOptional("offset", at[WordOf(Opcode::kAllocTensorReg, "offset")], kScalar) &&
               Is("shape", at[WordOf(Opcode::kAllocTensorReg, "shape")], kScalar) &&
               Set(at[WordOf(Opcode::kAllocTensorReg, "dst")], kMayTensor | kMayWrite);
      case Opcode::kAllocADT: {
        Kinds fields = 0;
        for (std::uint32_t field : ReadsView(at + WordOf(Opcode::kAllocADT, "fields"))) {
          if (!Defined(field)) return false;
          fields |= registers_[field];
        }
        return Set(at[WordOf(Opcode::kAllocADT, "dst")], kMayAdt | (fields & kMayWrite));
      }
      case Opcode::kAllocClosure: {
        const Function& callee = module_.functions[at[WordOf(Opcode::kAllocClosure, "function")]];
        return Arguments(callee, ReadsView(at + WordOf(Opcode::kAllocClosure, "captured"))) &&
               Set(at[WordOf(Opcode::kAllocClosure, "dst")], kMayClosure);
      }
      case Opcode::kGetField: {
        const std::uint32_t object = at[WordOf(Opcode::kGetField, "object")];
        return Is("object", object, kMayAdt) &&
               Set(at[WordOf(Opcode::kGetField, "dst")], kAnyKind | (registers_[object] & kMayWrite));
      }
      case Opcode::kIf:
        if (!Is("test", at[WordOf(Opcode::kIf, "test")], kScalar)) return false;
        if (!Is("target", at[WordOf(Opcode::kIf, "target")], kScalar)) return false;
        ReachTarget(pc_ + at[WordOf(Opcode::kIf, "if_true")]);
        ReachTarget(pc_ + at[WordOf(Opcode::kIf, "if_false")]);
        return false;
      case Opcode::kLoadConst:
        return Set(at[WordOf(Opcode::kLoadConst, "dst")], kMayTensor);
      case Opcode::kGoto:
        ReachTarget(pc_ + at[WordOf(Opcode::kGoto, "target")]);
        return false;
      case Opcode::kGetTag:
        return Is("object", at[WordOf(Opcode::kGetTag, "object")], kMayAdt) &&
               Set(at[WordOf(Opcode::kGetTag, "dst")], kMayInteger);
      case Opcode::kLoadConsti:
        return Set(at[WordOf(Opcode::kLoadConsti, "dst")], kMayInteger);
      case Opcode::kFatal:
        return false;
      case Opcode::kAllocStorage:
        return IsOptional("size", at[WordOf(Opcode::kAllocStorage, "size")], kScalar) &&
               Set(at[WordOf(Opcode::kAllocStorage, "dst")], kMayStorage);
      case Opcode::kShapeOf:
        return Is("tensor", at[WordOf(Opcode::kShapeOf, "tensor")], kScalar) &&
               Set(at[WordOf(Opcode::kShapeOf, "dst")], kMayTensor | kMayWrite);
      case Opcode::kReshapeTensor: {
        const std::uint32_t tensor = at[WordOf(Opcode::kReshapeTensor, "tensor")];
        return Is("tensor", tensor, kScalar) &&
               Is("shape", at[WordOf(Opcode::kReshapeTensor, "shape")], kScalar) &&
               Set(at[WordOf(Opcode::kReshapeTensor, "dst")], kMayTensor | (registers_[tensor] & kMayWrite));
      }
      case Opcode::kDeviceCopy:
        return Is("src", at[WordOf(Opcode::kDeviceCopy, "src")], kScalar) &&
               Set(at[WordOf(Opcode::kDeviceCopy, "dst")], kMayTensor | kMayWrite);
      case Opcode::kKillRegister:
        return Set(at[WordOf(Opcode::kKillRegister, "reg")], kMayUndefined);
    }
    return false;
  }

  bool Set(std::uint32_t reg, Kinds kinds) {
    registers_[reg] = kinds;
    return true;
  }

  bool Defined(std::uint32_t reg) {
    if ((registers_[reg] & kMayUndefined) == 0) return true;
    return Reject({"register {} is undefined{}", RegisterText(function_, reg),
                   registers_[reg] == kMayUndefined ? "" : " on some path to here"});
  }
  bool AllDefined(Span<const std::uint32_t> regs) {
    for (std::uint32_t reg : regs) {
      if (!Defined(reg)) return false;
    }
    return true;
  }
  bool Is(const char* operand, std::uint32_t reg, Kinds wanted) {
    const Kinds kinds = registers_[reg];
    if ((kinds & kMayUndefined) == 0 && (kinds & wanted) != 0) return true;
    return Defined(reg) && Reject({"operand {} is {} ({}), expected {}", operand, KindsText(kinds),
                                   RegisterText(function_, reg), KindsText(wanted)});
  }
  bool IsOptional(const char* operand, std::uint32_t reg, Kinds wanted) {
    return reg == kNone || Is(operand, reg, wanted);
  }

  // The first inputs of a callee take these registers.
  bool Arguments(const Function& callee, Span<const std::uint32_t> args) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!Defined(args[i])) return false;
      if ((registers_[args[i]] & KindsOf(callee.inputs[i].type)) != 0) continue;
      return Reject({"argument {} is {} ({}), input '{}' of '{}' is {}", i, KindsText(registers_[args[i]]),
                     RegisterText(function_, args[i]), callee.inputs[i].name, callee.name,
                     TypeText(callee.inputs[i].type, module_.symbols)});
    }
    return true;
  }

  bool Return(std::uint32_t reg) {
    if (!Defined(reg)) return false;
    if ((registers_[reg] & result_kinds_) != 0) return true;
    return Reject({"the result is {} ({}), the signature says {}", KindsText(registers_[reg]),
                   RegisterText(function_, reg), TypeText(function_.result, module_.symbols)});
  }

  bool KernelCall(const std::uint32_t* at) {
    const KernelImport& kernel = module_.kernels[at[WordOf(Opcode::kInvokePacked, "kernel")]];
    const std::uint32_t outputs = at[WordOf(Opcode::kInvokePacked, "outputs")];
    const Span<const std::uint32_t> args = ReadsView(at + WordOf(Opcode::kInvokePacked, "args"));
    Kinds all = 0;
    for (std::uint32_t reg : args) {
      if (!Is("args", reg, kKernelArgument)) return false;
      all |= registers_[reg];
    }
    // An argument that may be an ADT is passed as its fields, so that positions beyond it are not known here.
    const Kinds unknown = (kernel.flags & kKernelObjects) != 0 ? 0 : kMayAdt;
    if (outputs > args.size() && (all & unknown) == 0) {
      return Reject({"it writes its last {} arguments, it has {}", outputs, args.size()});
    }
    for (std::uint32_t i = 0; i < outputs && i < args.size(); ++i) {
      const std::uint32_t reg = args[args.size() - 1 - i];
      if (!Writable(args.size() - 1 - i, reg, unknown)) return false;
      if ((registers_[reg] & unknown) != 0) break;
    }
    std::size_t known = 0;
    while (known < args.size() && (registers_[args[known]] & unknown) == 0) ++known;
    // They ascend, and an import may list a million for calls with one argument each.
    for (std::uint32_t position : kernel.also_written) {
      if (position < known) {
        if (!Writable(position, args[position], unknown)) return false;
        continue;
      }
      if (known < args.size()) break;
      return Reject(
          {"kernel '{}' writes its argument {}, the call has {}", kernel.name, position, args.size()});
    }
    return true;
  }

  // `flattened` is kMayAdt where an ADT stands for its fields.
  bool Writable(std::size_t position, std::uint32_t reg, Kinds flattened) {
    const Kinds kinds = registers_[reg];
    if ((kinds & (kMayTensor | flattened)) == 0) {
      return Reject({"written argument {} is {} ({}), expected a tensor", position, KindsText(kinds),
                     RegisterText(function_, reg)});
    }
    if ((kinds & kMayWrite) != 0) return true;
    return Reject(
        {"written argument {} ({}) is read-only: a constant, an input of the function, or a view or field of "
         "one",
         position, RegisterText(function_, reg)});
  }

  bool Reject(const Message& message) {
    error_ = ViolationAt(module_, function_, pc_, message);
    return false;
  }

  WorkMeter& meter_;
  const Module& module_;
  const Function& function_;
  const Leaders& leaders_;
  const std::uint32_t* code_;
  const std::uint32_t size_;
  const std::size_t width_;
  std::uint32_t pc_ = 0;
  Array<Kinds> registers_;                  // the state at pc_
  Array<std::unique_ptr<Kinds[]>> states_;  // one a leader, null until it is reached
  BlockQueue queue_;
  Kinds result_kinds_;
  Status error_;
};

}  // namespace

Status CheckFlow(const Module& module, const Function& function, const Leaders& leaders,
                 const FormatLimits& limits, WorkMeter* meter) {
  const std::uint64_t state = std::uint64_t{leaders.size()} * function.register_count;
  if (state > limits.verifier_state) {
    return Violation(
        "'{}' has {} jump targets and {} registers, {} bytes of state to verify; the limit is {}",
        function.name, leaders.size(), function.register_count, state, limits.verifier_state);
  }
  return FlowAnalysis(module, function, leaders, meter).Run();
}

}  // namespace rewire::verify
