// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/run/interpreter.h"

#include <cstring>
#include <exception>
#include <type_traits>

#include "rewire/base/inline.h"
#include "rewire/vm/run/interpreter_alloc.h"
#include "rewire/vm/run/kernel_context.h"

namespace rewire {
namespace {

// Word of an operand: `At<Opcode::kMove>("src")` is a constant.
#define REWIRE_AT(op, operand) (std::integral_constant<std::uint32_t, WordOf(Opcode::op, operand)>::value)

// The bytes of one tensor, to be compared with those of others.
class Extent {
 public:
  REWIRE_INLINE explicit Extent(const TensorObject& tensor)
      : before_(std::uintptr_t{tensor.bytes} - 1),
        last_(reinterpret_cast<std::uintptr_t>(tensor.tensor.data) + before_) {}

  // Whether it shares a byte with the other tensor. If one of them has none, the answer may be yes too. It
  // takes a single comparison: it begins less than its own size before the other one, and less than the
  // other's size behind that one's first byte.
  REWIRE_INLINE bool MayOverlap(const TensorObject& other) const {
    return last_ - reinterpret_cast<std::uintptr_t>(other.tensor.data) < other.bytes + before_;
  }

 private:
  std::uintptr_t before_;  // size minus one
  std::uintptr_t last_;    // address of the last byte
};

// True if the one written argument, the last, shares memory only with arguments that it exactly covers, and
// its kernel works in place on these. Most calls with shared memory are such, so they are told quickly.
__attribute__((noinline)) bool IsInPlace(const LinkedKernel& kernel, const RewireFFIAny* args,
                                         std::uint32_t count, std::uint32_t outputs) {
  if (outputs != 1) return false;
  const TensorObject& out = *TensorOf(args[count - 1]);
  const Extent extent(out);
  std::uint32_t may = kernel.in_place;
  for (std::uint32_t k = 0; k + 1 < count; ++k, may >>= 1) {
    const TensorObject& in = *TensorOf(args[k]);
    if (!extent.MayOverlap(in)) continue;
    const bool covered = in.tensor.data == out.tensor.data && in.bytes == out.bytes;
    if (!covered || (may & 1) == 0) return false;
  }
  return true;
}

}  // namespace

Status Interpreter::Run(std::uint32_t function, const RewireFFIAny* inputs, bool bound,
                        RewireFFIAny* result) {
  steps_left_ = vm_.limits.steps;
  fuel_ = 0;
  KernelContext context(&vm_);
  bool ok = !bound || BindDestinations(function);
  ok = ok && Enter(function, nullptr, 0, bound ? 0 : kNone);
  if (ok) {
    for (std::uint32_t i = 0; i < rep_.functions[function].input_count; ++i) {
      ObjectHeap::Retain(inputs[i]);
      registers_[i] = inputs[i];
    }
    ok = vm_.observer == nullptr || AskObserver();
    const bool observed = wants_instructions_ || wants_kernels_;
#if defined(__OPTIMIZE_SIZE__)
    ok = ok && Loop(observed);
#else
    ok = ok && (observed ? Loop(std::true_type()) : Loop(std::false_type()));
#endif
  }
  if (__builtin_expect(vm_.work.busy(), 0)) {
    // The caller of an asynchronous run waits later. An observer has waited at every instruction.
    const bool later = ok && vm_.async && vm_.observer == nullptr;
    const Status finished = later ? LeaveWork() : FinishWork(ok);
    if (ok && !finished) {
      heap_.Release(result_);
      status_ = finished;
      ok = false;
    }
  }
  if (!ok) {
    Unwind();
    return status_;
  }
  *result = result_;
  return {};
}

// The usual call: tensors only, the last ones written, no return value. All other calls take the slow path.
REWIRE_INLINE bool Interpreter::CallKernel() {
  const Word* const pc = pc_;
  const Word index = pc[REWIRE_AT(kInvokePacked, "kernel")];
  const Word outputs = pc[REWIRE_AT(kInvokePacked, "outputs")];
  const Word count = pc[REWIRE_AT(kInvokePacked, "args")];
  const Word* registers = pc + REWIRE_AT(kInvokePacked, "args") + 1;
  const LinkedKernel& kernel = kernels_[index];
  RewireFFIAny* args = vm_.args.data();  // room for max_args was made when the run began
  if (__builtin_expect(!kernel.plain || outputs == 0 || outputs > count, 0)) return CallKernelSlowly();
  // The last argument, which usually is the only written one, is compared with the others on the way.
  const RewireFFIAny last = Reg(registers[count - 1]);
  if (__builtin_expect(last.type_index != kTensorKind, 0)) return CallKernelSlowly();
  const TensorObject& out = *TensorOf(last);
  args[count - 1] = last;
  const Extent extent(out);
  auto addresses = reinterpret_cast<std::uintptr_t>(out.tensor.data);
  bool overlap = false;
  for (Word i = 0; i < count - 1; ++i) {
    const RewireFFIAny& value = Reg(registers[i]);
    if (__builtin_expect(value.type_index != kTensorKind, 0)) return CallKernelSlowly();
    addresses |= reinterpret_cast<std::uintptr_t>(TensorOf(value)->tensor.data);
    overlap |= extent.MayOverlap(*TensorOf(value));
    args[i] = value;
  }
  if (__builtin_expect((addresses & kernel.alignment_mask) != 0, 0)) return CallKernelSlowly();
  std::uint64_t flags = out.flags;
  for (Word i = count - outputs; i < count - 1; ++i) {
    flags |= TensorOf(args[i])->flags;
    const Extent written(*TensorOf(args[i]));
    for (Word k = 0; k < i; ++k) overlap |= written.MayOverlap(*TensorOf(args[k]));
  }
  if (__builtin_expect((flags & TensorObject::kNotPlain) != 0, 0)) return CallKernelSlowly();
  if (overlap && kernel.apart && !IsInPlace(kernel, args, count, outputs) &&
      !CheckOverlaps(kernel, count, outputs))
    return false;
  if (__builtin_expect(vm_.interrupts.load(std::memory_order_relaxed) != 0, 0) &&
      !CheckBeforeCall(count, count - outputs)) {
    return false;
  }
  vm_.current_call = pc;
  RewireFFIAny returned{};
  if (__builtin_expect(kernel.call(kernel.handle, args, static_cast<std::int32_t>(count), &returned) != 0,
                       0)) {
    return FailKernel(index);
  }
  if (__builtin_expect(returned.type_index != kRewireFFINone || !vm_.temporaries.empty() ||
                           !vm_.workspaces.empty() || pc[REWIRE_AT(kInvokePacked, "dst")] != kNone,
                       0)) {
    return FinishKernel(returned);
  }
  return true;
}

template <typename Observed>
bool Interpreter::Loop(Observed observed) {
  const Word* pc = pc_;
  for (;;) {
    if (__builtin_expect(--fuel_ < 0, 0) && !Refuel()) return false;
    if (observed && !Observe()) return false;
    const Word header = *pc;
    // pc_ moves on only when an instruction has succeeded: a failure is reported where it happened.
    switch (OpcodeOf(header)) {
      case Opcode::kMove: {
        const RewireFFIAny value = Reg(pc[REWIRE_AT(kMove, "src")]);
        ObjectHeap::Retain(value);
        Put(pc[REWIRE_AT(kMove, "dst")], value);
        break;
      }
      case Opcode::kRet: {
        const Word result = pc[REWIRE_AT(kRet, "result")];
        // Taken out of the register rather than copied: the frame is about to release the rest.
        const RewireFFIAny value = Reg(result);
        Reg(result) = {};
        if (!Leave(value)) return status_.has_value();
        pc = pc_;
        continue;
      }
      case Opcode::kInvoke:
        if (!EnterCall()) return false;
        pc = pc_;
        continue;
      case Opcode::kInvokeClosure:
        if (!EnterClosure()) return false;
        pc = pc_;
        continue;
      case Opcode::kInvokePacked:
        if (!(observed ? CallKernelSlowly() : CallKernel())) return false;
        break;
      case Opcode::kAllocTensor:
        if (!AllocTensor()) return false;
        break;
      case Opcode::kAllocTensorReg:
        if (!AllocTensorReg()) return false;
        break;
      case Opcode::kAllocADT:
        if (!AllocTuple(kAdtKind, pc[REWIRE_AT(kAllocADT, "tag")], pc[REWIRE_AT(kAllocADT, "dst")],
                        ReadsView(pc + REWIRE_AT(kAllocADT, "fields")))) {
          return false;
        }
        break;
      case Opcode::kAllocClosure:
        if (!AllocTuple(kClosureKind, pc[REWIRE_AT(kAllocClosure, "function")],
                        pc[REWIRE_AT(kAllocClosure, "dst")],
                        ReadsView(pc + REWIRE_AT(kAllocClosure, "captured")))) {
          return false;
        }
        break;
      case Opcode::kGetField:
        if (!GetField()) return false;
        break;
      case Opcode::kIf: {
        bool taken = false;
        if (!If(&taken)) return false;
        pc += static_cast<std::int32_t>(pc[taken ? REWIRE_AT(kIf, "if_true") : REWIRE_AT(kIf, "if_false")]);
        pc_ = pc;
        continue;
      }
      case Opcode::kLoadConst:
        Put(pc[REWIRE_AT(kLoadConst, "dst")], rep_.constants[pc[REWIRE_AT(kLoadConst, "constant")]]);
        break;
      case Opcode::kGoto:
        pc += static_cast<std::int32_t>(pc[REWIRE_AT(kGoto, "target")]);
        pc_ = pc;
        continue;
      case Opcode::kGetTag:
        if (!GetTag()) return false;
        break;
      case Opcode::kLoadConsti:
        Put(pc[REWIRE_AT(kLoadConsti, "dst")],
            MakeInteger(kInt64Kind, DecodeInt64(pc + REWIRE_AT(kLoadConsti, "value"))));
        break;
      case Opcode::kFatal: {
        const Word note = pc[REWIRE_AT(kFatal, "note")];
        return Fail(StatusCode::kRuntimeFailed,
                    note == kNone ? std::string("the program stopped itself")
                                  : Format("the program stopped itself: {}", rep_.module().strings[note]));
      }
      case Opcode::kAllocStorage:
        if (!AllocStorage()) return false;
        break;
      case Opcode::kShapeOf:
        if (!ShapeOf()) return false;
        break;
      case Opcode::kReshapeTensor:
        if (!ReshapeTensor()) return false;
        break;
      case Opcode::kDeviceCopy:
        if (!DeviceCopy()) return false;
        break;
      case Opcode::kKillRegister:
        Put(pc[REWIRE_AT(kKillRegister, "reg")], {});
        break;
    }
    pc += WordsOf(header);
    pc_ = pc;
  }
}

bool Interpreter::If(bool* taken) {
  std::int64_t test = 0;
  std::int64_t target = 0;
  if (!ReadInteger(Reg(pc_[REWIRE_AT(kIf, "test")]), "test", &test) ||
      !ReadInteger(Reg(pc_[REWIRE_AT(kIf, "target")]), "target", &target)) {
    return false;
  }
  *taken = test == target;
  return true;
}

bool Interpreter::AllocTuple(std::int32_t kind, Word tag, Word dst, Span<const Word> fields) {
  TupleObject* tuple = heap_.NewTuple(kind, tag, static_cast<std::uint32_t>(fields.size()));
  if (tuple == nullptr) return FailMemory(TupleObject::Bytes(static_cast<std::uint32_t>(fields.size())));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (__builtin_expect((i + 1) % kLongList == 0, 0) && !CheckInterrupts()) {
      std::memset(tuple->fields() + i, 0, (fields.size() - i) * sizeof(RewireFFIAny));
      heap_.Release(MakeAny(kind, tuple));
      return false;
    }
    tuple->fields()[i] = Reg(fields[i]);
    ObjectHeap::Retain(tuple->fields()[i]);
  }
  if (kind == kClosureKind) tuple->program = rep_.number;
  Put(dst, MakeAny(kind, tuple));
  return true;
}

bool Interpreter::GetField() {
  const Word object = pc_[REWIRE_AT(kGetField, "object")];
  if (Reg(object).type_index != kAdtKind) return FailKind(object, "an ADT");
  const TupleObject* tuple = TupleOf(Reg(object));
  const Word index = pc_[REWIRE_AT(kGetField, "index")];
  if (index >= tuple->count) {
    return Fail(StatusCode::kRuntimeFailed, "field {} asked for, the ADT (tag {}) has {} fields", index,
                tuple->tag, tuple->count);
  }
  const RewireFFIAny field = tuple->fields()[index];
  ObjectHeap::Retain(field);
  Put(pc_[REWIRE_AT(kGetField, "dst")], field);
  return true;
}

bool Interpreter::GetTag() {
  const Word object = pc_[REWIRE_AT(kGetTag, "object")];
  if (Reg(object).type_index != kAdtKind) return FailKind(object, "an ADT");
  Put(pc_[REWIRE_AT(kGetTag, "dst")],
      MakeInteger(kInt32Kind, static_cast<std::int32_t>(TupleOf(Reg(object))->tag)));
  return true;
}

// Fuel is the step limit in portions. Between two portions the loop only counts in a register.
bool Interpreter::Refuel() {
  if (steps_left_ == 0) {
    return Fail(StatusCode::kStepLimit,
                "the limit of {} instructions is used up; raise Limits::steps if the program needs more",
                vm_.limits.steps);
  }
  const std::uint64_t portion = steps_left_ < static_cast<std::uint64_t>(kFuel) ? steps_left_ : kFuel;
  steps_left_ -= portion;
  fuel_ = static_cast<std::int64_t>(portion) - 1;  // one is being spent
  return CheckInterrupts();
}

bool Interpreter::CheckInterrupts() {
  const std::uint32_t interrupts = vm_.interrupts.load(std::memory_order_relaxed);
  if (__builtin_expect(interrupts == 0, 1)) return true;
  if (vm_.cancelled()) return Fail(StatusCode::kCancelled, "the run was cancelled");
  if ((interrupts & VmImpl::kHasDeadline) == 0) return true;
  if (std::chrono::steady_clock::now() < vm_.deadline) return true;
  return Fail(StatusCode::kDeadlineExceeded, "the deadline passed");
}

bool Interpreter::AskObserver() {
  return CallHost("the observer", [&] {
    wants_instructions_ = vm_.observer->wants_instructions();
    wants_kernels_ = vm_.observer->wants_kernels();
  });
}

bool Interpreter::Observe() {
  if (!wants_instructions_) return true;
  // It may read what the instruction before has given to a device.
  if (!WaitFor(nullptr, WaitCause::kObserver)) return false;
  const Frame& frame = vm_.frames.back();
  return CallHost("the observer", [&] {
    vm_.observer->OnInstruction({rep_.module(),
                                 frame.function,
                                 static_cast<std::uint32_t>(pc_ - code_),
                                 vm_.frames.size(),
                                 {registers_, rep_.functions[frame.function].register_count}});
  });
}

bool Interpreter::ObserveKernel(const Observer::KernelCall& call) {
  return CallHost("the observer", [&] { vm_.observer->OnKernel(call); });
}

bool Interpreter::FailThrown(const char* who) {
#if defined(__cpp_exceptions)
  try {
    throw;
  } catch (const std::exception& thrown) {
    return Fail(StatusCode::kRuntimeFailed, "{} threw an exception: {}", who, thrown.what());
  } catch (...) {
  }
#endif
  return Fail(StatusCode::kRuntimeFailed, "{} threw an exception that is no std::exception", who);
}

}  // namespace rewire
