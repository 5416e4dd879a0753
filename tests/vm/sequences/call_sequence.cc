// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/sequences/call_sequence.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/tests/vm/sequences/sequence_inputs.h"

namespace rewire::test {
namespace {

enum class How : std::uint8_t {
  kUnbound,
  kExact,
  kStrided,
  kMisaligned,
  kCapacity,
  kAllocator,
  kDeclining,   // an allocator that has nothing at first, and calls the VM, which must refuse
  kCancelling,  // an allocator that cancels the run
  kOverInput,
  kDonated,
  kWrongShape,
  kTooSmall,
  kShared,  // the memory of another output
};
constexpr const char* kHowNames[] = {"unbound",     "exact",     "strided",    "misaligned", "capacity",
                                     "allocator",   "declining", "cancelling", "over input", "donated",
                                     "wrong shape", "too small", "shared"};

// How one leaf is bound until that changes.
struct Binding : GuardedMemory {
  How how = How::kUnbound;
  DLDataType dtype{};
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  VirtualMachine* vm = nullptr;  // kDeclining calls it
  bool asked = false;
  bool reentered = false;  // the VM took a call from within a run

  TensorView view() const { return TensorView(data, dtype, shape, kHost, strides); }
};

void* GiveMemory(void* context, std::uint64_t size, std::uint64_t /*alignment*/) {
  auto* self = static_cast<Binding*>(context);
  if (self->how == How::kDeclining) {
    if (self->vm->TryInvoke()) self->reentered = true;
    if (!std::exchange(self->asked, true)) return nullptr;
  }
  if (self->how == How::kCancelling) self->vm->Cancel();
  return size <= self->bytes ? self->data : nullptr;
}

struct Leaf {
  Value value;
  std::string text;

  bool IsBindable() const {
    return value.kind() == ValueKind::kTensor || value.kind() == ValueKind::kInteger;
  }
  // As a tensor of the host's, an integer too.
  Tensor AsTensor() const {
    if (value.kind() == ValueKind::kTensor) return value.tensor();
    const std::int64_t integer = value.integer();
    return *Tensor::CopyOf(TensorView(&integer, {}));
  }
};

class Sequence {
 public:
  Sequence(const RandomProgram& source, std::uint64_t seed, SequenceTally* tally)
      : source_(source), dice_(seed), tally_(*tally) {}

  std::string Run() {
    Result<Module> module = Assemble(source_.text);
    if (!module) return "does not assemble: " + module.error().message();
    const Result<Executable> executable = Executable::FromModule(*std::move(module));
    if (!executable) return "is not verified: " + executable.error().message();
    std::string difference = RunOn(*executable);
    vms_.clear();
    oracle_.reset();
    program_.reset();
    kept_.clear();
    arena_ = SharedArena();
    if (difference.empty() && allocator_.blocks() != 0)
      difference = std::to_string(allocator_.blocks()) + " blocks are not given back";
    return difference.empty() ? "" : difference + "\ncalls:" + trail_;
  }

 private:
  struct Kept {
    Value value;
    std::string text;
  };
  struct Machine {
    std::unique_ptr<VirtualMachine> vm;
    SequenceInputs inputs;
    std::vector<std::unique_ptr<Binding>> bindings;  // by leaf; their addresses are given away
    bool zero_copy = false;
    bool late = false;       // the deadline has passed
    bool disturbed = false;  // limits, the deadline or the demand for zero copy may end the next run
  };

  LinkOptions Options() {
    LinkOptions options;
    AddTestKernels(&options.kernels, &log_);
    options.stock_kernels = false;
    device_.put_off = true;
    options.devices.push_back(&device_.api);
    options.storage_fill = StorageFill::kPoison;
    return options;
  }

  std::string RunOn(const Executable& executable) {
    const Result<Program> plain = Program::Link(executable, Options());
    if (!plain) return "is not linked: " + plain.error().message();
    oracle_ = *plain;
    LinkOptions options = Options();
    options.allocator = allocator_.allocator();
    const Result<Program> program = Program::Link(executable, std::move(options));
    if (!program) return "is not linked: " + program.error().message();
    program_ = *program;
    leaves_ = static_cast<std::uint32_t>(executable.module().functions[0].output_names.size());
    MakeMachines();
    for (int call = 0; call < 40; ++call) {
      current_ = dice_.Below(vms_.size());
      Machine& machine = vms_[current_];
      std::string difference = Call(&machine);
      if (difference.empty()) difference = CheckInvariants();
      if (!difference.empty()) return difference;
    }
    // Each VM still runs, whatever happened.
    for (Machine& machine : vms_) {
      Calm(&machine);
      for (auto& binding : machine.bindings) Unbind(&machine, binding.get());
      SetAllInputs(&machine);
      std::string difference = Invoke(&machine, false);
      if (!difference.empty()) return "at the end: " + difference;
    }
    return {};
  }

  void MakeMachines() {
    arena_ = *SharedArena::TryMake(1 << 20, allocator_.allocator());
    static_memory_.resize((1 << 20) + 128);
    for (std::size_t kind = 0; kind < 4; ++kind) {
      VmOptions options;
      if (kind == 1) {
        const auto address = reinterpret_cast<std::uintptr_t>(static_memory_.data());
        options.memory = {static_memory_.data() + (128 - address % 128) % 128, 1 << 20};
      } else if (kind >= 2) {
        options.arena = arena_;
      }
      Machine& machine = vms_.emplace_back();
      machine.vm = std::make_unique<VirtualMachine>(*VirtualMachine::TryMake(*program_, options));
      for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf)
        machine.bindings.push_back(std::make_unique<Binding>());
      SetAllInputs(&machine);
    }
  }

  void Note(const std::string& call) {
    trail_ += "\n  " + std::to_string(current_) + " " + call;
    ++tally_.calls[call.substr(0, call.find(':'))];
  }

  // --- one call ---

  std::string Call(Machine* machine) {
    switch (dice_.Below(16)) {
      case 0:
      case 1:
      case 2:
        SetSomeInput(machine);
        return {};
      case 3:
      case 4:
      case 5:
        return Bind(machine);
      case 6:
        Disturb(machine);
        return {};
      case 7:
        return Tidy(machine);
      case 8:
      case 9:
        return RunForOneCall(machine);
      case 10: {
        const bool fault = dice_.Percent(60);
        if (fault) allocator_.FailAt(static_cast<std::int64_t>(1 + dice_.Below(6)), dice_.Percent(20));
        std::string difference = Invoke(machine, fault);
        allocator_.FailAt(0);
        return difference;
      }
      default:
        return Invoke(machine, false);
    }
  }

  void SetAllInputs(Machine* machine) {
    static_cast<void>(machine->inputs.x().Set(machine->vm.get(), FloatInput::Mode::kBorrowed));
    static_cast<void>(machine->inputs.y().Set(machine->vm.get(), FloatInput::Mode::kBorrowed));
    static_cast<void>(machine->inputs.SetTree(machine->vm.get()));
    static_cast<void>(machine->inputs.SetNumber(machine->vm.get(), machine->inputs.c(), false));
  }

  void SetSomeInput(Machine* machine) {
    SequenceInputs& inputs = machine->inputs;
    const std::uint64_t salt = dice_.Below(100000);
    switch (dice_.Below(6)) {
      case 0:
        Note("set number");
        static_cast<void>(inputs.SetNumber(machine->vm.get(), static_cast<std::int64_t>(dice_.Below(3)),
                                           dice_.Percent(50)));
        break;
      case 1:
        Note("fill tree");
        inputs.FillTree(salt);
        static_cast<void>(inputs.SetTree(machine->vm.get()));
        break;
      case 2:
        if (dice_.Percent(80)) {
          Note("set all");
          SetAllInputs(machine);
        } else {
          Note("clear inputs");
          inputs.Forget(machine->vm.get());
        }
        break;
      default: {
        FloatInput& input = dice_.Percent(50) ? inputs.x() : inputs.y();
        input.Fill(salt);
        const auto mode = static_cast<FloatInput::Mode>(1 + dice_.Below(5));
        Note("set input: " + std::string(input.name()) + " mode " + std::to_string(static_cast<int>(mode)));
        static_cast<void>(input.Set(machine->vm.get(), mode));
      }
    }
  }

  void Calm(Machine* machine) {
    machine->vm->SetLimits({});
    machine->vm->SetDeadline(std::chrono::steady_clock::time_point::max());
    machine->vm->RequireZeroCopy(false);
    machine->zero_copy = false;
    machine->late = false;
    machine->disturbed = false;
  }

  void Disturb(Machine* machine) {
    VirtualMachine& vm = *machine->vm;
    if (machine->disturbed || dice_.Percent(30)) {
      Note("calm");
      Calm(machine);
      return;
    }
    machine->disturbed = true;
    Limits limits;
    switch (dice_.Below(5)) {
      case 0:
        Note("limit steps");
        limits.steps = dice_.Below(30);
        vm.SetLimits(limits);
        break;
      case 1:
        Note("limit bytes");
        limits.bytes = dice_.Below(8000);
        vm.SetLimits(limits);
        break;
      case 2:
        Note("cancel");  // no run is going on: nothing happens
        vm.Cancel();
        machine->disturbed = false;
        break;
      case 3:
        Note("deadline");
        machine->late = true;
        vm.SetDeadline(std::chrono::steady_clock::now() - std::chrono::milliseconds(1));
        break;
      default:
        Note("require zero copy");
        machine->zero_copy = true;
        vm.RequireZeroCopy(true);
    }
  }

  std::string Tidy(Machine* machine) {
    switch (dice_.Below(4)) {
      case 0:
        Note("trim");
        machine->vm->Trim();
        break;
      case 1:
        Note("drop result");
        machine->vm->DropResult();
        break;
      case 2: {
        Note("move");
        auto moved = std::make_unique<VirtualMachine>(std::move(*machine->vm));
        for (auto& binding : machine->bindings) binding->vm = moved.get();
        machine->vm = std::move(moved);
        break;
      }
      default:
        Note("forget kept results");
        kept_.clear();
    }
    return {};
  }

  // --- bindings ---

  void Unbind(Machine* machine, Binding* binding) {
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      if (machine->bindings[leaf].get() == binding)
        static_cast<void>(machine->vm->TryClearOutput(OutputHandle{0, leaf}));
    }
    binding->how = How::kUnbound;
  }

  std::string Bind(Machine* machine) {
    const auto leaf = static_cast<std::uint32_t>(dice_.Below(leaves_));
    Binding& binding = *machine->bindings[leaf];
    Unbind(machine, &binding);
    const Result<std::vector<Leaf>> expected = Expected(machine->inputs.Copies());
    if (!expected) return "the oracle: " + expected.error().message();
    const Leaf& value = (*expected)[leaf];
    const How how = static_cast<How>(dice_.Below(13));
    Note(std::string("bind: ") + std::to_string(leaf) + " " + kHowNames[static_cast<int>(how)]);
    if (how == How::kUnbound || !value.IsBindable()) return {};
    const Tensor form = value.AsTensor();
    const auto size = static_cast<std::uint64_t>(form.view().bytes());
    Binding fresh;
    fresh.how = how;
    fresh.dtype = form.dtype();
    fresh.shape.assign(form.shape().begin(), form.shape().end());
    fresh.vm = machine->vm.get();
    switch (how) {
      case How::kUnbound:
        break;
      case How::kExact:
        fresh.Take(size, 0);
        break;
      case How::kStrided:
        fresh.Take(2 * size, 0);
        fresh.strides = EverySecond(fresh.shape);
        break;
      case How::kMisaligned:
        fresh.Take(size, 1 + dice_.Below(3));
        break;
      case How::kCapacity:
        fresh.Take(size + dice_.Below(100), 0);
        break;
      case How::kAllocator:
      case How::kDeclining:
      case How::kCancelling:
        fresh.Take(4096, 0);
        break;
      case How::kOverInput:
      case How::kDonated: {
        FloatInput& input =
            fresh.how == How::kOverInput || size <= 16 ? machine->inputs.x() : machine->inputs.y();
        if (AnyOverInput(*machine) || size > input.Bytes() || value.value.kind() != ValueKind::kTensor ||
            input.mode() != FloatInput::Mode::kBorrowed)
          return {};
        fresh.data = static_cast<unsigned char*>(input.memory());
        fresh.bytes = size;
        break;
      }
      case How::kWrongShape:
        fresh.shape.push_back(1 + static_cast<std::int64_t>(dice_.Below(2)));
        fresh.Take(2 * size, 0);
        break;
      case How::kTooSmall:
        fresh.Take(dice_.Below(size), 0);
        break;
      case How::kShared: {
        const Binding& other = *machine->bindings[dice_.Below(leaves_)];
        if (other.how == How::kUnbound || other.how == How::kOverInput || other.how == How::kDonated ||
            other.bytes < size)
          return {};
        fresh.data = other.data;
        fresh.bytes = size;
        break;
      }
    }
    old_memory_.push_back(std::move(binding));  // another output may share it
    binding = std::move(fresh);
    if (Status bound = Bind(machine, leaf, &binding); !bound) {
      if (bound.error().message().empty()) return "an error without a message";
      const bool fits = how != How::kWrongShape && how != How::kTooSmall && how != How::kShared &&
                        how != How::kOverInput && how != How::kDonated;
      if (fits && !machine->disturbed) return "cannot be bound: " + bound.error().message();
      Unbind(machine, &binding);
    }
    return {};
  }

  // The input whose memory a donation names.
  static FloatInput& InputOf(Machine* machine, const Binding& binding) {
    SequenceInputs& inputs = machine->inputs;
    return binding.data == inputs.x().memory() ? inputs.x() : inputs.y();
  }

  static bool AnyOverInput(const Machine& machine) {
    for (const auto& binding : machine.bindings) {
      if (binding->how == How::kOverInput || binding->how == How::kDonated) return true;
    }
    return false;
  }

  static Status Bind(Machine* machine, std::uint32_t leaf, Binding* binding) {
    const OutputHandle output{0, leaf};
    switch (binding->how) {
      case How::kUnbound:
        return machine->vm->TryClearOutput(output);
      case How::kCapacity:
      case How::kTooSmall:
        return machine->vm->TrySetOutput(output, OutputCapacity{binding->data, binding->bytes});
      case How::kAllocator:
      case How::kDeclining:
      case How::kCancelling:
        return machine->vm->TrySetOutput(output, OutputAllocator{binding, GiveMemory});
      case How::kDonated:
        return machine->vm->TryDonate(InputOf(machine, *binding).name(), output);
      case How::kExact:
      case How::kStrided:
      case How::kMisaligned:
      case How::kOverInput:
      case How::kWrongShape:
      case How::kShared:
        return machine->vm->TrySetOutput(output, binding->view());
    }
    return {};
  }

  // --- runs ---

  Result<std::vector<Leaf>> Expected(const std::vector<Value>& inputs) {
    VirtualMachine vm(*oracle_);
    const Result<Value> result = vm.TryInvoke("main", inputs);
    if (!result) return Forward(result);
    std::vector<Leaf> leaves(leaves_);
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      const Result<Value> value = vm.TryOutput(leaf);
      if (!value) return Forward(value);
      leaves[leaf].text = Serialized(*value);
      leaves[leaf].value =
          value->kind() == ValueKind::kTensor ? Value(*Tensor::CopyOf(value->tensor().view())) : *value;
    }
    return leaves;
  }

  // Whether the run can and whether it must fail for how the leaf is bound.
  void Judge(std::uint32_t index, const Binding& binding, const Leaf& leaf, bool* may_fail,
             bool* must_fail) const {
    if (binding.how == How::kUnbound) return;
    if (!leaf.IsBindable()) {
      *may_fail = true;
      return;
    }
    const Tensor form = leaf.AsTensor();
    const auto size = static_cast<std::uint64_t>(form.view().bytes());
    switch (binding.how) {
      case How::kUnbound:
      case How::kAllocator:
        break;
      case How::kDeclining:
        // The first question is for the output itself if no instruction makes it in place.
        *may_fail = *may_fail || !oracle_->TryOutputPlan({0, index})->rewired;
        break;
      case How::kCancelling:
        *must_fail = true;
        break;
      case How::kCapacity:
      case How::kTooSmall:
        *must_fail = *must_fail || size > binding.bytes;
        break;
      case How::kOverInput:
      case How::kDonated:
        *may_fail = true;  // another leaf may return the input
        break;
      case How::kExact:
      case How::kStrided:
      case How::kMisaligned:
      case How::kWrongShape:
      case How::kShared: {
        const std::vector<std::int64_t> shape(form.shape().begin(), form.shape().end());
        *must_fail = *must_fail || shape != binding.shape || form.dtype() != binding.dtype;
        *may_fail = *may_fail || binding.how == How::kShared;
        break;
      }
    }
  }

  std::string Invoke(Machine* machine, bool fault) {
    SequenceInputs& inputs = machine->inputs;
    const bool all_set = inputs.AllSet();
    bool may_fail = fault || machine->disturbed;
    bool must_fail = !all_set || machine->late;
    const Result<std::vector<Leaf>> expected = Expected(inputs.Copies());
    if (!expected) return "the oracle: " + expected.error().message();
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      machine->bindings[leaf]->asked = false;
      Judge(leaf, *machine->bindings[leaf], (*expected)[leaf], &may_fail, &must_fail);
    }
    const std::string host_bytes = inputs.HostBytes();
    const bool waits_later = dice_.Percent(35);
    Status status = waits_later ? machine->vm->TryInvokeAsync() : machine->vm->TryInvoke();
    if (waits_later && status) status = machine->vm->TryWait();
    allocator_.FailAt(0);  // what follows is not the run's
    for (const auto& binding : machine->bindings) {
      // A copy that was donated has other contents now.
      if (binding->how != How::kDonated) continue;
      FloatInput& input = InputOf(machine, *binding);
      const bool taken = input.mode() == FloatInput::Mode::kCopied ||
                         input.mode() == FloatInput::Mode::kStrided ||
                         input.mode() == FloatInput::Mode::kMisaligned;
      if (taken) static_cast<void>(input.Set(machine->vm.get(), input.mode()));
    }
    Note((waits_later ? "invoke later: " : "invoke: ") +
         (status ? std::string("right") : status.error().message()));
    ++tally_.runs;
    ++tally_.outcomes[status ? "right" : StatusCodeName(status.error().code())];
    const bool overwrites = AnyOverInput(*machine);
    if (!overwrites && host_bytes != inputs.HostBytes()) return "an input of the host's has changed";
    for (const auto& binding : machine->bindings) {
      if (binding->reentered) return "a VM that runs took another run";
    }
    if (!status) {
      if (status.error().message().empty()) return "an error without a message";
      if (!may_fail && !must_fail) return "fails: " + status.error().message();
      return {};
    }
    if (must_fail) return "succeeds where it cannot";
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      std::string difference = CheckLeaf(machine, leaf, (*expected)[leaf]);
      if (!difference.empty()) return "leaf " + std::to_string(leaf) + ": " + difference;
    }
    return {};
  }

  std::string CheckLeaf(Machine* machine, std::uint32_t leaf, const Leaf& expected) {
    const Binding& binding = *machine->bindings[leaf];
    const Result<Value> value = machine->vm->TryOutput(leaf);
    if (!value) return value.error().message();
    if (Serialized(*value) != expected.text && binding.how == How::kUnbound) return "differs";
    if (binding.how == How::kUnbound) {
      if (dice_.Percent(15) && IsOwnedByVm(*machine, *value)) kept_.push_back({*value, expected.text});
      return {};
    }
    ++tally_.bindings[kHowNames[static_cast<int>(binding.how)]];
    const Tensor form = expected.AsTensor();
    if (Serialized(*value) != expected.text && value->kind() != ValueKind::kNone &&
        binding.how != How::kStrided && (*value).kind() == expected.value.kind() &&
        !LiesInAnother(*machine, leaf, *value))
      return std::string("the result differs, bound ") + kHowNames[static_cast<int>(binding.how)];
    if (binding.how == How::kDonated && InputOf(machine, binding).mode() != FloatInput::Mode::kBorrowed)
      return {};
    const TensorView view(binding.data, form.dtype(), form.shape(), kHost, binding.strides);
    if (ElementsOf(view) != ElementsOf(form.view()))
      return std::string("differs, bound ") + kHowNames[static_cast<int>(binding.how)];
    const Result<OutputReport> report = machine->vm->TryOutputReport(OutputHandle{0, leaf});
    if (!report) return report.error().message();
    if (report->copied && machine->zero_copy) return "was copied where zero copy is required";
    return {};
  }

  // An input that the function returns is that input still, though its output is bound (virtual_machine.h),
  // and another output may have been bound over the input: then its value stands there.
  static bool LiesInAnother(const Machine& machine, std::uint32_t leaf, const Value& value) {
    if (value.kind() != ValueKind::kTensor) return false;
    const auto* byte = static_cast<const unsigned char*>(value.tensor().dl().data);
    for (std::uint32_t other = 0; other < machine.bindings.size(); ++other) {
      const Binding& binding = *machine.bindings[other];
      const bool over = binding.how == How::kOverInput || binding.how == How::kDonated;
      if (other != leaf && over && byte >= binding.data && byte < binding.data + binding.bytes) return true;
    }
    return false;
  }

  // Such a value no later call may change.
  bool IsOwnedByVm(const Machine& machine, const Value& value) const {
    if (value.kind() != ValueKind::kTensor) return false;
    const void* data = value.tensor().dl().data;
    for (const Machine& other : vms_) {
      if (other.inputs.Owns(data)) return false;
      for (const auto& binding : other.bindings) {
        const auto* byte = static_cast<const unsigned char*>(data);
        if (binding->data != nullptr && byte >= binding->data && byte < binding->data + binding->bytes)
          return false;
      }
    }
    // A result in static memory would take room of the runs to come.
    const auto* byte = static_cast<const unsigned char*>(data);
    return (byte < static_memory_.data() || byte >= static_memory_.data() + static_memory_.size()) &&
           machine.vm != nullptr;
  }

  // Inputs and outputs for this call alone, by a VM or by the Program's pool.
  std::string RunForOneCall(Machine* machine) {
    const std::vector<Value> inputs = machine->inputs.Copies();
    const Result<std::vector<Leaf>> expected = Expected(inputs);
    if (!expected) return "the oracle: " + expected.error().message();
    const bool pooled = dice_.Percent(50);
    bool may_fail = !pooled && machine->disturbed;
    bool must_fail = !pooled && machine->late;
    std::vector<std::unique_ptr<Binding>> outputs;
    std::vector<OutputBinding> bindings;
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      outputs.push_back(std::make_unique<Binding>());
      if (!(*expected)[leaf].IsBindable() || dice_.Percent(40)) continue;
      const Tensor form = (*expected)[leaf].AsTensor();
      Binding& binding = *outputs.back();
      binding.how = dice_.Percent(10) ? How::kWrongShape : dice_.Percent(25) ? How::kMisaligned : How::kExact;
      binding.dtype = form.dtype();
      binding.shape.assign(form.shape().begin(), form.shape().end());
      if (binding.how == How::kWrongShape) binding.shape.push_back(1);
      binding.Take(form.view().bytes(), binding.how == How::kMisaligned ? 1 : 0);
      bindings.push_back({OutputHandle{0, leaf}, binding.view()});
      Judge(leaf, binding, (*expected)[leaf], &may_fail, &must_fail);
    }
    const bool fault = dice_.Percent(20);
    if (fault) allocator_.FailAt(static_cast<std::int64_t>(1 + dice_.Below(5)));
    const Status status = pooled ? program_->TryRun("main", inputs, bindings)
                                 : machine->vm->TryInvoke("main", inputs, bindings);
    allocator_.FailAt(0);
    ++tally_.runs;
    ++tally_.outcomes[status ? "right" : StatusCodeName(status.error().code())];
    Note((pooled ? "program run: " : "run for one call: ") +
         (status ? std::string("right") : status.error().message()));
    if (!status) {
      return may_fail || must_fail || fault ? "" : "fails for one call: " + status.error().message();
    }
    if (must_fail) return "succeeds for one call where it cannot";
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      const Binding& binding = *outputs[leaf];
      if (binding.how == How::kUnbound) continue;
      const Tensor form = (*expected)[leaf].AsTensor();
      if (ElementsOf(binding.view()) != ElementsOf(form.view())) return "differs for one call";
      if (!binding.GuardsStand()) return "writes beside memory bound for one call";
    }
    return {};
  }

  std::string CheckInvariants() {
    for (const Machine& machine : vms_) {
      if (!machine.inputs.GuardsStand()) return "memory beside an input is written";
      for (const auto& binding : machine.bindings) {
        if (!binding->GuardsStand()) return "memory beside a bound output is written";
      }
    }
    for (const Kept& kept : kept_) {
      if (Serialized(kept.value) != kept.text) return "a kept result has changed";
    }
    return {};
  }

  const RandomProgram& source_;
  Dice dice_;
  SequenceTally& tally_;
  TestAllocator allocator_;
  FakeDevice device_;
  KernelLog log_;
  std::vector<unsigned char> static_memory_;
  std::optional<Program> oracle_;  // with memory of its own
  std::optional<Program> program_;
  SharedArena arena_;
  std::deque<Machine> vms_;  // which stay where they are: their inputs are borrowed
  std::vector<Kept> kept_;
  std::vector<GuardedMemory> old_memory_;  // of bindings that were replaced
  std::uint32_t leaves_ = 0;
  std::size_t current_ = 0;  // the VM that is called
  std::string trail_;
};

}  // namespace

std::string RunCallSequence(const RandomProgram& program, std::uint64_t seed, SequenceTally* tally) {
  return Sequence(program, seed, tally).Run();
}

}  // namespace rewire::test
