// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/outputs/random/differential.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/outputs/bound_memory.h"
#include "rewire/tests/vm/outputs/random/program_inputs.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire::test {
namespace {

enum class Mode : std::uint8_t {
  kUnbound,
  kExact,
  kStrided,
  kMisaligned,
  kCapacity,
  kAllocator,
  kReluctant,  // an allocator that has nothing for what may become the output
  kOverInput,
  kDonated,
};

// How one leaf is bound.
struct Bound : GuardedMemory {
  Mode mode = Mode::kUnbound;
  TensorView expected;  // of the unbound run
  std::size_t input = 0;
  std::vector<std::int64_t> strides;
  bool asked = false;  // kReluctant: in this run

  TensorView view() const { return TensorView(data, expected.dtype(), expected.shape(), kHost, strides); }
  std::string Contents() const { return ElementsOf(view()); }
};

class Differential {
 public:
  Differential(const RandomProgram& source, const PlanRules& rules, Histogram* histogram)
      : source_(source),
        rules_(rules),
        histogram_(histogram),
        dice_(source.seed ^ 0x5EED),
        inputs_(source.seed) {}

  std::string Run() {
    const DeviceApi* api = OtherDevice();
    std::string text = source_.text;
    for (std::size_t at = 0; api != &device_.api && (at = text.find("ext_dev", at)) != std::string::npos;)
      text.replace(at, 7, api->name);
    Result<Module> module = Assemble(text);
    if (!module) return "does not assemble: " + module.error().message();
    const Result<Executable> executable = Executable::FromModule(*std::move(module));
    if (!executable) return "is not verified: " + executable.error().message();
    if (histogram_ != nullptr) histogram_->Add(source_, executable->module());
    LinkOptions options;
    AddTestKernels(&options.kernels, &log_);
    options.stock_kernels = false;
    device_.put_off = true;  // whoever uses memory without waiting for it sees what was there before
    options.devices.push_back(api);
    options.storage_fill = StorageFill::kPoison;
    Result<Program> program = LinkUnderRules(*executable, std::move(options), rules_);
    if (!program) return "is not linked: " + program.error().message();
    Limits limits;
    limits.steps = 20000;  // one that is being shrunk may have lost its loop's counter
    VirtualMachine vm(*program, limits);
    leaves_ = static_cast<std::uint32_t>(executable->module().functions[0].output_names.size());

    inputs_.Set(&vm);
    if (Status ok = vm.TryInvoke(); !ok) return "fails unbound: " + ok.error().message();
    if (std::string over = CheckMemory(*program, vm); !over.empty()) return over;
    if (log_.read_poison) return "reads what nobody has written";
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      values_.push_back(*vm.TryOutput(leaf));
      expected_.push_back(Serialized(values_.back()));
      if (expected_.back().find(std::string(4, static_cast<char>(kPoisonByte))) != std::string::npos)
        return "returns what nobody has written";
      // Inputs are overwritten below; what is to be compared with stays.
      if (values_[leaf].kind() == ValueKind::kTensor) {
        copies_.push_back(*Tensor::CopyOf(values_[leaf].tensor().view()));
      } else {
        std::int64_t integer = values_[leaf].integer();
        copies_.push_back(*Tensor::CopyOf(TensorView(&integer, {})));
      }
    }
    for (int round = 0; round < 4; ++round) {
      const std::string difference = RunBound(*program, &vm, round);
      if (!difference.empty()) return "round " + std::to_string(round) + ": " + difference;
    }
    if (!device_.misuse.empty()) return "uses a device wrongly: " + device_.misuse;
    if (api != &device_.api && SimulatedCuda().Violation(0) != nullptr)
      return std::string("uses CUDA's driver wrongly: ") + SimulatedCuda().Violation(0);
    return Check(vm, "unbound again").empty() ? RunPerCall(*program, &vm) : "differs unbound again";
  }

 private:
  // The fake device, or the simulated CUDA driver if REWIRE_TEST_DEVICE is "cuda". Its streams then overtake
  // each other, in another way for each program.
  const DeviceApi* OtherDevice() {
    const char* name = std::getenv("REWIRE_TEST_DEVICE");
    if (name == nullptr) return &device_.api;
    static const DeviceApi* const kOpened = *OpenDevice(name);
    constexpr std::uint64_t kMostDelay = 20'000;  // nanoseconds
    SimulatedCuda().Reset();
    SimulatedCuda().SetDelays(source_.seed, kMostDelay);
    return kOpened;
  }
  static const simulated_cuda::Control& SimulatedCuda() {
    static const simulated_cuda::Control kControl = [] {
      simulated_cuda::Control found;
      void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
      if (driver == nullptr || !found.Load([&](const char* symbol) { return dlsym(driver, symbol); }))
        throw std::runtime_error("REWIRE_TEST_DEVICE needs the simulated CUDA driver");
      return found;
    }();
    return kControl;
  }
  // Checks that the first run has not passed a bound of the memory that is known before it, and that a static
  // memory of its size serves.
  std::string CheckMemory(const Program& program, const VirtualMachine& vm) {
    const Result<MemoryBound> bound = program.TryMemoryBound();
    if (!bound) return "memory bound: " + bound.error().message();
    if (!bound->bounded()) return "";
    if (histogram_ != nullptr) {
      ++histogram_->memory_bounded;
      histogram_->memory_exact += vm.bytes_peak() == bound->bytes ? 1 : 0;
    }
    if (vm.bytes_peak() > bound->bytes) {
      return "took " + std::to_string(vm.bytes_peak()) + " bytes, bounded by " + std::to_string(bound->bytes);
    }
    std::vector<unsigned char> memory(bound->static_bytes + 128);
    VmOptions options;
    options.limits.steps = 20000;
    options.memory = {memory.data() + (128 - reinterpret_cast<std::uintptr_t>(memory.data()) % 128),
                      bound->static_bytes};
    Result<VirtualMachine> fixed = VirtualMachine::TryMake(program, options);
    if (!fixed) return "static memory: " + fixed.error().message();
    for (int i = 0; i < 2; ++i) {
      inputs_.Set(&*fixed);
      if (Status ok = fixed->TryInvoke(); !ok) return "in static memory: " + ok.error().message();
    }
    return "";
  }
  std::string Check(VirtualMachine& vm, const char* what) {
    inputs_.Fill();
    vm.ClearOutputs();
    if (Status ok = vm.TryInvoke(); !ok) return std::string(what) + ": " + ok.error().message();
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      if (Serialized(*vm.TryOutput(leaf)) != expected_[leaf] || Serialized(values_[leaf]) != expected_[leaf])
        return std::string(what) + ": leaf " + std::to_string(leaf) + " differs";
    }
    return {};
  }

  bool IsBindable(std::uint32_t leaf) const {
    return values_[leaf].kind() == ValueKind::kTensor || values_[leaf].kind() == ValueKind::kInteger;
  }

  static const LeafPlan& PlanOf(const Program& program, std::uint32_t leaf) {
    return program.rep().plans[0].leaves[leaf];
  }

  // Draws how a leaf is bound. At most one leaf takes inputs' memory.
  Bound Draw(const LeafPlan& plan, std::uint32_t leaf, int round, bool* input_taken) {
    Bound bound;
    if (!IsBindable(leaf)) return bound;
    bound.expected = copies_[leaf].view();
    const auto size = static_cast<std::uint64_t>(bound.expected.bytes());
    bound.mode = round == 0 ? Mode::kExact : static_cast<Mode>(dice_.Below(9));
    const bool is_integer = bound.expected.dtype() == kInt64;
    if (bound.mode == Mode::kStrided && bound.expected.size() == 1) bound.mode = Mode::kExact;
    // Otherwise what it is asked first is for the output itself, and no memory for that is an error.
    if (bound.mode == Mode::kReluctant && !plan.rewired) bound.mode = Mode::kAllocator;
    if (bound.mode == Mode::kOverInput || bound.mode == Mode::kDonated) {
      bound.input = dice_.Below(bound.mode == Mode::kDonated ? 2 : 4);
      if (*input_taken || is_integer || size > ProgramInputs::Bytes(bound.input))
        bound.mode = Mode::kCapacity;
      *input_taken = true;
    }
    switch (bound.mode) {
      case Mode::kUnbound:
        break;
      case Mode::kExact:
      case Mode::kAllocator:
      case Mode::kReluctant:
        bound.Take(size, 0);
        break;
      case Mode::kCapacity:
        bound.Take(size + 8 * dice_.Below(3), 0);
        break;
      case Mode::kMisaligned:
        bound.Take(size, 1);
        break;
      case Mode::kStrided:
        bound.Take(2 * size, 0);
        bound.strides = EverySecond(bound.expected.shape());
        break;
      case Mode::kOverInput:
      case Mode::kDonated:
        bound.data = reinterpret_cast<unsigned char*>(inputs_.Memory(bound.input));
        bound.bytes = size;
        break;
    }
    return bound;
  }

  static Status Bind(VirtualMachine* vm, OutputHandle output, Bound* bound) {
    switch (bound->mode) {
      case Mode::kUnbound:
        return vm->TryClearOutput(output);
      case Mode::kExact:
      case Mode::kMisaligned:
      case Mode::kOverInput:
      case Mode::kStrided:
        return vm->TrySetOutput(output, bound->view());
      case Mode::kCapacity:
        return vm->TrySetOutput(output, OutputCapacity{bound->data, bound->bytes});
      case Mode::kAllocator:
      case Mode::kReluctant:
        return vm->TrySetOutput(
            output, OutputAllocator{bound, [](void* context, std::uint64_t size, std::uint64_t) -> void* {
                                      auto* self = static_cast<Bound*>(context);
                                      const bool nothing = self->mode == Mode::kReluctant && !self->asked;
                                      self->asked = true;
                                      return size <= self->bytes && !nothing ? self->data : nullptr;
                                    }});
      case Mode::kDonated:
        return vm->TryDonate(static_cast<int>(bound->input), output);
    }
    return {};
  }

  // Errors that a host can make out of a program that it does not know: an input's memory that is still
  // wanted.
  static bool IsRefusal(const Status& status) {
    return status.error().code() == StatusCode::kInvalidArgument &&
           (status.error().message().find("may return") != std::string::npos);
  }

  std::string RunBound(const Program& program, VirtualMachine* vm, int round) {
    inputs_.Fill();
    std::vector<Bound> bounds;
    bounds.reserve(leaves_);  // they are pointed at
    bool input_taken = false;
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf)
      bounds.push_back(Draw(PlanOf(program, leaf), leaf, round, &input_taken));
    Status status;
    for (std::uint32_t leaf = 0; status && leaf < leaves_; ++leaf)
      status = Bind(vm, {0, leaf}, &bounds[leaf]);
    if (status) status = vm->TryInvoke();
    if (!status) {
      if (!IsRefusal(status)) return status.error().message();
      if (histogram_ != nullptr) ++histogram_->refused;
      return Check(*vm, "after a refusal");
    }
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      std::string difference = CheckLeaf(program, *vm, leaf, bounds[leaf], round);
      if (!difference.empty()) return difference;
    }
    // The host does with its memory what it likes; the other outputs are not touched by it.
    for (Bound& bound : bounds) {
      if (bound.mode != Mode::kUnbound) std::memset(bound.data, 0x77, bound.bytes);
    }
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      if (bounds[leaf].mode == Mode::kUnbound && Serialized(*vm->TryOutput(leaf)) != expected_[leaf])
        return "unbound leaf " + std::to_string(leaf) + " lies in another one's memory";
    }
    vm->ClearOutputs();
    return {};
  }

  std::string CheckLeaf(const Program& program, const VirtualMachine& vm, std::uint32_t leaf,
                        const Bound& bound, int round) {
    const std::string name =
        "leaf " + std::to_string(leaf) + ", mode " + std::to_string(static_cast<int>(bound.mode)) + ": ";
    if (bound.mode == Mode::kUnbound) {
      return Serialized(*vm.TryOutput(leaf)) == expected_[leaf] ? "" : name + "differs";
    }
    if (bound.Contents() != ElementsOf(bound.expected)) return name + "differs";
    if (!bound.GuardsStand()) return name + "more than its memory is written";
    const Result<OutputReport> report = vm.TryOutputReport(OutputHandle{0, leaf});
    if (!report) return name + report.error().message();
    const LeafPlan& plan = PlanOf(program, leaf);
    const std::string verdict = report->copied ? report->reason : "in place";
    if (histogram_ != nullptr) {
      ++histogram_->verdicts[verdict];
      if (!report->copied && plan.sites.size() == 1) {
        const std::uint32_t word = program.rep().module().functions[0].code[plan.sites[0].pc];
        ++histogram_->makers[std::string(Info(OpcodeOf(word)).mnemonic)];
      }
      if (round == 0 && !source_.loops && values_[leaf].kind() == ValueKind::kTensor &&
          !inputs_.Owns(values_[leaf].tensor().dl().data) && !IsConstant(program, leaf)) {
        ++histogram_->allocated;
        if (!report->copied) ++histogram_->rewired;
      }
    }
    if (!rules_.a || !rules_.b || !rules_.c) return {};  // such a plan says what it likes
    const std::string reason = CopyReasonText(plan.reason);
    bool right = true;
    switch (bound.mode) {
      case Mode::kUnbound:
        break;
      case Mode::kExact:
      case Mode::kCapacity:
      case Mode::kAllocator:
        right = plan.rewired ? !report->copied : !report->copied || verdict == reason;
        break;
      case Mode::kReluctant:
        right = !report->copied || verdict == "the value was made elsewhere" || verdict == reason;
        break;
      case Mode::kStrided:
        right = verdict == "the bound memory is strided";
        break;
      case Mode::kMisaligned:
        right = verdict == "the bound memory is not aligned as the kernels need";
        break;
      case Mode::kOverInput:
        right = verdict == "the bound memory overlaps an input of the same call" || !report->copied;
        break;
      case Mode::kDonated:
        right = plan.rewired && plan.MayTakeInput(bound.input)
                    ? !report->copied
                    : !report->copied || verdict == reason ||
                          verdict == "the donated input is still read when the output is first written";
        break;
    }
    return right ? ""
                 : name + "verdict \"" + verdict + "\", the plan says " + (plan.rewired ? "rewired" : reason);
  }

  bool IsConstant(const Program& program, std::uint32_t leaf) const {
    const void* data = values_[leaf].tensor().dl().data;
    const Array<NamedRange>& ranges = program.rep().constant_ranges;
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const NamedRange& range) { return range.range.Overlaps(RangeOf(data, 1)); });
  }

  // All leaves for one call, by the VM and by the Program's pool.
  std::string RunPerCall(const Program& program, VirtualMachine* vm) {
    inputs_.Fill();
    const std::vector<Value> inputs = inputs_.Values();
    for (const bool pooled : {false, true}) {
      bool input_taken = true;
      std::vector<Bound> bounds;
      bounds.reserve(leaves_);
      std::vector<OutputBinding> bindings;
      for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
        bounds.push_back(Draw(PlanOf(program, leaf), leaf, 0, &input_taken));
        if (bounds.back().mode != Mode::kExact) continue;
        bindings.push_back(
            {OutputHandle{0, leaf},
             TensorView(bounds.back().data, bounds.back().expected.dtype(), bounds.back().expected.shape())});
      }
      const Status status =
          pooled ? program.TryRun("main", inputs, bindings) : vm->TryInvoke("main", inputs, bindings);
      if (!status) return "for one call: " + status.error().message();
      for (const Bound& bound : bounds) {
        if (bound.mode == Mode::kUnbound) continue;
        if (bound.Contents() != ElementsOf(bound.expected) || !bound.GuardsStand())
          return "differs for one call";
      }
    }
    return {};
  }

  const RandomProgram& source_;
  const PlanRules rules_;
  Histogram* histogram_;
  Dice dice_;
  ProgramInputs inputs_;
  KernelLog log_;
  FakeDevice device_;
  std::uint32_t leaves_ = 0;
  std::vector<Value> values_;  // of the first unbound run: nothing may change them
  std::vector<std::string> expected_;
  std::vector<Tensor> copies_;
};

}  // namespace

void Histogram::Add(const RandomProgram& program, const Module& module) {
  ++programs;
  branches += program.branches ? 1 : 0;
  calls += program.calls ? 1 : 0;
  loops += program.loops ? 1 : 0;
  for (const Function& function : module.functions) {
    for (std::size_t pc = 0; pc < function.code.size(); pc += WordsOf(function.code[pc]))
      ++opcodes[std::string(Info(OpcodeOf(function.code[pc])).mnemonic)];
  }
}

std::string FindDifference(const RandomProgram& program, const PlanRules& rules, Histogram* histogram) {
  return Differential(program, rules, histogram).Run();
}

}  // namespace rewire::test
