// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/tests/hostile/watch.h"
#include "rewire/vm/value/type_check.h"

namespace rewire::hostile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMemoryLimit = 64 << 20;
// The memory that the process may take beside what the VM counts: messages, a kernel's own tables.
constexpr std::int64_t kHeapSlack = 16 << 20;
constexpr std::chrono::milliseconds kDeadline{50};
// How long after the deadline a call may still take, in time of this thread.
constexpr double kDeadlineSlack = kSanitized ? 250 : 25;
constexpr std::uint32_t kMostLeaves = 16;
constexpr std::uint64_t kKept = 32 << 10;

// A run may end so with outputs bound and not without, or the other way round.
bool IsOfLimits(StatusCode code) {
  return code == StatusCode::kDeadlineExceeded || code == StatusCode::kMemoryLimit ||
         code == StatusCode::kOutOfMemory || code == StatusCode::kStepLimit;
}

// The file itself may be wrong in a way that only one of the two runs meets: a result that is not of the
// structure in the signature, by which outputs are bound; tensors of one storage that a kernel would have to
// keep apart.
constexpr const char* kOtherStructure = "has not the structure that the signature of";
constexpr const char* kOverlap = "and shares memory with argument";

bool Says(const Status& failed, const char* text) {
  return failed.error().message().find(text) != std::string::npos;
}

std::string Worded(const Status& status) {
  return status ? std::string("success")
                : std::string(StatusCodeName(status.code())) + ": " + status.error().message();
}

}  // namespace

Limits RunLimits() {
  Limits limits;
  limits.bytes = kMemoryLimit;
  limits.steps = 100'000;
  limits.depth = 1000;
  return limits;
}

enum class Mode : std::uint8_t { kUnbound, kExact, kCapacity, kAllocator, kStrided, kOverInput, kDonated };

struct FunctionRuns::Binding {
  Mode mode = Mode::kUnbound;
  const Part* expected = nullptr;
  GuardedBlock block;
  std::size_t offset = 0;  // in it
  std::vector<std::int64_t> strides;
  std::uint32_t input = 0;

  void* data() const { return block.write + offset; }
  TensorView view() const {
    return TensorView(data(), expected->dtype,
                      Span<const std::int64_t>(expected->shape.data(), expected->shape.size()), kHost,
                      Span<const std::int64_t>(strides.data(), strides.size()));
  }
};

FunctionRuns::FunctionRuns(const Program& program, Linker link, std::uint32_t function, const Inputs& inputs,
                           GuardedMemory& memory, Dice& dice)
    : program_(program),
      link_(std::move(link)),
      function_(function),
      signature_(program.executable().module().functions[function]),
      inputs_(inputs),
      memory_(memory),
      dice_(dice),
      leaf_count_(std::min(static_cast<std::uint32_t>(signature_.output_names.size()), kMostLeaves)) {}

void FunctionRuns::Fault(const char* kind, const std::string& what) {
  faults_.push_back(std::string(kind) + ": " + what + ", in function " + signature_.name);
}

Status FunctionRuns::Invoke(VirtualMachine& vm, const char* what) {
  (void)vm.TrySetDeadline(Clock::now() + kDeadline);
  const double begin = CpuMilliseconds();
  const std::int64_t heap = HeapBytes();
  RestartHeapPeak();
  const Status ran = vm.TryInvoke(function_);
  const double took = CpuMilliseconds() - begin;
  if (took > static_cast<double>(kDeadline.count()) + kDeadlineSlack)
    slow_.push_back("deadline passed: " + std::to_string(took) + " ms " + what + ", in function " +
                    signature_.name);
  if (HeapPeak() - heap > static_cast<std::int64_t>(kMemoryLimit) + kHeapSlack)
    Fault("heap beyond the limit", std::to_string(HeapPeak() - heap) + " bytes " + what);
  if (vm.bytes_peak() > kMemoryLimit)
    Fault("memory limit passed", std::to_string(vm.bytes_peak()) + " bytes " + what);
  if (!ran && ran.error().message().empty()) Fault("error without words", what);
  return ran;
}

void FunctionRuns::CheckAfter(VirtualMachine& vm, std::uint64_t held, const char* what, bool inputs_change) {
  if (!inputs_change && !inputs_.Unchanged()) {
    Fault("inputs written", what);
    inputs_.Restore();
  }
  (void)vm.TryDropResult();
  // By name; a name is in no other function.
  (void)vm.TryClearInputs(signature_.name);
  (void)vm.TryClearOutputs(signature_.name);
  (void)vm.TryTrim();
  // Tables of what is set and bound stay.
  if (vm.bytes_held() > held + kKept)
    Fault("memory held",
          std::to_string(vm.bytes_held()) + " bytes, " + std::to_string(held) + " before, " + what);
}

std::string FunctionRuns::answer() const { return Worded(first_); }

bool FunctionRuns::Unbound() {
  VirtualMachine vm(program_, RunLimits());
  const std::uint64_t held = vm.bytes_held();
  first_ = inputs_.Set(vm, function_, false);
  if (first_) first_ = Invoke(vm, "unbound");
  if (first_) {
    result_ = Take(vm.result());
    leaves_.clear();
    for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) {
      const Result<Value> value = vm.TryOutput(leaf);
      leaves_.push_back(value ? Take(*value) : Snapshot());
    }
  }
  CheckAfter(vm, held, "unbound", false);
  return static_cast<bool>(first_);
}

bool FunctionRuns::GivesTheSame(const Program& program) {
  VirtualMachine vm(program, RunLimits());
  // A second time in the same VM: kernels of random numbers count its calls.
  for (int i = 0; i < 2; ++i) {
    (void)vm.TrySetDeadline(Clock::now() + 4 * kDeadline);
    if (!inputs_.Set(vm, function_, false) || !vm.TryInvoke(function_)) return false;
    if (!Difference(result_, Take(vm.result())).empty()) return false;
  }
  return true;
}

bool FunctionRuns::IsStable() {
  if (!GivesTheSame(program_) || !GivesTheSame(program_)) return false;
  for (const Variant variant : {Variant::kPoisoned, Variant::kApart}) {
    const Result<Program> program = link_(variant);
    if (program && !GivesTheSame(*program)) return false;
  }
  return true;
}

bool FunctionRuns::IsAsDeclared(std::uint32_t leaf) const {
  const Part& part = leaves_[leaf][0];
  const TypeNode& type = signature_.result.nodes[Leaves(signature_.result)[leaf]];
  // Values of these types cannot be bound, though the value is a tensor.
  if (type.kind == TypeKind::kClosure || type.kind == TypeKind::kStorage) return false;
  if (type.kind != TypeKind::kTensor) return true;
  const TensorView view(nullptr, part.dtype, Span<const std::int64_t>(part.shape.data(), part.shape.size()));
  return TensorFits(program_.executable().module(), type, view.dl());
}

// How an output of which the unbound run has given `expected` is bound.
bool FunctionRuns::Choose(std::uint32_t leaf, Binding& binding) {
  const Snapshot& snapshot = leaves_[leaf];
  if (snapshot.size() != 1 || snapshot[0].kind != ValueKind::kTensor) return false;
  binding.expected = &snapshot[0];
  const std::size_t bytes = snapshot[0].bytes.size();
  const auto element = static_cast<std::size_t>(std::max<std::uint64_t>(ElementBytes(snapshot[0].dtype), 1));
  const std::size_t alignment = (element & (element - 1)) == 0 ? element : 16;
  static const std::vector<Mode> kModes = {Mode::kExact,     Mode::kExact,   Mode::kExact,  Mode::kCapacity,
                                           Mode::kAllocator, Mode::kStrided, Mode::kUnbound};
  binding.mode = dice_.Pick(kModes);
  if (binding.mode == Mode::kStrided && bytes == 0) binding.mode = Mode::kExact;
  if (binding.mode == Mode::kUnbound) return false;
  const bool strided = binding.mode == Mode::kStrided;
  const std::optional<GuardedBlock> block = memory_.Take(strided ? 2 * bytes : bytes, alignment);
  if (!block) {
    binding.mode = Mode::kUnbound;
    return false;
  }
  binding.block = *block;
  if (strided) {
    binding.strides.resize(snapshot[0].shape.size());
    std::int64_t stride = 2;
    for (std::size_t d = binding.strides.size(); d-- > 0;) {
      binding.strides[d] = stride;
      stride *= std::max<std::int64_t>(snapshot[0].shape[d], 1);
    }
  }
  return true;
}

Status FunctionRuns::Bind(VirtualMachine& vm, std::uint32_t leaf, Binding& binding) {
  const OutputHandle handle{function_, leaf};
  switch (binding.mode) {
    case Mode::kUnbound:
      return {};
    case Mode::kExact:
    case Mode::kStrided:
    case Mode::kOverInput:
      return vm.TrySetOutput(handle, binding.view());
    case Mode::kCapacity:
      return vm.TrySetOutput(handle, OutputCapacity{binding.data(), binding.block.bytes});
    case Mode::kAllocator: {
      const auto give = [](void* context, std::uint64_t bytes, std::uint64_t alignment) -> void* {
        const auto* bound = static_cast<const Binding*>(context);
        const bool fits = bytes <= bound->block.bytes &&
                          reinterpret_cast<std::uintptr_t>(bound->block.write) % alignment == 0;
        return fits ? bound->block.write : nullptr;
      };
      return vm.TrySetOutput(handle, OutputAllocator{&binding, give});
    }
    case Mode::kDonated:
      return vm.TryDonate(InputHandle{function_, binding.input}, handle);
  }
  return {};
}

bool FunctionRuns::Compare(VirtualMachine& vm, const std::vector<Binding>& bindings) {
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) {
    const Binding& binding = bindings[leaf];
    std::string difference;
    if (binding.mode == Mode::kUnbound) {
      const Result<Value> value = vm.TryOutput(leaf);
      if (value) difference = Difference(leaves_[leaf], Take(*value));
    } else {
      difference = Difference(*binding.expected, Take(binding.view()));
    }
    if (!difference.empty() && IsStable()) {
      const std::string mode = std::to_string(static_cast<int>(binding.mode));
      Fault("values differ", "output " + std::to_string(leaf) + " (binding " + mode + "): " + difference +
                                 "; " + program_.ExplainOutput(OutputHandle{function_, leaf}));
      return false;
    }
  }
  return true;
}

bool FunctionRuns::Bound() {
  std::vector<Binding> bindings(leaf_count_);
  bool any = false;
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) any = Choose(leaf, bindings[leaf]) || any;
  if (!any) return false;
  VirtualMachine vm(program_, RunLimits());
  const std::uint64_t held = vm.bytes_held();
  Status ran = inputs_.Set(vm, function_, false);
  for (std::uint32_t leaf = 0; ran && leaf < leaf_count_; ++leaf) {
    const Status bound = Bind(vm, leaf, bindings[leaf]);
    if (!bound) {
      if (IsAsDeclared(leaf) && !IsOfLimits(bound.code())) Fault("binding refused", Worded(bound));
      bindings[leaf].mode = Mode::kUnbound;
    }
  }
  // The second run finds what the first has left.
  const int runs = dice_.OneIn(3) ? 2 : 1;
  for (int i = 0; ran && i < runs; ++i) {
    for (const Binding& binding : bindings) {
      if (binding.mode != Mode::kUnbound) std::memset(binding.data(), 0x5C, binding.block.bytes);
    }
    ran = Invoke(vm, "bound");
    if (ran && !Compare(vm, bindings)) break;
  }
  if (!ran && !IsOfLimits(ran.code()) && !Says(ran, kOtherStructure) && IsStable())
    Fault("fails bound alone", Worded(ran));
  CheckAfter(vm, held, "bound", false);
  return ran.has_value();
}

void FunctionRuns::OverInputs() {
  // One leaf takes some input's memory.
  std::vector<Binding> bindings(leaf_count_);
  for (std::uint32_t leaf = 0; leaf < leaf_count_; ++leaf) {
    if (leaves_[leaf].size() != 1 || leaves_[leaf][0].kind != ValueKind::kTensor) continue;
    const Part& expected = leaves_[leaf][0];
    if (expected.bytes.empty()) continue;
    for (std::uint32_t input = 0; input < inputs_.size(); ++input) {
      const GuardedBlock* block = inputs_.Block(input);
      if (block == nullptr || block->bytes < expected.bytes.size() || dice_.OneIn(3)) continue;
      Binding& binding = bindings[leaf];
      binding.mode = dice_.OneIn(3) ? Mode::kDonated : Mode::kOverInput;
      binding.expected = &expected;
      binding.block = *block;
      binding.input = input;
      const std::uint64_t element = std::max<std::uint64_t>(ElementBytes(expected.dtype), 1);
      if (binding.mode == Mode::kOverInput)
        binding.offset = dice_.Below((block->bytes - expected.bytes.size()) / element + 1) * element;
      VirtualMachine vm(program_, RunLimits());
      const std::uint64_t held = vm.bytes_held();
      Status ran = inputs_.Set(vm, function_, true);
      const Status bound = Bind(vm, leaf, binding);
      // A donation may be refused; memory of the right form may not.
      if (!bound && binding.mode == Mode::kOverInput && IsAsDeclared(leaf) && !IsOfLimits(bound.code()))
        Fault("binding refused", Worded(bound));
      if (ran && bound) {
        ran = Invoke(vm, "over an input");
        if (ran) {
          const std::string difference = Difference(expected, Take(binding.view()));
          inputs_.Restore();
          if (!difference.empty() && IsStable()) {
            Fault("values differ", "output " + std::to_string(leaf) +
                                       (binding.mode == Mode::kDonated ? " donated: " : " over an input: ") +
                                       difference + "; " +
                                       program_.ExplainOutput(OutputHandle{function_, leaf}));
          }
        } else if (!IsOfLimits(ran.code()) && ran.code() != StatusCode::kInvalidArgument &&
                   binding.mode == Mode::kOverInput && !Says(ran, kOtherStructure) && IsStable()) {
          // Refused before the run where another output may be that input.
          Fault("fails bound alone", Worded(ran));
        }
      }
      inputs_.Restore();
      CheckAfter(vm, held, "over an input", true);
      return;
    }
  }
}

void FunctionRuns::BoundAsDeclared() {
  if (IsOfLimits(first_.code()) && !dice_.OneIn(4)) return;
  std::vector<Part> parts;
  parts.reserve(leaf_count_);
  std::vector<Binding> bindings(leaf_count_);
  bool any = false;
  std::uint32_t leaf = 0;
  for (const TypeNode& node : signature_.result.nodes) {
    if (node.kind == TypeKind::kAdt) continue;
    if (leaf == leaf_count_) break;
    Binding& binding = bindings[leaf++];
    const std::optional<std::uint64_t> bytes =
        node.kind == TypeKind::kTensor && node.rank >= 0
            ? TensorBytes(node.dtype, {node.dims.data(), node.dims.size()})
            : std::nullopt;
    if (!bytes || node.device != kHostDevice || node.dtype == kUnknownDType) continue;
    const std::optional<GuardedBlock> block = memory_.Take(static_cast<std::size_t>(*bytes), 64);
    if (!block) continue;
    Part part;
    part.kind = ValueKind::kTensor;
    part.dtype = node.dtype;
    part.shape.assign(node.dims.begin(), node.dims.end());
    parts.push_back(std::move(part));
    binding = {Mode::kExact, &parts.back(), *block, 0, {}, 0};
    any = true;
  }
  if (!any) return;
  VirtualMachine vm(program_, RunLimits());
  const std::uint64_t held = vm.bytes_held();
  Status ran = inputs_.Set(vm, function_, false);
  for (leaf = 0; ran && leaf < leaf_count_; ++leaf) (void)Bind(vm, leaf, bindings[leaf]);
  if (ran) ran = Invoke(vm, "bound as declared");
  // The host's memory may be better aligned than the program's, and does not overlap as two tensors of the
  // program on one storage may.
  if (ran && !IsOfLimits(first_.code()) && !Says(first_, "is not aligned") && !Says(first_, kOverlap) &&
      !Unbound() && !IsOfLimits(first_.code()))
    Fault("fails unbound alone", Worded(first_));
  CheckAfter(vm, held, "bound as declared", false);
}

}  // namespace rewire::hostile
