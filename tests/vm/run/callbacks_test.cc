// SPDX-License-Identifier: Apache-2.0
// Code of the host's may do this while a VM calls it: kernels, observers, allocators of outputs, deleters.
// The rules stand at the top of vm/virtual_machine.h.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/vm/run/acting_observer.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"

namespace rewire::test {
namespace {

constexpr char kText[] = R"(
.kernel call = "host.call"
.kernel slot = "host.slot"
.func main(x: f32[2]) -> y: f32[2]
  %s = alloc_storage _, alignment=64, f32[2], cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed call(%x, %y), outputs=1
  ret %y
.end
.func keeps() -> integer
  invoke_packed slot(), outputs=0
  %one = load_consti 1
  ret %one
.end)";

// A VM whose callbacks all do what `action` says.
class Host {
 public:
  Host() : program_(Link()), vm_(program_) { vm_.SetInput("x", TensorView(x_, {2})); }

  VirtualMachine& vm() { return vm_; }
  const Program& program() const { return program_; }
  std::function<void()> action;  // of the kernel, alone
  void Act() {
    if (action) action();
  }
  // Checks that the VM serves as before.
  void CheckUsable() {
    action = nullptr;
    vm_.ClearOutputs();
    REQUIRE(MessageOf(vm_.TryInvoke()).empty());
    CHECK(FloatsOf(vm_.Output(0)) == std::vector<float>{2, 4});
  }

 private:
  Program Link() {
    LinkOptions options;
    options.kernels.AddFunction("host.call",
                                MakePackedFunction([this](kernel::TensorView x, kernel::TensorView y) {
                                  Act();
                                  for (int i = 0; i < 2; ++i) y.data<float>()[i] = 2 * x.data<float>()[i];
                                }));
    PackedFunction slot;
    slot.handle = this;
    slot.call = [](void* host, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
      KernelApi()->set_slot(host, [](void* state) { static_cast<Host*>(state)->Act(); });
      return 0;
    };
    options.kernels.AddFunction("host.slot", slot);
    return ProgramOf(kText, std::move(options));
  }

  float x_[2] = {1, 2};
  Program program_;
  VirtualMachine vm_;
};

// Every call that would change the VM is refused, and every other one answers.
void TryEverything(Host* host) {
  VirtualMachine& vm = host->vm();
  float memory[2] = {7, 7};
  const TensorView view(memory, {2});
  const Value value = Floats({7, 7});
  const OutputBinding binding{0, view};
  std::vector<Status> refused;
  refused.push_back(vm.TrySetInput("x", view));
  refused.push_back(vm.TrySetInput("x", value));
  refused.push_back(vm.TrySetInputs("main", {&view, 1}));
  refused.push_back(vm.TryClearInputs());
  refused.push_back(vm.TrySetOutput(0, view));
  refused.push_back(vm.TrySetOutput(OutputHandle{0, 0}, view));
  refused.push_back(vm.TrySetOutput(0, value.tensor()));
  refused.push_back(vm.TrySetOutput(0, OutputCapacity{memory, 8}));
  refused.push_back(vm.TrySetOutput(
      0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) -> void* { return nullptr; }}));
  refused.push_back(vm.TryDonate(0, 0));
  refused.push_back(vm.TryClearOutput(0));
  refused.push_back(vm.TryClearOutputs());
  refused.push_back(vm.TryRequireZeroCopy(true));
  refused.push_back(vm.TryInvoke());
  refused.push_back(vm.TryInvoke(0u));
  refused.push_back(vm.TryInvoke("main", {&value, 1}).status());
  refused.push_back(vm.TryInvoke("main", {&value, 1}, {&binding, 1}));
  refused.push_back(vm.TrySetLimits({}));
  refused.push_back(vm.TrySetDeadline({}));
  refused.push_back(vm.TrySetObserver(nullptr));
  refused.push_back(vm.TryDropResult());
  refused.push_back(vm.TryTrim());
  refused.push_back(vm.TryOutputShape(0).status());
  refused.push_back(vm.TryOutputReport(0).status());
  for (std::size_t i = 0; i < refused.size(); ++i) {
    CAPTURE(i);
    REQUIRE_FALSE(refused[i].has_value());
    CHECK(refused[i].code() == StatusCode::kBusy);
  }
  CHECK(vm.program().FindFunction("main").has_value());
  CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{2, 4});
  CHECK(FloatsOf(vm.Output(0)) == std::vector<float>{2, 4});
  CHECK(vm.TryInputReport("x").has_value());
  CHECK(vm.bytes_held() > 0);
  CHECK(vm.bytes_peak() > 0);
  // Other VMs of the same Program are free.
  VirtualMachine other(host->program());
  const auto outer = std::exchange(host->action, nullptr);
  CHECK(FloatsOf((*other.TryInvoke("main", {&value, 1})).tensor()) == std::vector<float>{14, 14});
  CHECK(FloatsOf(host->program().TryRun("main", {&value, 1})->tensor()) == std::vector<float>{14, 14});
  host->action = outer;
}

TEST_CASE("callbacks of a run may read the VM and use others; what would change it is busy") {
  Host host;
  host.CheckUsable();
  int calls = 0;
  const auto everything = [&] {
    ++calls;
    TryEverything(&host);
  };
  SECTION("kernel") {
    host.action = everything;
    REQUIRE(MessageOf(host.vm().TryInvoke()).empty());
    CHECK(calls == 1);
  }
  SECTION("observer") {
    ActingObserver observer;
    observer.instructions = true;
    observer.kernels = true;
    observer.action = everything;
    host.vm().SetObserver(&observer);
    REQUIRE(MessageOf(host.vm().TryInvoke()).empty());
    CHECK(calls == 5);  // four instructions and a kernel
    host.vm().SetObserver(nullptr);
  }
  SECTION("allocator of an output") {
    static std::function<void()> act;
    act = everything;
    static float memory[16];
    host.vm().SetOutput(0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) -> void* {
                                             act();
                                             return memory;
                                           }});
    REQUIRE(MessageOf(host.vm().TryInvoke()).empty());
    CHECK(calls >= 1);
  }
  host.CheckUsable();
}

TEST_CASE("a callback sees the bytes that the VM holds at that moment") {
  Host host;
  const std::uint64_t before = host.vm().bytes_held();
  std::uint64_t inside = 0;
  host.action = [&] {
    inside = host.vm().bytes_held();
    CHECK(host.vm().bytes_peak() >= inside);
  };
  host.vm().Invoke();
  CHECK(inside > before);
  // In the next run, the old result has gone or still counts. In either case, this is what the VM holds.
  host.action = [&] { CHECK(host.vm().bytes_held() <= host.vm().bytes_peak()); };
  host.vm().Invoke();
  host.CheckUsable();
}

TEST_CASE("deleters that a call runs find the VM busy, and the call does its work") {
  Host host;
  host.CheckUsable();
  VirtualMachine& vm = host.vm();
  int calls = 0;
  const auto owned = [&](float* memory) {
    return *Tensor::Wrap(TensorView(memory, {2}), std::shared_ptr<const void>(memory, [&](const void*) {
                           ++calls;
                           CHECK(vm.TryTrim().code() == StatusCode::kBusy);
                           CHECK(vm.TrySetInput("x", Floats({9, 9})).code() == StatusCode::kBusy);
                           CHECK(vm.TryClearOutputs().code() == StatusCode::kBusy);
                           CHECK(vm.TryInvoke().code() == StatusCode::kBusy);
                         }));
  };
  alignas(64) float first[2] = {3, 3};
  alignas(64) float second[2] = {1, 2};
  vm.SetInput("x", owned(first));
  vm.SetInput("x", owned(second));
  CHECK(calls == 1);
  vm.SetOutput(0, owned(first));
  vm.Invoke();
  vm.ClearOutputs();
  vm.DropResult();
  CHECK(calls == 2);
  REQUIRE(vm.TryClearInputs().has_value());
  CHECK(calls == 3);
  // A kernel's slot goes with Trim.
  vm.Invoke("keeps");
  host.action = [&] {
    ++calls;
    CHECK(vm.TryTrim().code() == StatusCode::kBusy);
    CHECK(vm.TryDropResult().code() == StatusCode::kBusy);
  };
  vm.Trim();
  CHECK(calls == 4);
  float x[2] = {1, 2};
  vm.SetInput("x", TensorView(x, {2}), InputMode::kCopy);
  host.CheckUsable();
}

TEST_CASE("an observer or an allocator that throws ends the run, which says so") {
  Host host;
  ActingObserver observer;
  const auto run = [&] { return MessageOf(host.vm().TryInvoke()); };
  for (const bool kernels : {false, true}) {
    CAPTURE(kernels);
    observer.kernels = kernels;
    observer.instructions = !kernels;
    host.vm().SetObserver(&observer);
    observer.action = [] { throw std::runtime_error("no more paper"); };
    CHECK(run().find(kernels ? "(invoke_packed call(" : "main@0 (") != std::string::npos);
    CHECK(run().find("the observer threw an exception: no more paper") != std::string::npos);
    observer.action = [] { throw 1; };
    CHECK(run().find("the observer threw an exception that is no std::exception") != std::string::npos);
    host.vm().SetObserver(nullptr);
    host.CheckUsable();
  }
  host.vm().SetOutput(0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) -> void* {
                                           throw std::bad_alloc();
                                         }});
  CHECK(run().find("the output's allocator threw an exception: ") != std::string::npos);
  // The frames of a run that ended so are gone: one call is all that may be active.
  Limits limits;
  limits.depth = 1;
  host.vm().SetLimits(limits);
  host.CheckUsable();
  host.vm().SetLimits({});
  host.CheckUsable();
  // And so is what it held.
  const std::uint64_t held = host.vm().bytes_held();
  host.vm().SetObserver(&observer);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(run().empty());
  host.vm().SetObserver(nullptr);
  host.CheckUsable();
  CHECK(host.vm().bytes_held() <= held);
}

TEST_CASE("a cancellation ends the run that is going on, never another one") {
  Host host;
  host.CheckUsable();
  VirtualMachine& vm = host.vm();
  vm.Cancel();  // without a run
  host.CheckUsable();
  const auto cancelled = [&] {
    const Status status = vm.TryInvoke();
    vm.ClearOutputs();
    vm.SetObserver(nullptr);
    REQUIRE_FALSE(status.has_value());
    CHECK(status.code() == StatusCode::kCancelled);
    host.CheckUsable();
  };
  // In the last kernel.
  host.action = [&] {
    vm.Cancel();
    CHECK(KernelApi()->cancelled() == 1);
  };
  cancelled();
  // Before the last instruction, and by the allocator that the end of the run asks.
  ActingObserver observer;
  observer.instructions = true;
  int instructions = 0;
  observer.action = [&] {
    if (++instructions == 4) vm.Cancel();
  };
  vm.SetObserver(&observer);
  cancelled();
  static float memory[16];
  vm.SetOutput(0, OutputAllocator{&vm, [](void* context, std::uint64_t, std::uint64_t) -> void* {
                                    static_cast<VirtualMachine*>(context)->Cancel();
                                    return memory;
                                  }});
  cancelled();
  // A run of another VM inside of the kernel is another run.
  VirtualMachine other(host.program());
  const Value x = Floats({1, 2});
  bool inside = false;
  host.action = [&] {
    if (std::exchange(inside, true)) return;
    vm.Cancel();
    CHECK(other.TryInvoke("main", {&x, 1}).has_value());
  };
  cancelled();
}

TEST_CASE("a deadline that passes in the last kernel leaves no result") {
  Host host;
  host.CheckUsable();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  host.vm().SetDeadline(deadline);
  host.action = [&] {
    while (std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  };
  const Status status = host.vm().TryInvoke();
  REQUIRE_FALSE(status.has_value());
  CHECK(status.code() == StatusCode::kDeadlineExceeded);
  CHECK(host.vm().result().kind() == ValueKind::kNone);
  host.vm().SetDeadline(std::chrono::steady_clock::time_point::max());
  host.CheckUsable();
}

}  // namespace
}  // namespace rewire::test
