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
#include <utility>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"

namespace rewire::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr char kText[] = R"(
  .kernel dec = "host.dec"
  .kernel wait = "host.wait"
  .kernel wait_all = "host.wait_all"
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
  .func all_wait() -> value
    %r = invoke_packed wait_all(), outputs=0
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
  // The same on every thread: bodies ask by themselves, and the call ends when all have been told.
  PackedFunction wait_all;
  wait_all.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    waiting = true;
    KernelApi()->parallel_for(
        0, 8, 1,
        [](void*, std::int64_t, std::int64_t) {
          while (KernelApi()->cancelled() == 0) std::this_thread::yield();
        },
        nullptr);
    waiting = false;
    return -1;
  };
  options.kernels.AddFunction("host.wait_all", wait_all);
  options.threads = ThreadPool::Make(2);
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

// Lets the deadline of a run pass at one of its instructions, and counts those that are executed after it.
class Overrun : public Observer {
 public:
  explicit Overrun(Clock::time_point deadline) : deadline_(deadline) {}
  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction&) override {
    if (++seen_ <= 10'000) return;
    while (Clock::now() < deadline_) std::this_thread::yield();
    ++after_;
  }
  int after() const { return after_; }

 private:
  Clock::time_point deadline_;
  int seen_ = 0;
  int after_ = 0;
};

TEST_CASE("a loop ends some thousand instructions after its deadline, or at its next kernel call") {
  VirtualMachine vm(LimitsProgram());
  const Value n(0);
  for (const bool calls : {false, true}) {
    CAPTURE(calls);
    // Far enough that the loop gets there first.
    const Clock::time_point deadline = Clock::now() + milliseconds(200);
    Overrun overrun(deadline);
    vm.SetObserver(&overrun);
    vm.SetDeadline(deadline);
    const StatusCode code =
        calls ? CodeOf(vm.TryInvoke("calls_forever", {&n, 1})) : CodeOf(vm.TryInvoke("forever"));
    CHECK(code == StatusCode::kDeadlineExceeded);
    CHECK(overrun.after() >= 1);
    CHECK(overrun.after() <= (calls ? 2 : 4096));
    vm.SetObserver(nullptr);
    // One that has passed already ends the run at once.
    CHECK(CodeOf(vm.TryInvoke("forever")) == StatusCode::kDeadlineExceeded);
    vm.SetDeadline(Clock::time_point::max());
    CheckUsable(vm);
  }
}

// One instruction may be as long as the file and the memory allow, and a loop's thousands are. No observer:
// with one, every instruction asks.
TEST_CASE("a list or a frame of hundreds of registers, and a copy, ask for the deadline themselves") {
  std::string inputs = "a0: integer", list = "%n";
  for (int i = 1; i < 300; ++i) {
    inputs += Format(", a{}: integer", i);
    list += ", %n";
  }
  const std::string begin = "(n: integer) -> value\n%m = invoke_packed pass(%n), outputs=0\n%x = ";
  std::string text =
      Format(".kernel pass = \"host.pass\"\n.func many({}) -> integer\nret %a0\n.end\n", inputs);
  for (const auto& [name, instruction] :
       {std::pair(std::string("adt"), "alloc_adt tag=0 (" + list + ")"),
        std::pair(std::string("closure"), "alloc_closure many(" + list + ")"),
        std::pair(std::string("calls"), "invoke many(" + list + ")"),
        std::pair(std::string("copies"), std::string("device_copy %n, cpu, cpu")),
        std::pair(std::string("none"), std::string("alloc_adt tag=0 (%n)"))}) {
    text +=
        ".func " + name + begin + instruction + "\n%l = invoke_packed pass(%n), outputs=0\nret %x\n.end\n";
  }
  LinkOptions options;
  Clock::time_point deadline;
  PackedFunction pass;  // the deadline
  pass.handle = &deadline;
  pass.call = [](void* self, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
    while (Clock::now() <= *static_cast<const Clock::time_point*>(self)) std::this_thread::yield();
    *result = {};
    result->type_index = kRewireFFIInt;
    return 0;
  };
  options.kernels.AddFunction("host.pass", pass);
  VirtualMachine vm(ProgramOf(text, std::move(options)));
  const Value n(0);
  for (const char* function : {"adt", "closure", "calls", "copies", "none"}) {
    CAPTURE(function);
    deadline = Clock::now() + milliseconds(200);
    vm.SetDeadline(deadline);
    const Result<Value> run = vm.TryInvoke(function, {&n, 1});
    REQUIRE(!run);
    CHECK(run.error().code() == StatusCode::kDeadlineExceeded);
    INFO(run.error().message().substr(0, 200));
    // One that does not ask goes on to the kernel behind it, which does.
    CHECK((run.error().message().find("invoke_packed") == std::string::npos) ==
          (function != std::string("none")));
    vm.SetDeadline(Clock::time_point::max());
  }
}

TEST_CASE("a kernel that watches the deadline ends with the deadline's code") {
  VirtualMachine vm(LimitsProgram());
  for (const char* function : {"waits", "all_wait"}) {
    vm.SetDeadline(Clock::now() + milliseconds(5));
    CHECK(CodeOf(vm.TryInvoke(function)) == StatusCode::kDeadlineExceeded);
  }
  vm.SetDeadline(Clock::time_point::max());
  CheckUsable(vm);
}

TEST_CASE("another thread cancels a loop and a kernel; the next run is not cancelled") {
  VirtualMachine vm(LimitsProgram());
  for (const char* function : {"forever", "waits", "all_wait"}) {
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

TEST_CASE("whether a run is within the byte limit does not depend on what ran before") {
  const Program program = LimitsProgram();
  // Runs that need memory of every kind: blocks of several classes, the stack, objects.
  const std::vector<std::pair<const char*, std::int64_t>> runs = {
      {"storage", 300}, {"storage", 5'000}, {"storage", 100'000}, {"down", 20}, {"down", 900}, {"list", 200}};
  const auto outcome = [](VirtualMachine* vm, const std::pair<const char*, std::int64_t>& run) {
    const Value n(run.second);
    const StatusCode code = CodeOf(vm->TryInvoke(run.first, {&n, 1}));
    vm->DropResult();
    return code;
  };
  int refused = 0;
  int served = 0;
  for (std::uint64_t bytes = 2'000; bytes < 400'000; bytes += bytes / 16) {
    Limits limits;
    limits.bytes = bytes;
    // A VM for everything, unlimited at first, beside a new one for each run.
    VirtualMachine used(program);
    for (const auto& run : runs) (void)outcome(&used, run);
    used.SetLimits(limits);
    for (int round = 0; round < 2; ++round) {
      for (const auto& run : runs) {
        CAPTURE(bytes, run.first, run.second, round);
        VirtualMachine fresh(program, limits);
        const StatusCode expected = outcome(&fresh, run);
        CHECK(outcome(&used, run) == expected);
        (expected == StatusCode::kOk ? served : refused) += 1;
      }
    }
  }
  CHECK(refused > 50);
  CHECK(served > 50);
  // Nor does it for the VMs behind a Program.
  Limits limits;
  limits.bytes = 120'000;
  const Value large(100'000);
  const Value deep(900);
  for (int round = 0; round < 3; ++round) {
    CHECK(CodeOf(program.TryRun("storage", {&large, 1}, limits)) == StatusCode::kOk);
    CHECK(CodeOf(program.TryRun("down", {&deep, 1}, limits)) == StatusCode::kOk);
  }
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

TEST_CASE("the VM's own last result counts until it is dropped or the next run has ended") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(LimitsProgram(), limits);
  const Value n(600'000);
  REQUIRE(MessageOf(vm.TryInvoke("storage", {&n, 1})).empty());
  CHECK(CodeOf(vm.TryInvoke("storage", {&n, 1})) == StatusCode::kMemoryLimit);
  // The other run has ended without a result.
  REQUIRE(MessageOf(vm.TryInvoke("storage", {&n, 1})).empty());
  vm.DropResult();
  CHECK(MessageOf(vm.TryInvoke("storage", {&n, 1})).empty());
}

TEST_CASE("memory that is free for other sizes is given back before the limit refuses") {
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(LimitsProgram(), limits);
  // Any one of them fits, and the VM keeps what a call gives back for the next ones.
  for (const std::int64_t bytes : {600'000, 700'000, 800'000, 600'000}) {
    CAPTURE(bytes);
    const Value n(bytes);
    CHECK(MessageOf(vm.TryInvoke("storage", {&n, 1})).empty());
    CheckUsable(vm);
  }
}

TEST_CASE("each TryRun has its own limits, whatever the pooled VM was last used with") {
  const Program program = LimitsProgram();
  const Value n(10);
  Limits tight;
  tight.depth = 5;
  CHECK(MessageOf(program.TryRun("down", {&n, 1})).empty());
  CHECK(CodeOf(program.TryRun("down", {&n, 1}, tight)) == StatusCode::kDepthLimit);
  CHECK(MessageOf(program.TryRun("down", {&n, 1})).empty());
  const Span<const OutputBinding> none;
  CHECK(CodeOf(program.TryRun("down", {&n, 1}, none, tight)) == StatusCode::kDepthLimit);
  CHECK(MessageOf(program.TryRun("down", {&n, 1}, none)).empty());
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
