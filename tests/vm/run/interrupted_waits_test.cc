// SPDX-License-Identifier: Apache-2.0
// A run that is cancelled, or whose deadline passes, while it waits for its device ends so.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

using Clock = std::chrono::steady_clock;

enum class How { kPlain, kAsync, kRecorded, kAutomatic, kRecordedAsync };

// One program on a device, run in one of these ways.
struct Chain {
  explicit Chain(How run_how) : how(run_how), vm(ProgramOf(kChain, WithKernels(device))) {
    device.put_off = true;
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetOutput(0, TensorView(h, {3}));
    if (how != How::kRecorded && how != How::kRecordedAsync) vm.SetOutput(1, TensorView(g, {3}));
    if (how == How::kRecorded || how == How::kRecordedAsync) vm.Record();
    if (how == How::kAutomatic) {
      vm.SetAutomaticRecording(true);
      for (int i = 0; i < 4; ++i) vm.Invoke();
    }
  }
  Status Run() {
    if (how != How::kAsync && how != How::kRecordedAsync) return vm.TryInvoke();
    const Status started = vm.TryInvokeAsync();
    return started ? vm.TryWait() : started;
  }
  bool replays() const { return how != How::kPlain && how != How::kAsync; }

  const How how;
  FakeDevice device;
  VirtualMachine vm;
  float x[3] = {1, 2, 3};
  float h[3] = {};
  float g[3] = {};
};

TEST_CASE("a run that is cancelled, or late, while it waits for its device has no result") {
  for (const How how : {How::kPlain, How::kAsync, How::kRecorded, How::kAutomatic, How::kRecordedAsync}) {
    INFO("way " << static_cast<int>(how));
    Chain chain(how);
    VirtualMachine& vm = chain.vm;
    const int replays = chain.device.replays;
    CHECK(MessageOf(chain.Run()) == "");
    if (chain.replays()) CHECK(chain.device.replays == replays + 1);

    chain.device.at_wait = [&vm] { vm.Cancel(); };
    const Status cancelled = chain.Run();
    CHECK(cancelled.code() == StatusCode::kCancelled);
    CHECK(MessageOf(cancelled) == "the run was cancelled");
    CHECK(vm.result().kind() == ValueKind::kNone);
    CHECK(chain.device.Pending() == 0);

    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(50);
    vm.SetDeadline(deadline);
    chain.device.at_wait = [deadline] { std::this_thread::sleep_until(deadline); };
    CHECK(chain.Run().code() == StatusCode::kDeadlineExceeded);
    CHECK(vm.result().kind() == ValueKind::kNone);
    CHECK(chain.device.Pending() == 0);

    chain.device.at_wait = nullptr;
    vm.SetDeadline(Clock::time_point::max());
    chain.x[0] = 5;
    CHECK(MessageOf(chain.Run()) == "");
    CHECK(chain.h[0] == 7);
    CHECK(FloatsOf(vm.result().field(1).tensor())[0] == 8);
    // An interruption does not end a recording.
    if (chain.replays()) CHECK(chain.device.replays >= replays + 3);
    CHECK(vm.recorded() == chain.replays());
    CHECK(chain.device.misuse.empty());
  }
}

TEST_CASE("after a failed replay its result has gone, and the next run is an ordinary one") {
  Chain chain(How::kRecorded);
  CHECK(MessageOf(chain.Run()) == "");
  SECTION("the driver refuses") {
    chain.device.FailCall(FakeDevice::kReplays, 1);
    CHECK(MessageOf(chain.Run()) ==
          "replaying the recorded run: device fake:0: the driver refuses to replay");
  }
  SECTION("the work fails") {
    chain.device.FailWork(FakeDevice::kKernels, 2);
    CHECK_THAT(MessageOf(chain.Run()), Catch::StartsWith("device fake:0: the work went wrong; main@"));
  }
  CHECK(chain.vm.result().kind() == ValueKind::kNone);
  CHECK(!chain.vm.recorded());
  CHECK(chain.device.recordings.empty());
  CHECK(MessageOf(chain.Run()) == "");
  CHECK(chain.h[0] == 3);
  CHECK(FloatsOf(chain.vm.result().field(1).tensor())[0] == 4);
  CHECK(chain.device.misuse.empty());
}

TEST_CASE("automatic recording that has failed, for whatever reason, is not tried again") {
  Chain chain(How::kPlain);
  int tries = 0;
  static int* counted = nullptr;
  counted = &tries;
  static decltype(chain.device.api.begin_recording) begin = nullptr;
  begin = chain.device.api.begin_recording;
  chain.device.api.begin_recording = [](void* context, DLDevice device, void* stream) {
    ++*counted;
    return begin(context, device, stream);
  };
  SECTION("its begin fails") { chain.device.FailCall(FakeDevice::kRecords, 1); }
  SECTION("its end fails") { chain.device.FailCall(FakeDevice::kRecords, 2); }
  SECTION("a launch fails") { chain.device.FailCall(FakeDevice::kKernels, 2 * 3 + 1); }
  chain.vm.SetAutomaticRecording(true);
  for (int i = 0; i < 30; ++i) {
    chain.x[0] = static_cast<float>(i);
    CHECK(MessageOf(chain.Run()) == "");
    CHECK(chain.h[0] == chain.x[0] + 2);
  }
  CHECK(tries == 1);
  chain.vm.SetAutomaticRecording(true);  // asks for it anew
  for (int i = 0; i < 4; ++i) CHECK(MessageOf(chain.Run()) == "");
  CHECK(tries == 2);
  CHECK(chain.device.replays > 0);
}

}  // namespace
}  // namespace rewire::test
