// SPDX-License-Identifier: Apache-2.0
//
// An abstract interpretation. Code is followed from word 0 along every jump, with one byte of knowledge per
// register (kinds.h). A state is stored only at jump targets. States that reach a target are joined into its
// state, and its code is visited again if that state changed. Bits are only ever added, so this ends.
#include <algorithm>
#include <cstring>

#include "rewire/base/array.h"
#include "rewire/executable_format/analysis/forward_dataflow.h"
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
        registers_((function.register_count + kWordBytes - 1) / kWordBytes * kWordBytes, kMayUndefined),
        flow_(leaders.size()),
        result_kinds_(KindsOf(function.result)) {}

  Status Run() {
    for (std::size_t i = 0; i < function_.inputs.size(); ++i)
      registers_[i] = KindsOf(function_.inputs[i].type);
    Reach(0);
    for (std::uint32_t leader = flow_.Next(); leader != flow_.kNowhere; leader = flow_.Next()) {
      const State& entry = flow_.entry(leader);
      std::copy(entry.begin(), entry.end(), registers_.begin());
      WalkFrom(leader);
      if (!error_) return error_;
      if (meter_.exhausted()) return Forward(meter_.Failure(), {"'{}'", function_.name});
    }
    return {};
  }

 private:
  using State = Array<Kinds>;  // by register

  // Bits are only ever added.
  static bool Join(State* known, const State& state) {
    std::uint64_t learned = 0;
    for (std::size_t i = 0; i < state.size(); i += kWordBytes) {
      std::uint64_t old, now;
      std::memcpy(&old, known->data() + i, kWordBytes);
      std::memcpy(&now, state.data() + i, kWordBytes);
      learned |= now & ~old;
      now |= old;
      std::memcpy(known->data() + i, &now, kWordBytes);
    }
    return learned != 0;
  }
  void Reach(std::uint32_t leader) {
    meter_.Spend(1 + registers_.size() / 64);
    flow_.Reach(leader, registers_, Join);
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

  // Returns false when what follows is not the next instruction, or after an error.
  bool Step(const std::uint32_t* at) {
    const Effects& effects = EffectsOf(at);
    if (!ReadsAreRight(at, effects)) return false;
    if (effects.kernel != 0 && !WritesAreRight(at)) return false;
    switch (Info(OpcodeOf(*at)).flow) {
      case Flow::kNext:
      case Flow::kCall:
        break;
      case Flow::kJump:
      case Flow::kBranch:
        ForEachTarget(at, pc_, [this](std::uint32_t target) { ReachTarget(target); });
        return false;
      case Flow::kEnd:
        return false;
    }
    if (const std::uint32_t dst = ChangedRegister(at); dst != kNone) registers_[dst] = MadeBy(at, effects);
    return true;
  }

  bool ReadsAreRight(const std::uint32_t* at, const Effects& effects) {
    const OpcodeInfo& info = Info(OpcodeOf(*at));
    for (std::size_t i = 0; i < effects.read_count; ++i) {
      const Effects::Read& read = effects.reads[i];
      if (at[read.word] == kNone && IsOptional(info.operands[read.operand].kind)) continue;
      if (!Is(info.operands[read.operand].name, at[read.word], read.accepts)) return false;
    }
    if (effects.list.word == 0) return true;
    const Span<const std::uint32_t> list = ReadsView(at + effects.list.word);
    if (effects.list.accepts == Accepts::kInputs)
      return Arguments(module_.functions[at[effects.function]], list);
    for (const std::uint32_t reg : list) {
      if (!Is(info.operands[effects.list.operand].name, reg, effects.list.accepts)) return false;
    }
    return true;
  }

  // The kinds of what the instruction puts into its register.
  Kinds MadeBy(const std::uint32_t* at, const Effects& effects) const {
    const auto of_source = [&] { return registers_[at[effects.source]]; };
    switch (effects.makes) {
      case Makes::kNone:
      case Makes::kNothing:
        return kMayUndefined;
      case Makes::kSame:
        return of_source();
      case Makes::kView:
        return kMayTensor | (of_source() & kMayWrite);
      case Makes::kField:
        return kAnyKind | (of_source() & kMayWrite);
      case Makes::kTuple: {
        Kinds fields = 0;
        for (const std::uint32_t field : ReadsView(at + effects.source)) fields |= registers_[field];
        return kMayAdt | (fields & kMayWrite);
      }
      case Makes::kClosure:
        return kMayClosure;
      case Makes::kTensor:
      case Makes::kShape:
      case Makes::kCopy:
        return kMayTensor | kMayWrite;
      case Makes::kCalled:
        return (effects.function != 0 ? KindsOf(module_.functions[at[effects.function]].result) : kAnyKind) |
               kMayWrite;
      case Makes::kComputed:
        return kKernelArgument | kMayWrite;
      case Makes::kStorage:
        return kMayStorage;
      case Makes::kInteger:
        return kMayInteger;
      case Makes::kLoaded:
        return kMayTensor;
    }
    return kAnyKind;
  }

  bool Defined(std::uint32_t reg) {
    if ((registers_[reg] & kMayUndefined) == 0) return true;
    return Reject({"register {} is undefined{}", RegisterText(function_, reg),
                   registers_[reg] == kMayUndefined ? "" : " on some path to here"});
  }
  static Kinds KindsAccepted(Accepts accepts) {
    switch (accepts) {
      case Accepts::kScalar:
        return kScalar;
      case Accepts::kArgument:
        return kKernelArgument;
      case Accepts::kAdt:
        return kMayAdt;
      case Accepts::kClosure:
        return kMayClosure;
      case Accepts::kStorage:
        return kMayStorage;
      case Accepts::kAny:
      case Accepts::kInputs:
      case Accepts::kResult:
        return kAnyKind;
    }
    return kAnyKind;
  }
  bool Is(const char* operand, std::uint32_t reg, Accepts accepts) {
    if (accepts == Accepts::kResult) return Return(reg);
    const Kinds kinds = registers_[reg];
    const Kinds wanted = KindsAccepted(accepts);
    if ((kinds & kMayUndefined) == 0 && (kinds & wanted) != 0) return true;
    return Defined(reg) && Reject({"operand {} is {} ({}), expected {}", operand, KindsText(kinds),
                                   RegisterText(function_, reg), KindsText(wanted)});
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

  // The arguments that a kernel writes, of kinds that it takes.
  bool WritesAreRight(const std::uint32_t* at) {
    const KernelImport& kernel = module_.kernels[at[WordOf(Opcode::kInvokePacked, "kernel")]];
    const std::uint32_t outputs = at[WordOf(Opcode::kInvokePacked, "outputs")];
    const Span<const std::uint32_t> args = ReadsView(at + WordOf(Opcode::kInvokePacked, "args"));
    Kinds all = 0;
    for (std::uint32_t reg : args) all |= registers_[reg];
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
  std::uint32_t pc_ = 0;
  State registers_;  // the state at pc_
  ForwardDataflow<State> flow_;
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
