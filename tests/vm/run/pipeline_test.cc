// SPDX-License-Identifier: Apache-2.0
// Several calls under way, on a device that does nothing before somebody waits.
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/pipeline.h"

namespace rewire::test {
namespace {

TEST_CASE("calls in a pipeline are under way together, and their results come in order") {
  FakeDevice device;
  device.put_off = true;
  {
    Pipeline pipeline = *Pipeline::TryMake(ProgramOf(kChain, WithKernels(device)), 3);
    CHECK(pipeline.depth() == 3);
    float out[10][3] = {};
    int popped = 0;
    const auto pop = [&] {
      const Result<Value> result = pipeline.TryPop();
      REQUIRE(result);
      CHECK(result->field(0).tensor().view().data() == nullptr);  // the caller has it
      CHECK(FloatsOf(result->field(1).tensor())[0] == static_cast<float>(popped) + 3);
      CHECK(out[popped][0] == static_cast<float>(popped) + 2);
      ++popped;
    };
    for (int i = 0; i < 10; ++i) {
      if (pipeline.size() == pipeline.depth()) {
        CHECK(device.waits == popped);  // pushing has not waited
        pop();
      }
      const Value x = Floats({static_cast<float>(i), 2, 3});
      const OutputBinding binding{OutputRef(OutputHandle{0, 0}), TensorView(out[i], {3})};
      REQUIRE(MessageOf(pipeline.TryPush({&x, 1}, {&binding, 1})).empty());
    }
    pipeline.Close();
    CHECK(MessageOf(pipeline.TryPush({})) == "the pipeline is closed");
    while (popped < 10) pop();
    CHECK(MessageOf(pipeline.TryPop()) == "the pipeline is closed, and no call is left in it");
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
}

TEST_CASE(
    "copies to memory that is not pinned land there when their call is popped, and not after a failure") {
  FakeDevice device;
  device.PinHostMemory();
  device.put_off = true;
  {
    // The second output is the program's own memory.
    Pipeline pipeline = *Pipeline::TryMake(ProgramOf(R"(
      .device fake = ext_dev:0
      .kernel test.add_one
      .func main(x: f32[300]) -> (f32[300], f32[300])
        %d = device_copy %x, cpu, fake
        %s = alloc_storage _, alignment=64, f32[300], fake
        %a = alloc_tensor %s, _, f32[300]
        invoke_packed test.add_one(%d, %a), outputs=1
        %h = device_copy %a, fake, cpu
        %g = device_copy %d, fake, cpu
        %r = alloc_adt tag=0 (%h, %g)
        ret %r
      .end)",
                                                     WithKernels(device)),
                                           3);
    std::vector<std::vector<float>> outs(9, std::vector<float>(300, -1.0f));
    std::size_t popped = 0;
    const auto pop = [&] {
      device.breaks_late = popped == 4;
      const Result<Value> result = pipeline.TryPop();
      device.breaks_late = false;
      const std::vector<float>& out = outs[popped];
      if (popped == 4) {
        CHECK(MessageOf(result).find("the work went wrong") != std::string::npos);
        CHECK(out == std::vector<float>(300, -1.0f));  // what was not copied is not moved either
      } else {
        REQUIRE(MessageOf(result).empty());
        CHECK(out == std::vector<float>(300, static_cast<float>(popped) + 1));
        CHECK(FloatsOf(result->field(1).tensor()) == std::vector<float>(300, static_cast<float>(popped)));
      }
      ++popped;
    };
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (pipeline.size() == pipeline.depth()) pop();
      const int waits = device.waits;
      const Value x = Floats(std::vector<float>(300, static_cast<float>(i)));
      const OutputBinding binding{OutputRef(OutputHandle{0, 0}), TensorView(outs[i].data(), {300})};
      REQUIRE(MessageOf(pipeline.TryPush({&x, 1}, {&binding, 1})).empty());
      CHECK(device.waits == waits);
      CHECK(outs[i] == std::vector<float>(300, -1.0f));
    }
    while (popped < outs.size()) pop();
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
  CHECK(device.host_blocks.empty());
}

TEST_CASE("a call that fails does not disturb its neighbors") {
  FakeDevice device;
  device.put_off = true;
  Pipeline pipeline = *Pipeline::TryMake(ProgramOf(kChain, WithKernels(device)), 2);
  const Value x = Floats({1, 2, 3});
  const Value wrong = Floats({1, 2, 3, 4});
  CHECK(MessageOf(pipeline.TryPush({&wrong, 1})).find("f32[3] expected") != std::string::npos);
  CHECK(MessageOf(pipeline.TryPush({})) == "function main takes 1 inputs, 0 given");
  CHECK(pipeline.size() == 0);
  REQUIRE(MessageOf(pipeline.TryPush({&x, 1})).empty());
  REQUIRE(MessageOf(pipeline.TryPush({&x, 1})).empty());
  device.breaks_late = true;
  CHECK(MessageOf(pipeline.TryPop()).find("the work went wrong") != std::string::npos);
  device.breaks_late = false;
  CHECK(FloatsOf(pipeline.TryPop()->field(0).tensor()) == std::vector<float>{3, 4, 5});
  REQUIRE(MessageOf(pipeline.TryPush({&x, 1})).empty());
  CHECK(FloatsOf(pipeline.TryPop()->field(0).tensor()) == std::vector<float>{3, 4, 5});
  CHECK(device.misuse.empty());
}

TEST_CASE("a pipeline's depth and function are checked") {
  FakeDevice device;
  const Program program = ProgramOf(kChain, WithKernels(device));
  CHECK(MessageOf(Pipeline::TryMake(program, 0)) == "a pipeline of depth 0; 1 to 64 expected");
  CHECK(MessageOf(Pipeline::TryMake(program, 65)) == "a pipeline of depth 65; 1 to 64 expected");
  CHECK(Pipeline::TryMake(program, 64));
  CHECK(Pipeline::TryMake(program, 1, "mian").error().code() == StatusCode::kNotFound);
}

TEST_CASE("one thread pushes and another pops; pushing waits for room, popping for a call") {
  const Program program = ProgramOf(R"(
    .func main(x: f32[3]) -> f32[3]
      ret %x
    .end)");
  Pipeline pipeline = *Pipeline::TryMake(program, 2);
  std::thread pusher([&] {
    for (int i = 0; i < 1000; ++i) {
      const Value x = Floats({static_cast<float>(i), 0, 0});
      if (!pipeline.TryPush({&x, 1})) return;
    }
    pipeline.Close();
  });
  int count = 0;
  for (Result<Value> result = pipeline.TryPop(); result; result = pipeline.TryPop()) {
    if (FloatsOf(result->tensor())[0] != static_cast<float>(count)) break;
    ++count;
  }
  pusher.join();
  CHECK(count == 1000);
}

}  // namespace
}  // namespace rewire::test
