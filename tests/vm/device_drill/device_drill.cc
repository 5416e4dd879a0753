// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/device_drill/device_drill.h"

#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/outputs/bound_memory.h"
#include "rewire/tests/vm/outputs/output_harness.h"
#include "rewire/tests/vm/outputs/random/program_inputs.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/value/ffi_object.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kKindNames[] = {"copy", "kernel", "allocation", "free",
                                      "wait", "event",  "record",     "replay"};
static_assert(std::size(kKindNames) == FakeDevice::kKinds);
constexpr unsigned char kPoison = 0x5B;  // of the caller's memory between two calls

// Weak references that kernels hold to what they were given. The memory of such an object is never another's.
class WeakReferences {
 public:
  ~WeakReferences() { Drop(); }
  void Add(Object* object) {
    for (const Object* named : named_) reused_ = reused_ || (named == object && WasDead(object));
    __atomic_fetch_add(&object->combined_ref_count, kOneWeak, __ATOMIC_RELAXED);
    named_.push_back(object);
  }
  // Before a call: which of the named objects are dead for good.
  void NoteDead() {
    dead_.clear();
    for (Object* object : named_) {
      const std::uint64_t counts = __atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE);
      if (static_cast<std::uint32_t>(counts) == 0) dead_.push_back(object);
    }
  }
  // Whether one of them lives again.
  bool reused() const {
    for (Object* object : dead_) {
      const std::uint64_t counts = __atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE);
      if (static_cast<std::uint32_t>(counts) != 0) return true;
    }
    return reused_;
  }
  void Drop() {
    dead_.clear();
    for (Object* object : std::exchange(named_, {})) {
      if (DropWeakCount(reinterpret_cast<RewireFFIObject*>(object)))
        object->deleter(object, kRewireFFIWeakGone);
    }
  }

 private:
  bool WasDead(const Object* object) const {
    for (const Object* each : dead_) {
      if (each == object) return true;
    }
    return false;
  }
  std::vector<Object*> named_;
  std::vector<Object*> dead_;
  bool reused_ = false;
};

class Drill {
 public:
  Drill(const RandomProgram& source, DrillTally* tally)
      : source_(source), tally_(*tally), dice_(source.seed ^ 0xD1CE), inputs_(source.seed) {}

  std::string Run() {
    ++tally_.programs;
    Result<Module> module = Assemble(source_.text);
    if (!module) return "does not assemble: " + module.error().message();
    const Result<Executable> executable = Executable::FromModule(*std::move(module));
    if (!executable) return "is not verified: " + executable.error().message();
    leaves_ = static_cast<std::uint32_t>(executable->module().functions[0].output_names.size());
    for (FakeDevice* device : {&first_, &second_}) {
      if (dice_.Percent(40)) device->ShareMemory();
      device->put_off = true;
    }
    LinkOptions options;
    options.stock_kernels = false;
    options.allocator = allocator_.allocator();
    options.storage_fill = static_cast<StorageFill>(dice_.Below(3));
    AddTestKernels(&options.kernels, &log_);
    AddDeviceKernel(&options.kernels, "dev_inc");
    options.kernels.AddFunction("give",
                                MakePackedFunction([this](const RewireFFIAny& x, RewireFFIAny* result) {
                                  if (IsObjectKind(x.type_index)) {
                                    if (weak_dice_.Percent(50)) weak_.Add(ObjectOf(x));
                                    ObjectOf(x)->AddStrong();
                                  }
                                  Tick();
                                  *result = x;
                                }));
    options.devices.push_back(&first_.api);
    options.devices.push_back(&second_.api);
    if (Status linked = Link(*executable, std::move(options)); !linked)
      return "is not linked: " + linked.error().message();
    std::string fault = Calls();
    vm_.reset();
    program_.reset();
    weak_.Drop();
    for (FakeDevice* device : {&first_, &second_}) {
      device->Finish();
      if (fault.empty()) fault = LeftOn(*device);
    }
    if (fault.empty() && allocator_.blocks() != 0)
      fault = std::to_string(allocator_.blocks()) + " blocks are not given back";
    return fault.empty() ? "" : fault + "\ncalls:" + trail_;
  }

 private:
  Status Link(const Executable& executable, LinkOptions options) {
    const Result<Program> program = Program::Link(executable, std::move(options));
    if (program) program_ = *program;
    return program.status();
  }

  static std::string LeftOn(const FakeDevice& device) {
    if (!device.misuse.empty()) return "uses a device wrongly: " + device.misuse;
    if (!device.blocks.empty()) return "leaves memory on a device";
    if (!device.host_blocks.empty()) return "leaves pinned memory";
    if (!device.streams.empty()) return "leaves a stream";
    if (!device.events.empty()) return "leaves an event";
    return device.recordings.empty() ? "" : "leaves a recording";
  }

  std::string Calls() {
    vm_ = std::make_unique<VirtualMachine>(*program_);
    vm_->SetLimits(Usual());
    inputs_.Fill();
    inputs_.Set(vm_.get());
    if (Status ok = vm_->TryInvoke(); !ok) return "fails untroubled: " + ok.error().message();
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      const Value value = *vm_->TryOutput(leaf);
      expected_.push_back(Serialized(value));
      if (value.kind() == ValueKind::kTensor && IsHostDevice(value.tensor().dl().device)) {
        forms_.emplace_back(*Tensor::CopyOf(value.tensor().view()));
      } else {
        forms_.emplace_back();
      }
    }
    bound_.resize(leaves_);
    const auto count = 4 + dice_.Below(8);
    for (std::size_t call = 0; call < count; ++call) {
      std::string fault = Call();
      if (!fault.empty()) return fault;
    }
    return {};
  }

  static Limits Usual() {
    Limits limits;
    limits.steps = 20000;
    return limits;
  }

  // --- trouble ---

  // A point at which a cancellation may come: a call of a driver, a wait, a kernel.
  void Tick() {
    if (ticks_left_ == 0 || --ticks_left_ != 0) return;
    vm_->Cancel();
    cancelled_ = true;
  }

  std::uint64_t Failures() const { return first_.failures + second_.failures; }
  int Records() const { return first_.records + second_.records; }

  void DrawTrouble() {
    cancelled_ = late_ = false;
    ticks_left_ = 0;
    const std::size_t kind = dice_.Below(100);
    if (kind < 30) return;
    if (kind < 75) {
      FakeDevice& device = dice_.Percent(60) ? first_ : second_;
      const auto what = static_cast<FakeDevice::Kind>(dice_.Below(FakeDevice::kKinds));
      const std::uint64_t k = 1 + dice_.Below(dice_.Percent(70) ? 3 : 12);
      const bool at_once = dice_.Percent(50);
      trouble_ = std::string(kKindNames[what]) + (at_once ? "" : " (late)");
      if (at_once) {
        device.FailCall(what, k);
      } else {
        device.FailWork(what, k);
      }
    } else if (kind < 90) {
      trouble_ = "cancel";
      ticks_left_ = 1 + dice_.Below(12);
    } else if (kind < 95) {
      trouble_ = "late";
      late_ = true;
      vm_->SetDeadline(Clock::now() - std::chrono::milliseconds(1));
    } else {
      trouble_ = "soon late";
      vm_->SetDeadline(Clock::now() + std::chrono::microseconds(dice_.Below(100)));
    }
  }

  void EndTrouble() {
    for (FakeDevice* device : {&first_, &second_}) {
      device->FailNothing();
      device->at_call = device->at_wait = nullptr;
    }
    ticks_left_ = 0;
    vm_->SetDeadline(Clock::time_point::max());
  }

  // --- calls ---

  std::string Call() {
    weak_.NoteDead();
    if (dice_.Percent(15)) weak_.Drop();
    trouble_ = "none";
    const std::size_t way = dice_.Below(9);
    if (std::exchange(for_one_call_, false)) bound_ = std::vector<GuardedMemory>(leaves_);
    if (dice_.Percent(70)) BindSome();
    inputs_.Fill();
    if (dice_.Percent(20)) inputs_.Set(vm_.get());
    DrawTrouble();
    for (FakeDevice* device : {&first_, &second_}) device->at_call = device->at_wait = [this] { Tick(); };
    const std::uint64_t before = Failures();
    int records = Records();
    const char* name = nullptr;
    bool recordable = true;
    Status status;
    switch (way) {
      case 0:
        name = "async, changed";
        status = vm_->TryInvokeAsync();
        if (status) {
          const bool during = cancelled_;
          vm_->RequireZeroCopy(false);  // it waits, and keeps a failure
          cancelled_ = during;          // between two calls a cancellation is nothing
          status = vm_->TryWait();
        }
        break;
      case 1:
      case 2:
        name = "async";
        status = vm_->TryInvokeAsync();
        if (status) status = vm_->TryWait();
        break;
      case 3:
        name = "async twice";
        status = vm_->TryInvokeAsync();
        if (status) status = vm_->TryInvokeAsync();
        if (status) status = vm_->TryWait();
        break;
      case 4:
        name = "recorded";
        status = vm_->TryRecord();
        recordable = status || status.code() != StatusCode::kUnsupported;
        if (status) {
          cancelled_ = false;  // while it records, no run is going on
          records = Records();
          status = vm_->TryInvoke();
        }
        break;
      case 5:
        name = "automatic";
        vm_->SetAutomaticRecording(true);
        for (int i = 0; status && i < 5; ++i) status = vm_->TryInvoke();
        break;
      case 6:
        name = "trimmed";
        status = vm_->TryTrim();
        cancelled_ = false;  // it is no run
        if (status) status = vm_->TryInvoke();
        break;
      case 7:
        name = "for one call";
        status = PerCall();
        break;
      default:
        name = "plain";
        status = vm_->TryInvoke();
    }
    // A recording that fails by itself is no failure of the run, which is then done as it always is.
    if (status && Records() != records) told_ = Failures();
    return Finish(name, status, before, recordable);
  }

  // All bindable leaves, or some of them.
  void BindSome() {
    const bool all = dice_.Percent(60);
    vm_->ClearOutputs();
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      bound_[leaf] = {};
      if (!forms_[leaf] || !(all || dice_.Percent(50))) continue;
      const auto size = static_cast<std::uint64_t>(forms_[leaf]->view().bytes());
      bound_[leaf].Take(size, 0);
      const TensorView view(bound_[leaf].data, forms_[leaf]->dtype(), forms_[leaf]->shape());
      vm_->SetOutput(OutputHandle{0, leaf}, view);
    }
  }

  Status PerCall() {
    std::vector<OutputBinding> bindings;
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      bound_[leaf] = {};
      if (!forms_[leaf]) continue;
      bound_[leaf].Take(static_cast<std::uint64_t>(forms_[leaf]->view().bytes()), 0);
      bindings.push_back({OutputHandle{0, leaf},
                          TensorView(bound_[leaf].data, forms_[leaf]->dtype(), forms_[leaf]->shape())});
    }
    vm_->ClearOutputs();
    for_one_call_ = true;
    return vm_->TryInvoke("main", inputs_.Values(), bindings);
  }

  std::string Finish(const char* way, const Status& status, std::uint64_t before, bool ran) {
    trail_ += std::string("\n  ") + way + ", trouble: " + trouble_ + " -> " +
              (status ? "OK" : status.error().message());
    ++tally_.calls;
    ++tally_.ways[way];
    ++tally_.outcomes[status ? "right" : StatusCodeName(status.code())];
    if (Failures() != before) tally_.failures[trouble_] += Failures() - before;
    const bool cancelled = cancelled_;
    EndTrouble();
    if (!status) told_ = Failures();
    if (status && Failures() != told_) return "a failure of a device is told by nobody";
    if (status && cancelled) return "a cancelled run succeeds";
    if (status && late_) return "a run after its deadline succeeds";
    if (weak_.reused()) return "memory that a weak reference names is used again";
    if (status) {
      std::string difference = CheckValues();
      if (!difference.empty()) return difference;
    }
    if (!status && ran && vm_->result().kind() != ValueKind::kNone &&
        status.code() != StatusCode::kInvalidArgument)
      return "a failed run has a result";
    return CheckMemory();
  }

  std::string CheckValues() {
    for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
      if (bound_[leaf].data != nullptr) {
        if (ElementsOf(TensorView(bound_[leaf].data, forms_[leaf]->dtype(), forms_[leaf]->shape())) !=
            ElementsOf(forms_[leaf]->view()))
          return "bound leaf " + std::to_string(leaf) + " differs";
        if (!bound_[leaf].GuardsStand()) return "more than a leaf's memory is written";
        continue;
      }
      const Result<Value> value = vm_->TryOutput(leaf);
      if (!value) return "no result: " + value.error().message();
      if (Serialized(*value) != expected_[leaf]) return "leaf " + std::to_string(leaf) + " differs";
    }
    return {};
  }

  // The caller's memory is its own now: no device reads or writes it.
  std::string CheckMemory() {
    if (first_.Works() || second_.Works()) return "a device still works after the call";
    for (GuardedMemory& memory : bound_) {
      if (memory.data != nullptr) std::memset(memory.data, kPoison, memory.bytes);
    }
    for (std::size_t i = 0; i < 4; ++i) std::memset(inputs_.Memory(i), kPoison, ProgramInputs::Bytes(i));
    first_.Finish();
    second_.Finish();
    const auto stays = [](const void* data, std::uint64_t bytes) {
      const auto* byte = static_cast<const unsigned char*>(data);
      for (std::uint64_t i = 0; i < bytes; ++i) {
        if (byte[i] != kPoison) return false;
      }
      return true;
    };
    for (const GuardedMemory& memory : bound_) {
      if (memory.data != nullptr && !(stays(memory.data, memory.bytes) && memory.GuardsStand()))
        return "memory of an output is written after the call";
    }
    for (std::size_t i = 0; i < 4; ++i) {
      if (!stays(inputs_.Memory(i), ProgramInputs::Bytes(i)))
        return "memory of an input is written after the call";
    }
    return {};
  }

  const RandomProgram& source_;
  DrillTally& tally_;
  Dice dice_;
  Dice weak_dice_{source_.seed ^ 0x3EAC};
  KernelLog log_;
  TestAllocator allocator_;
  FakeDevice first_;
  FakeDevice second_{kDLVulkan, "second"};
  ProgramInputs inputs_;
  WeakReferences weak_;
  std::optional<Program> program_;
  std::unique_ptr<VirtualMachine> vm_;
  std::uint32_t leaves_ = 0;
  std::vector<std::string> expected_;
  std::vector<std::optional<Tensor>> forms_;  // of leaves that are tensors on the host
  std::vector<GuardedMemory> bound_;
  std::string trouble_;
  std::string trail_;
  std::size_t ticks_left_ = 0;
  bool for_one_call_ = false;  // `bound_` was of the last call alone
  bool cancelled_ = false;
  bool late_ = false;
  std::uint64_t told_ = 0;  // failures until the last call that failed
};

}  // namespace

RandomProgram DrillProgram(std::uint64_t seed) {
  return GenerateProgram(seed, seed % 3 == 0 ? ProgramStyle::kRecordable : ProgramStyle::kDevices);
}

std::string FindDrillFault(const RandomProgram& program, DrillTally* tally) {
  return Drill(program, tally).Run();
}

}  // namespace rewire::test
