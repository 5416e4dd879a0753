// SPDX-License-Identifier: Apache-2.0
// Objects that a kernel keeps and gives to other VMs, also on other threads.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/support/test_allocator.h"
#include "rewire/tests/vm/run/acting_observer.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/ffi_object.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

// The object that a kernel keeps from one VM and gives to others.
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
  CHECK(object->alone());
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
  CHECK(object->alone());
  CHECK(object->local == kShared);
  DropStrong(object);
}

// A weak reference as tvm-ffi counts it.
void AddWeak(Object* object) { __atomic_fetch_add(&object->combined_ref_count, kOneWeak, __ATOMIC_RELAXED); }
void DropWeak(Object* object) {
  if (DropWeakCount(reinterpret_cast<RewireFFIObject*>(object))) object->deleter(object, kRewireFFIWeakGone);
}

TEST_CASE("the memory of an object stays while a weak reference names it") {
  std::vector<Object*> named;
  const auto name = [&named](const RewireFFIAny& value) {
    AddWeak(ObjectOf(value));
    named.push_back(ObjectOf(value));
  };
  LinkOptions options;
  TestAllocator allocator;
  options.allocator = allocator.allocator();
  options.kernels.AddFunction("host.name", MakePackedFunction([name](const RewireFFIAny& x) { name(x); }));
  options.kernels.AddFunction(
      "host.adt", MakePackedFunction([name](const RewireFFIAny& x, RewireFFIAny* result) -> kernel::Status {
        if (KernelApi()->new_adt(3, 1, &x, result) != 0) return kernel::RuntimeError("no object");
        name(*result);
        return kernel::Status();
      }));
  const Program program = ProgramOf(R"(
    .kernel name = "host.name"
    .kernel adt = "host.adt"
    .func main(x: f32[3]) -> f32[3]
      invoke_packed name(%x), outputs=0
      %s = alloc_storage _, alignment=64, f32[3], cpu
      %a = alloc_tensor %s, _, f32[3]
      invoke_packed name(%a), outputs=1
      %t = invoke_packed adt(%a), outputs=0
      kill %t
      kill %a
      %b = alloc_tensor %s, _, f32[3]
      invoke_packed name(%b), outputs=1
      kill %s
      ret %b
    .end)",
                                    std::move(options));
  for (const bool bound : {false, true}) {
    const std::int64_t before = allocator.blocks();
    VirtualMachine vm(program);
    float x[3] = {1, 2, 3};
    float y[3] = {};
    if (bound) vm.SetOutput(0, TensorView(y, {3}));
    for (int i = 0; i < 3; ++i) {
      vm.SetInput("x", TensorView(x, {3}));  // the object of the last input is named
      vm.Invoke();
    }
    CHECK(named.size() == 3 * 4);
    CHECK(std::set<Object*>(named.begin(), named.end()).size() == named.size());  // none took another's place
    REQUIRE(vm.TryClearInputs());
    vm.DropResult();
    for (Object* object : named) {
      CHECK(__atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == kOneWeak);  // they are all dead
      DropWeak(object);
    }
    named.clear();
    vm.SetInput("x", TensorView(x, {3}));
    vm.Invoke();
    for (Object* object : named) DropWeak(object);  // some before their last strong reference is gone
    named.clear();
    vm = VirtualMachine(program);
    CHECK(allocator.blocks() == before);
  }
}

}  // namespace
}  // namespace rewire::test
