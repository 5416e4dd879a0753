// SPDX-License-Identifier: Apache-2.0
// What code of the host's may do while a VM calls it: kernels, observers, allocators of outputs, deleters.
// The rules stand at the top of vm/virtual_machine.h.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/run/kernel_api.h"
#include "rewire/vm/value/objects.h"

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
  // That the VM serves as before.
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

struct ActingObserver : Observer {
  bool instructions = false;
  bool kernels = false;
  std::function<void()> action;
  bool wants_instructions() const override { return instructions; }
  bool wants_kernels() const override { return kernels; }
  void OnInstruction(const Instruction&) override { action(); }
  void OnKernel(const KernelCall&) override { action(); }
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
  // What a kernel keeps in its slot goes with Trim.
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
  static VirtualMachine* running = nullptr;
  static float memory[16];
  running = &vm;
  vm.SetOutput(0, OutputAllocator{nullptr, [](void*, std::uint64_t, std::uint64_t) -> void* {
                                    running->Cancel();
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

// What a kernel keeps from one VM and gives to others.
std::atomic<Object*> kept{nullptr};
std::mutex keeping;

Program KeepingProgram(std::int32_t kind) {
  LinkOptions options;
  options.kernels.AddFunction(
      "host.get", MakePackedFunction([kind](const RewireFFIAny&, RewireFFIAny* result) -> kernel::Status {
        const std::lock_guard<std::mutex> lock(keeping);
        if (kept == nullptr) {
          const std::int64_t shape[1] = {4};
          const int failed = kind == kTensorKind ? KernelApi()->new_tensor(kFloat32, 1, shape, kHost, result)
                                                 : KernelApi()->new_adt(3, 0, nullptr, result);
          if (failed != 0) return kernel::RuntimeError("no object");
          kept = ObjectOf(*result);
        } else {
          *result = MakeAny(kind, kept.load());
        }
        kept.load()->AddStrong();
        return kernel::Status();
      }));
  return ProgramOf(R"(
.kernel get = "host.get"
.func main(n: i64[]) -> value
  %i = load_consti 0
  %one = load_consti 1
  %t = invoke_packed get(%n), outputs=0
loop:
  %a = move %t
  %b = move %t
  kill %a
  kill %b
  if %i == %one goto done else loop
done:
  ret %n
.end
.func once(n: i64[]) -> value
  %t = invoke_packed get(%n), outputs=0
  ret %t
.end
)",
                   std::move(options));
}

TEST_CASE("a tensor that a kernel keeps may be returned in any VM, on any thread") {
  const Program program = KeepingProgram(kTensorKind);
  Limits limits;
  limits.steps = 100000;
  const std::int64_t n = 0;
  const auto body = [&] {
    VirtualMachine vm(program, limits);
    vm.SetInput(0, TensorView(&n, {}));
    for (int i = 0; i < 4; ++i) (void)vm.TryInvoke();
  };
  std::thread first(body);
  std::thread second(body);
  first.join();
  second.join();
  // Only the kernel's reference is left, and nobody counts the object locally any more.
  Object* object = kept.exchange(nullptr);
  CHECK(object->strong() == 1);
  CHECK(object->local == kShared);
  DropStrong(object);
}

TEST_CASE("an ADT that belongs to another VM is refused, and taken when it has left that VM") {
  const Program program = KeepingProgram(kAdtKind);
  VirtualMachine one(program);
  VirtualMachine two(program);
  const std::int64_t n = 0;
  one.SetInput(InputHandle{1, 0}, TensorView(&n, {}));
  two.SetInput(InputHandle{1, 0}, TensorView(&n, {}));
  std::string message;
  {
    // While it runs, the first VM's ADT is its own.
    ActingObserver observer;
    observer.kernels = true;
    observer.action = [&] { message = MessageOf(two.TryInvoke("once")); };
    one.SetObserver(&observer);
    REQUIRE(MessageOf(one.TryInvoke("once")).empty());
    one.SetObserver(nullptr);
  }
  CHECK(message.find("the kernel returned an ADT that belongs to another VM") != std::string::npos);
  REQUIRE(MessageOf(two.TryInvoke("once")).empty());
  CHECK(two.result().tag() == 3);
  DropStrong(kept.exchange(nullptr));
}

// Two threads, each with a VM, that take the same ADT from a kernel all the time. One VM makes it and counts
// it, the other may have it once it has left the first.
TEST_CASE("an ADT that a kernel keeps passes between VMs on threads with all that it holds") {
  LinkOptions options;
  std::atomic<int> taken{0};
  options.kernels.AddFunction(
      "host.get", MakePackedFunction([&taken](const RewireFFIAny&, RewireFFIAny* result) -> kernel::Status {
        const std::lock_guard<std::mutex> lock(keeping);
        if (kept == nullptr || ++taken % 8 == 0) {
          const std::int64_t shape[1] = {4};
          // Many fields, so that making them all shared takes a while.
          std::array<RewireFFIAny, 64> fields;
          int failed = 0;
          for (RewireFFIAny& field : fields) {
            failed |= KernelApi()->new_tensor(kFloat32, 1, shape, kHost, &field);
          }
          RewireFFIAny inner;
          failed |= KernelApi()->new_adt(1, 64, fields.data(), &inner);
          failed |= KernelApi()->new_adt(2, 1, &inner, result);
          if (failed != 0) return kernel::RuntimeError("no object");
          for (const RewireFFIAny& field : fields) DropStrong(ObjectOf(field));
          DropStrong(ObjectOf(inner));
          if (Object* old = kept.exchange(ObjectOf(*result)); old != nullptr) DropStrong(old);
        } else {
          *result = MakeAny(kAdtKind, kept.load());
        }
        kept.load()->AddStrong();
        return kernel::Status();
      }));
  const Program program = ProgramOf(R"(
.kernel get = "host.get"
.func main(n: i64[]) -> value
  %a = invoke_packed get(%n), outputs=0
  %b = get_field %a, index=0
  kill %a
  %c = get_field %b, index=63
  kill %b
  %d = move %c
  kill %c
  ret %d
.end
)",
                                    std::move(options));
  const std::int64_t n = 0;
  std::atomic<int> returned{0};
  std::atomic<int> others{0};
  const auto body = [&] {
    VirtualMachine vm(program);
    vm.SetInput(0, TensorView(&n, {}));
    for (int i = 0; i < 4000; ++i) {
      const std::string message = MessageOf(vm.TryInvoke());
      if (message.empty()) {
        ++returned;
      } else if (message.find("an ADT that belongs to another VM") == std::string::npos) {
        ++others;
      }
    }
  };
  std::thread first(body);
  std::thread second(body);
  first.join();
  second.join();
  CHECK(others == 0);
  CHECK(returned > 0);
  Object* object = kept.exchange(nullptr);
  CHECK(object->strong() == 1);
  CHECK(object->local == kShared);
  DropStrong(object);
}

}  // namespace
}  // namespace rewire::test
