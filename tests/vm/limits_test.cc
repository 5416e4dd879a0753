// SPDX-License-Identifier: Apache-2.0
// Limits on depth, steps and bytes, deadlines and cancellation: each ends a run with its own code, and the VM
// is usable afterwards.
#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include "tests/vm/test_program.h"
#include "vm/host_function.h"
#include "vm/kernel_api.h"

namespace rewire::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr char kText[] = R"(
  .kernel dec = "host.dec"
  .kernel wait = "host.wait"
  .func main() -> integer
    %one = load_consti 1
    ret %one
  .end
  .func down(n: integer) -> integer
    %zero = load_consti 0
    if %n == %zero goto end else more
  end:
    ret %n
  more:
    %m = invoke_packed dec(%n), outputs=0
    %r = invoke down(%m)
    ret %r
  .end
  .func forever() -> value
  again:
    goto again
  .end
  .func calls_forever(n: integer) -> value
  again:
    %m = invoke_packed dec(%n), outputs=0
    goto again
  .end
  .func waits() -> value
    %r = invoke_packed wait(), outputs=0
    ret %r
  .end
  .func storage(n: integer) -> value
    %s = alloc_storage %n, alignment=64, u8, cpu
    %t = alloc_tensor_reg %s, _, %n, u8
    ret %t
  .end
  .func list(n: integer) -> value
    %zero = load_consti 0
    %list = alloc_adt tag=0 ()
  again:
    if %n == %zero goto done else more
  more:
    %list = alloc_adt tag=1 (%n, %list)
    %n = invoke_packed dec(%n), outputs=0
    goto again
  done:
    ret %list
  .end)";

std::atomic<bool> waiting{false};

Program LimitsProgram() {
  LinkOptions options;
  PackedFunction dec;
  dec.call = [](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny* result) {
    *result = {};
    result->type_index = kRewireFFIInt;
    result->v_int64 = *static_cast<const std::int64_t*>(RewireTensorOf(args)->data) - 1;
    return 0;
  };
  options.kernels.AddFunction("host.dec", dec);
  // A long kernel that asks whether to go on.
  PackedFunction wait;
  wait.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    waiting = true;
    while (KernelApi()->cancelled() == 0) std::this_thread::yield();
    waiting = false;
    return -1;
  };
  options.kernels.AddFunction("host.wait", wait);
  return ProgramOf(kText, std::move(options));
}

StatusCode CodeOf(const Status& status) { return status ? StatusCode::kOk : status.error().code(); }
template <typename T>
StatusCode CodeOf(const Result<T>& result) {
  return result ? StatusCode::kOk : result.error().code();
}

void CheckUsable(VirtualMachine& vm) {
  REQUIRE(MessageOf(vm.TryInvoke("main")).empty());
  CHECK(vm.result().integer() == 1);
}

TEST_CASE("recursion beyond the depth limit ends, recursion below it does not") {
  Limits limits;
  limits.depth = 100'000;
  VirtualMachine vm(LimitsProgram(), limits);
  const Value below(99'999);
  const Value above(100'000);
  CHECK(MessageOf(vm.TryInvoke("down", {&below, 1})).empty());
  const Result<Value> failed = vm.TryInvoke("down", {&above, 1});
  CHECK(CodeOf(failed) == StatusCode::kDepthLimit);
  CHECK(MessageOf(failed) ==
        "down@17 (%3 = invoke down(%2)): the limit of 100000 active calls is reached; raise Limits::depth if "
        "the program needs more");
  CheckUsable(vm);
}

TEST_CASE("an endless loop ends at the step limit, which is exact") {
  Limits limits;
  limits.steps = 1'000'000;
  VirtualMachine vm(LimitsProgram(), limits);
  const Status failed = vm.TryInvoke("forever");
  CHECK(CodeOf(failed) == StatusCode::kStepLimit);
  CHECK(MessageOf(failed) ==
        "forever@0 (goto L0): the limit of 1000000 instructions is used up; raise Limits::steps if the "
        "program needs more");
  CheckUsable(vm);
  limits.steps = 2;  // main's two instructions
  vm.SetLimits(limits);
  CheckUsable(vm);
  limits.steps = 1;
  vm.SetLimits(limits);
  CHECK(CodeOf(vm.TryInvoke("main")) == StatusCode::kStepLimit);
}

TEST_CASE("an endless loop ends at its deadline") {
  VirtualMachine vm(LimitsProgram());
  const Value n(0);
  vm.SetDeadline(Clock::now() + milliseconds(20));
  CHECK(CodeOf(vm.TryInvoke("forever")) == StatusCode::kDeadlineExceeded);
  CHECK(Clock::now() - milliseconds(20) < Clock::now());
  CHECK(CodeOf(vm.TryInvoke("calls_forever", {&n, 1})) == StatusCode::kDeadlineExceeded);
  vm.SetDeadline(Clock::time_point::max());
  CheckUsable(vm);
}

TEST_CASE("a kernel that watches the deadline ends with the deadline's code") {
  VirtualMachine vm(LimitsProgram());
  vm.SetDeadline(Clock::now() + milliseconds(5));
  CHECK(CodeOf(vm.TryInvoke("waits")) == StatusCode::kDeadlineExceeded);
  vm.SetDeadline(Clock::time_point::max());
  CheckUsable(vm);
}

TEST_CASE("another thread cancels a loop and a kernel; the next run is not cancelled") {
  VirtualMachine vm(LimitsProgram());
  for (const char* function : {"forever", "waits"}) {
    CAPTURE(function);
    std::atomic<bool> started{false};
    std::thread canceller([&] {
      while (!started) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(5));
      vm.Cancel();
    });
    started = true;
    const Status status = vm.TryInvoke(function);
    canceller.join();
    CHECK(CodeOf(status) == StatusCode::kCancelled);
    CheckUsable(vm);
  }
}

TEST_CASE("a VM that runs refuses a second thread") {
  VirtualMachine vm(LimitsProgram());
  Status first;
  std::thread runner([&] { first = vm.TryInvoke("waits"); });
  while (!waiting) std::this_thread::yield();
  CHECK(CodeOf(vm.TryInvoke("main")) == StatusCode::kBusy);
  CHECK(CodeOf(vm.TrySetInput(InputHandle{1, 0}, Value(1))) == StatusCode::kBusy);
  vm.Cancel();
  runner.join();
  CHECK(CodeOf(first) == StatusCode::kCancelled);
  CheckUsable(vm);
}

TEST_CASE("an allocation over the byte limit ends with the memory limit") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(LimitsProgram(), limits);
  for (const std::int64_t bytes : {std::int64_t{2} << 20, std::int64_t{1} << 40, std::int64_t{1} << 62,
                                   std::numeric_limits<std::int64_t>::max(), std::int64_t{1} << 20}) {
    CAPTURE(bytes);
    const Value n(bytes);
    CHECK(CodeOf(vm.TryInvoke("storage", {&n, 1})) == StatusCode::kMemoryLimit);
    CheckUsable(vm);
  }
  const Value fits(1 << 19);
  CHECK(MessageOf(vm.TryInvoke("storage", {&fits, 1})).empty());
  CHECK(vm.bytes_peak() <= limits.bytes);

  // Many small objects count as well.
  const Value cells(1'000'000);
  CHECK(CodeOf(vm.TryInvoke("list", {&cells, 1})) == StatusCode::kMemoryLimit);
  CHECK(vm.bytes_peak() <= limits.bytes);
  CheckUsable(vm);
}

TEST_CASE("results that the host holds count against the limit until they are released") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(LimitsProgram(), limits);
  const Value n(400'000);
  Value first = *vm.TryInvoke("storage", {&n, 1});
  Value second = *vm.TryInvoke("storage", {&n, 1});
  CHECK(CodeOf(vm.TryInvoke("storage", {&n, 1})) == StatusCode::kMemoryLimit);
  first = Value();
  CHECK(MessageOf(vm.TryInvoke("storage", {&n, 1})).empty());
}

// Runs `body` on a thread whose stack has no room for deep recursion.
void OnSmallStack(void (*body)(void*), void* context) {
  struct Call {
    void (*body)(void*);
    void* context;
  } call{body, context};
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 256 << 10) == 0);
  pthread_t thread{};
  const auto start = [](void* argument) -> void* {
    auto* given = static_cast<Call*>(argument);
    given->body(given->context);
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, start, &call) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
}

TEST_CASE("a list of a million cells is built, returned and released on a small stack") {
  struct Run {
    std::string message;
    std::uint32_t tag = 0;
    std::int64_t head = 0;
  } run;
  OnSmallStack(
      [](void* context) {
        auto* self = static_cast<Run*>(context);
        VirtualMachine vm(LimitsProgram());
        const Value n(1'000'000);
        // Released by the host, by the next run, and by the VM's end.
        for (int i = 0; i < 3; ++i) {
          Result<Value> list = vm.TryInvoke("list", {&n, 1});
          self->message += MessageOf(list);
          if (!list) return;
          self->tag = list->tag();
          self->head = list->field(0).integer();
          if (i == 0) {
            vm.Trim();  // the host's reference is now the last
            *list = Value();
          }
        }
      },
      &run);
  CHECK(run.message.empty());
  CHECK(run.tag == 1);
  CHECK(run.head == 1);
}

TEST_CASE("a million cells made by the host go in and out on a small stack") {
  static std::string message;
  OnSmallStack(
      [](void*) {
        Value list = *Value::Adt(0, {});
        for (std::int64_t i = 0; i < 1'000'000; ++i) {
          const Value fields[] = {Value(i), list};
          list = *Value::Adt(1, {fields, 2});
        }
        VirtualMachine vm(ProgramOf(".func main(x: value) -> value\n ret %x\n.end"));
        message = MessageOf(vm.TryInvoke("main", {&list, 1}));
        list = Value();
      },
      nullptr);
  CHECK(message.empty());
}

}  // namespace
}  // namespace rewire::test
