// SPDX-License-Identifier: Apache-2.0
// The host's part in runs that are recorded: a replay gives what the run would give again, or there is none.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// test.plus adds 1 to an integer. test.count, which its row calls impure, counts its calls. test.unknown is
// test.plus without a row.
std::int64_t counted = 0;
const RewirePackedFunction kPlus = [](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  *static_cast<std::int64_t*>(RewireTensorOf(&args[1])->data) =
      *static_cast<const std::int64_t*>(RewireTensorOf(&args[0])->data) + 1;
  return 0;
};
const RewirePackedFunction kCount = [](void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  *static_cast<std::int64_t*>(RewireTensorOf(&args[1])->data) = ++counted;
  return 0;
};
constexpr RewireKernelArgument kArguments[] = {{"x", REWIRE_DTYPE_I64, 0, 1, 0, 0},
                                               {"out", REWIRE_DTYPE_I64, 1, 3, REWIRE_ARGUMENT_WRITTEN, 0}};
const RewireKernelEntry kEntries[] = {
    {"test.plus", kPlus, 0}, {"test.count", kCount, 0}, {"test.unknown", kPlus, 0}};
const RewireKernelRow kRows[] = {
    {kArguments, 2, 0, nullptr, nullptr}, {kArguments, 2, REWIRE_KERNEL_IMPURE, nullptr, nullptr}, {}};
const RewireKernelTable kTable = {sizeof(RewireKernelTable), 3, kEntries, kRows};

// %h is x + 1, computed on the device.
constexpr char kOnDevice[] = R"(
    %d = device_copy %x, cpu, fake
    %s = alloc_storage _, alignment=64, f32[3], fake
    %a = alloc_tensor %s, _, f32[3]
    invoke_packed test.add_one(%d, %a), outputs=1
    %h = device_copy %a, fake, cpu
)";
// %more is made of `given` by a kernel of the host.
std::string OnHost(const std::string& kernel, const std::string& given) {
  return "    %u = alloc_storage _, alignment=64, i64[1], cpu\n    %more = alloc_tensor %u, _, i64[1]\n"
         "    invoke_packed " +
         kernel + "(" + given + ", %more), outputs=1\n";
}

VirtualMachine MachineOf(FakeDevice& device, const std::string& text) {
  device.put_off = true;
  LinkOptions options = WithKernels(device);
  options.kernels.AddTable(kTable, "the table");
  return VirtualMachine(
      ProgramOf(".device fake = ext_dev:0\n.kernel test.add_one\n.kernel test.plus\n.kernel test.count\n"
                ".kernel test.unknown\n" +
                    text,
                std::move(options)));
}

float x[3] = {1, 2, 3};
float y[3];
std::int64_t n, first, second;
const std::vector<std::int64_t> kScalar;

enum class HowHostRuns : std::uint8_t { kPlain, kAutomatic, kRecorded };

// The answer of `outputs` after each of 6 runs but the fourth. The memory of outputs is cleared before each.
std::string Runs(HowHostRuns how, const std::string& text, const std::function<void(VirtualMachine&)>& set_up,
                 const std::function<std::string(VirtualMachine&)>& outputs) {
  FakeDevice device;
  VirtualMachine vm = MachineOf(device, text);
  n = 1, counted = 0;
  vm.SetInput("x", TensorView(x, {3}));
  vm.SetOutput(0, TensorView(y, {3}));
  set_up(vm);
  if (how == HowHostRuns::kAutomatic) vm.SetAutomaticRecording(true);
  std::string told;
  for (int i = 0; i < 6; ++i) {
    x[0] = static_cast<float>(i);
    y[0] = -1, first = second = -1;
    if (i == 3) {  // TryRecord is a run, but one whose results nobody gets
      if (how != HowHostRuns::kRecorded) {
        vm.Invoke();
      } else if (const Status recorded = vm.TryRecord(); !recorded) {
        CHECK(recorded.error().code() == StatusCode::kUnsupported);
      }
      continue;
    }
    vm.Invoke();
    told += std::to_string(y[0]) + " " + outputs(vm) + "; ";
  }
  CHECK(device.misuse.empty());
  return told;
}

void CheckAlike(const std::string& text, const std::function<void(VirtualMachine&)>& set_up,
                const std::function<std::string(VirtualMachine&)>& outputs) {
  const std::string plain = Runs(HowHostRuns::kPlain, text, set_up, outputs);
  CHECK(Runs(HowHostRuns::kAutomatic, text, set_up, outputs) == plain);
  CHECK(Runs(HowHostRuns::kRecorded, text, set_up, outputs) == plain);
}

std::string Integers(VirtualMachine&) { return std::to_string(first) + " " + std::to_string(second); }

TEST_CASE("kernels of the host are part of a recorded run if a replay can do without them") {
  const auto record = [](FakeDevice& device, const std::string& kernel, const std::string& given) {
    VirtualMachine vm =
        MachineOf(device, ".func main(x: f32[3], n: i64[1]) -> f32[3]\n    %sizes = shape_of %x\n" +
                              OnHost(kernel, given) + kOnDevice + "    ret %h\n.end");
    vm.SetInput("x", TensorView(x, {3}));
    vm.SetInput("n", TensorView(&n, kInt64, {1}));
    const std::string message = MessageOf(vm.TryRecord());
    CHECK(vm.recorded() == message.empty());
    for (int i = 0; i < 3; ++i) {
      x[0] = static_cast<float>(10 * i);
      vm.Invoke();
      CHECK(FloatsOf(vm.result().tensor())[0] == x[0] + 1);
    }
    CHECK(device.misuse.empty());
    return message;
  };
  FakeDevice device;
  CHECK(record(device, "test.plus", "%sizes").empty());
  CHECK(device.replays == 3);
  for (const auto& [kernel, given, why] :
       {std::tuple("test.count", "%sizes", "kernel 'test.count' runs on the host"),
        std::tuple("test.unknown", "%sizes", "kernel 'test.unknown' runs on the host"),
        std::tuple("test.plus", "%n", "kernel 'test.plus' uses memory of the host")}) {
    FakeDevice other;
    CHECK_THAT(record(other, kernel, given),
               Catch::EndsWith(std::string("the run cannot be recorded: ") + why));
    CHECK(other.replays == 0);
  }
}

TEST_CASE("a replay copies what the host had computed, though the host has gone on in that memory") {
  // 4 is copied to the device and its memory given back, where 6 would lie then. The storage is large, so
  // that it has a block of its own, in which the pool would write if it were free.
  const std::string text = R"(.func main(x: f32[3]) -> (f32[3], i64[1], i64[1])
    %sizes = shape_of %x
    %u = alloc_storage _, alignment=64, i64[1000], cpu
    %four = alloc_tensor %u, _, i64[1]
    kill %u
    invoke_packed test.plus(%sizes, %four), outputs=1
    %v = alloc_storage _, alignment=64, i64[1], cpu
    %five = alloc_tensor %v, _, i64[1]
    invoke_packed test.plus(%four, %five), outputs=1
    %g = device_copy %four, cpu, fake
    kill %four
    %w = alloc_storage _, alignment=64, i64[1000], cpu
    %six = alloc_tensor %w, _, i64[1]
    kill %w
    invoke_packed test.plus(%five, %six), outputs=1
    %i = device_copy %six, cpu, fake
    kill %six
    %fourth = device_copy %g, fake, cpu
    %sixth = device_copy %i, fake, cpu
)" + std::string(kOnDevice) +
                           "    %r = alloc_adt tag=0 (%h, %fourth, %sixth)\n    ret %r\n.end";
  const auto bind = [](VirtualMachine& vm) {
    vm.SetOutput(1, TensorView(&first, kInt64, {1}));
    vm.SetOutput(2, TensorView(&second, kInt64, {1}));
  };
  CheckAlike(text, bind, Integers);
  FakeDevice device;
  VirtualMachine vm = MachineOf(device, text);
  vm.SetInput("x", TensorView(x, {3}));
  vm.SetOutput(0, TensorView(y, {3}));
  bind(vm);
  std::uint64_t held = 0;
  for (int i = 0; i < 3; ++i) {
    CHECK(MessageOf(vm.TryRecord()).empty());
    first = second = 0;
    vm.Invoke();
    vm.Invoke();
    CHECK(first == 4);
    CHECK(second == 6);
    vm.SetInput("x", TensorView(x, {3}));  // ends the recording
    vm.Invoke();
    vm.Trim();
    if (i == 0) held = vm.bytes_held();
    CHECK(vm.bytes_held() == held);
  }
  CHECK(device.replays == 6);
  CHECK(device.misuse.empty());
}

TEST_CASE("a recording that is refused has changed nothing") {
  const std::string state = std::string(".func main(x: f32[3], n: i64[1]) -> (f32[3], i64[1])") + kOnDevice +
                            OnHost("test.plus", "%n") +
                            "    %r = alloc_adt tag=0 (%h, %more)\n    ret %r\n.end";
  const InputMode mode = GENERATE(InputMode::kBorrow, InputMode::kCopy);
  CheckAlike(
      state,
      [&](VirtualMachine& vm) {
        vm.SetInput("n", TensorView(&n, kInt64, {1}), mode);
        vm.Donate("n", 1);
      },
      [](VirtualMachine& vm) { return std::to_string(*vm.TryOutput(1u)->tensor().data<std::int64_t>()); });
  const std::string impure =
      std::string(".func main(x: f32[3]) -> (f32[3], i64[1])\n    %sizes = shape_of %x") + kOnDevice +
      OnHost("test.count", "%sizes") + "    %r = alloc_adt tag=0 (%h, %more)\n    ret %r\n.end";
  CheckAlike(
      impure, [](VirtualMachine& vm) { vm.SetOutput(1, TensorView(&first, kInt64, {1})); }, Integers);
}

TEST_CASE("outputs that the host writes are written by each run") {
  const auto bind = [](VirtualMachine& vm) {
    vm.SetOutput(1, TensorView(&first, kInt64, {1}));
    vm.SetOutput(2, TensorView(&second, kInt64, {1}));
  };
  const std::string head =
      ".func main(x: f32[3], n: i64[1]) -> (f32[3], i64[1], i64[1])\n    %sizes = shape_of %x";
  const auto set_input = [&](VirtualMachine& vm) {
    vm.SetInput("n", TensorView(&n, kInt64, {1}));
    bind(vm);
  };
  for (const char* results : {"%more, %more", "%n, %more", "%sizes, %more", "%sizes, %n"}) {
    INFO(results);
    CheckAlike(head + kOnDevice + OnHost("test.plus", "%sizes") + "    %r = alloc_adt tag=0 (%h, " + results +
                   ")\n    ret %r\n.end",
               set_input, [](VirtualMachine& vm) {
                 ++n;
                 return Integers(vm);
               });
  }
}

TEST_CASE("what the host reads of an input is read by each run") {
  const std::string text = R"(.func main(x: f32[3], n: i64[]) -> f32[3]
    %one = load_consti 1
    if %n == %one goto yes else no
  yes:)" + std::string(kOnDevice) +
                           R"(    ret %h
  no:
    %d = device_copy %x, cpu, fake
    %h = device_copy %d, fake, cpu
    ret %h
  .end)";
  CheckAlike(
      text, [](VirtualMachine& vm) { vm.SetInput("n", TensorView(&n, kInt64, kScalar)); },
      [](VirtualMachine&) {
        n = 1 - n;
        return std::string();
      });
}

TEST_CASE("an output's allocator is asked by each run") {
  FakeDevice device;
  VirtualMachine vm =
      MachineOf(device, std::string(".func main(x: f32[3]) -> f32[3]") + kOnDevice + "    ret %h\n.end");
  vm.SetInput("x", TensorView(x, {3}));
  int asked = 0;
  vm.SetOutput(0, OutputAllocator{&asked, [](void* context, std::uint64_t, std::uint64_t) -> void* {
                                    ++*static_cast<int*>(context);
                                    return y;
                                  }});
  CHECK_THAT(MessageOf(vm.TryRecord()),
             Catch::EndsWith("the run cannot be recorded: an output has an allocator"));
  const int before = asked;
  for (int i = 1; i <= 3; ++i) {
    vm.Invoke();
    CHECK(asked == before + i);
  }
}

}  // namespace
}  // namespace rewire::test
