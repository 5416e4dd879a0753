// SPDX-License-Identifier: Apache-2.0
// Programs that use a second device: copies go through its DeviceApi alone.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/kernel/device_type.h"

namespace rewire::test {
namespace {

constexpr char kRoundTrip[] = R"(
  .device fake = ext_dev:0
  .const c: f32[3] on fake = {7, 8, 9}
  .func main(x: f32[3]) -> f32[3]
    %d = device_copy %x, cpu, fake
    %shape = shape_of %d
    %v = reshape_tensor %d, %shape
    %e = device_copy %v, fake, fake
    %h = device_copy %e, fake, cpu
    ret %h
  .end
  .func constant() -> f32[3]
    %c = load_const c
    %h = device_copy %c, fake, cpu
    ret %h
  .end
  .func branch(n: i64[]) -> value
    %d = device_copy %n, cpu, fake
    %one = load_consti 1
    if %d == %one goto yes else no
  yes:
    ret %one
  no:
    %s = alloc_storage %d, alignment=64, u8, fake
    %t = alloc_tensor_reg %s, _, %d, u8
    ret %t
  .end
  .func wrong(x: value) -> value
    %d = device_copy %x, fake, cpu
    ret %d
  .end)";

Tensor Scalar(std::int64_t value) {
  Tensor tensor = *Tensor::Make(kInt64, {});
  *tensor.data<std::int64_t>() = value;
  return tensor;
}

TEST_CASE("tensors go to a device and back; shapes and branches read it through copies") {
  FakeDevice device;
  {
    VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
    const Value x = Floats({1, 2, 3});
    for (int i = 0; i < 3; ++i) {
      CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
    }
    const std::size_t blocks = device.blocks.size();
    REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
    CHECK(device.blocks.size() == blocks);  // reused
    REQUIRE(MessageOf(vm.TryInvoke("constant")).empty());
    CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{7, 8, 9});
    const Value one = Scalar(1);
    const Value five = Scalar(5);
    CHECK(vm.TryInvoke("branch", {&one, 1})->integer() == 1);
    const Tensor made = vm.TryInvoke("branch", {&five, 1})->tensor();
    CHECK(made.dl().device.device_type == kDLExtDev);
    CHECK(made.shape()[0] == 5);
    CHECK(MessageOf(vm.TryInvoke("wrong", {&x, 1}))
              .find("the tensor is on device 1:0, the instruction copies "
                    "from 12:0") != std::string::npos);
  }
  CHECK(device.blocks.empty());
}

TEST_CASE("an input on another device than the signature's is copied there when it is set") {
  FakeDevice device;
  const LinkOptions options = WithDevice(device);
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3] on fake) -> f32[3]
      %h = device_copy %x, fake, cpu
      ret %h
    .end
    .func back(x: f32[3]) -> f32[3]
      ret %x
    .end
    .func away(x: f32[3]) -> f32[3] on fake
      %d = device_copy %x, cpu, fake
      ret %d
    .end)",
                              options));
  const auto reason = [&vm](InputHandle input) { return vm.TryInputReport(input)->reason; };
  float x[6] = {1, 0, 2, 0, 3, 0};
  const std::vector<std::int64_t> shape = {3};
  const std::vector<std::int64_t> strides = {2};
  vm.SetInput("x", TensorView(x, kFloat32, shape, kHost, strides));
  x[0] = 100;  // the host's again
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{1, 2, 3});
  CHECK(reason({0, 0}) == "the memory is on another device");
  vm.SetInput("x", Floats({4, 5, 6}));
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{4, 5, 6});

  const Value host = Floats({7, 8, 9});
  const Value there = *vm.TryInvoke("away", {&host, 1});
  vm.SetInput("x", there);
  CHECK_FALSE(vm.TryInputReport("x")->copied);
  vm.Invoke();
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{7, 8, 9});
  vm.SetInput(InputHandle{1, 0}, there.tensor().view());
  CHECK(reason({1, 0}) == "the memory is on another device");
  vm.Invoke("back");
  CHECK(FloatsOf(vm.Output()) == std::vector<float>{7, 8, 9});

  CHECK(MessageOf(vm.TrySetInput("x", TensorView(x, {4}))) ==
        "function main, input 0 (x): f32[3]@1 expected, f32[4] given; device ext_dev:0 expected, cpu given");
  device.broken = true;
  CHECK(MessageOf(vm.TrySetInput("x", TensorView(x, {3}))) ==
        "function main, input 0 (x): the copy to its device failed: device fake:0: the bus is down");
}

TEST_CASE("an open value that names a device is copied there, a tree with all its tensors") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: value on fake) -> value
      ret %x
    .end
    .func closure() -> value
      %c = alloc_closure closure()
      %t = alloc_adt tag=0 (%c)
      ret %t
    .end
    .func second(x: value on fake) -> f32[2]
      %inner = get_field %x, index=1
      %t = get_field %inner, index=0
      %h = device_copy %t, fake, cpu
      ret %h
    .end)",
                              WithDevice(device)));
  const auto is_there = [](const Value& value) {
    return DeviceTypeOf(value.tensor().dl().device) == kDLExtDev;
  };
  const Value x = Floats({1, 2, 3});
  vm.SetInput("x", x);
  vm.Invoke();
  CHECK(is_there(vm.result()));
  CHECK(FloatsOf(*CopyToHost(vm.result().tensor())) == std::vector<float>{1, 2, 3});
  float values[3] = {4, 5, 6};
  vm.SetInput("x", TensorView(values, {3}));
  vm.Invoke();
  CHECK(is_there(vm.result()));
  CHECK(vm.TryInputReport("x")->reason == "the memory is on another device");

  const std::vector<Value> leaves = {Floats({8, 9}), Value(std::int64_t{5})};
  const std::vector<Value> branches = {x, *Value::Adt(7, leaves), *Value::Adt(0, {})};
  const Value tree = *Value::Adt(3, branches);
  const Value second = *vm.TryInvoke("second", {&tree, 1});
  CHECK(FloatsOf(second.tensor()) == std::vector<float>{8, 9});
  const Value whole = *vm.TryInvoke("main", {&tree, 1});
  REQUIRE(whole.field_count() == 3);
  CHECK(whole.tag() == 3);
  CHECK(is_there(whole.field(0)));
  CHECK(whole.field(1).tag() == 7);
  CHECK(whole.field(1).field(1).integer() == 5);
  CHECK(whole.field(2).field_count() == 0);

  vm.Invoke("closure");
  const Value closure = vm.result();
  CHECK(MessageOf(vm.TryInvoke("main", {&closure, 1})) ==
        "function main, input 0 (x): only tensors, integers and tuples of them are copied to a device");

  device.broken = true;
  CHECK(MessageOf(vm.TryInvoke("main", {&tree, 1}))
            .find("input 0 (x): the copy to its device failed: device fake:0: the bus is down") !=
        std::string::npos);
}

TEST_CASE("a constant on a device is a result that can be copied to the host") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .const c: f32[3] on fake = {7, 8, 9}
    .func main() -> f32[3] on fake
      %c = load_const c
      ret %c
    .end)",
                              WithDevice(device)));
  vm.Invoke();
  CHECK(FloatsOf(*CopyToHost(vm.Output())) == std::vector<float>{7, 8, 9});
}

TEST_CASE("two tensors of a device change places, though each is copied over the other") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3] on fake, y: f32[3] on fake) -> (f32[3] on fake, f32[3] on fake)
      %r = alloc_adt tag=0 (%y, %x)
      ret %r
    .end
    .func away(x: f32[3]) -> f32[3] on fake
      %d = device_copy %x, cpu, fake
      ret %d
    .end)",
                              WithDevice(device)));
  const Value one = Floats({1, 2, 3});
  const Value two = Floats({4, 5, 6});
  const Tensor x = vm.TryInvoke("away", {&one, 1})->tensor();
  const Tensor y = vm.TryInvoke("away", {&two, 1})->tensor();
  const std::vector<std::int64_t> shape = {3};
  const auto writable = [&](const Tensor& tensor) {
    return TensorView(tensor.dl().data, kFloat32, shape, tensor.dl().device);
  };
  vm.SetInput("x", x);
  vm.SetInput("y", y);
  vm.SetOutput(0, writable(x));
  vm.SetOutput(1, writable(y));
  vm.Invoke();
  CHECK(FloatsOf(*CopyToHost(x)) == std::vector<float>{4, 5, 6});
  CHECK(FloatsOf(*CopyToHost(y)) == std::vector<float>{1, 2, 3});
  CHECK(device.misuse.empty());
}

TEST_CASE("a result on a device is copied into memory of the host's that is bound for it") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device fake = ext_dev:0
    .func main(x: f32[3]) -> f32[3] on fake
      %d = device_copy %x, cpu, fake
      ret %d
    .end)",
                              WithDevice(device)));
  float out[3] = {};
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.SetOutput(0, TensorView(out, {3}));
  vm.Invoke();
  CHECK(std::vector<float>(out, out + 3) == std::vector<float>{1, 2, 3});
  CHECK(vm.TryOutputReport(0)->reason == "the value was made elsewhere");
  // Everything but the device must fit.
  CHECK(MessageOf(vm.TrySetOutput(0, TensorView(out, {2}))).find("f32[3]@1 expected, f32[2] given") !=
        std::string::npos);
}

TEST_CASE("a result on a device outlives its VM") {
  FakeDevice device;
  Value result;
  {
    VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
    const Value five = Scalar(5);
    result = *vm.TryInvoke("branch", {&five, 1});
  }
  CHECK(device.blocks.size() == 1);
  result = Value();
  CHECK(device.blocks.empty());
}

TEST_CASE("a device that fails or is full ends the run with its own words") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
  const Value x = Floats({1, 2, 3});
  device.broken = true;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})) ==
        "main@0 (%1 = device_copy %x, cpu, ext_dev:0): the copy failed: device fake:0: the bus is down");
  device.broken = false;
  CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
  vm.Trim();
  const std::uint64_t held = vm.bytes_held();
  device.full = true;
  const Result<Value> full = vm.TryInvoke("main", {&x, 1});
  REQUIRE_FALSE(full);
  CHECK(full.error().code() == StatusCode::kOutOfMemory);
  CHECK(full.error().message() ==
        "main@0 (%1 = device_copy %x, cpu, ext_dev:0): 12 bytes more asked for: device fake:0: no memory is "
        "left");
  vm.Trim();
  CHECK(vm.bytes_held() == held);
  device.full = false;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
}

TEST_CASE(
    "a device that fails or is full while a program is linked is an error, and the next link is right") {
  FakeDevice device;
  const Executable executable = ExecutableOf(kRoundTrip);
  device.full = true;
  CHECK(MessageOf(Program::Link(executable, WithDevice(device))) ==
        "constant c: device fake:0: no memory is left");
  device.full = false;
  device.broken = true;
  CHECK(MessageOf(Program::Link(executable, WithDevice(device)))
            .find("the copy to the device: device fake:0: the bus is down") != std::string::npos);
  CHECK(device.blocks.empty());
  device.broken = false;
  VirtualMachine vm(*Program::Link(executable, WithDevice(device)));
  CHECK(FloatsOf(vm.TryInvoke("constant", {})->tensor()) == std::vector<float>{7, 8, 9});
}

TEST_CASE("device memory counts against the byte limit") {
  FakeDevice device;
  Limits limits;
  limits.bytes = 1 << 20;
  VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)), limits);
  const Value over = Scalar(2 << 20);
  const Result<Value> failed = vm.TryInvoke("branch", {&over, 1});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::kMemoryLimit);
}

TEST_CASE("free device memory serves only requests of its scope and alignment") {
  FakeDevice device;
  VirtualMachine vm(ProgramOf(R"(
    .device plain = ext_dev:0
    .device texture = ext_dev:0 "global.texture"
    .func main() -> value
      %s = alloc_storage _, alignment=64, f32[8], plain
      %t = alloc_tensor %s, _, f32[8]
      kill %s
      kill %t
      %s = alloc_storage _, alignment=64, f32[8], texture
      %t = alloc_tensor %s, _, f32[8]
      kill %s
      kill %t
      %s = alloc_storage _, alignment=4096, f32[8], plain
      %t = alloc_tensor %s, _, f32[8]
      ret %t
    .end)",
                              WithDevice(device)));
  for (int i = 0; i < 3; ++i) REQUIRE(MessageOf(vm.TryInvoke()).empty());
  const Tensor result = vm.result().tensor();
  const auto address = reinterpret_cast<std::uintptr_t>(result.dl().data);
  CHECK(address % 4096 == 0);
  CHECK(device.blocks.at(address).scope.empty());
}

TEST_CASE("a device type that DLPack does not know is one that is not there") {
  const Result<Program> program = Program::Link(ExecutableOf(R"(
    .device odd = device100:3
    .func main(x: f32[3] on odd) -> f32[3]
      %h = device_copy %x, odd, cpu
      ret %h
    .end)"));
  REQUIRE_FALSE(program);
  CHECK(program.error().message() ==
        "the executable uses devices that are not there:\n  device100:3: no library for it was given");
  FakeDevice device;
  VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
  float x[3] = {1, 2, 3};
  CHECK(MessageOf(vm.TrySetInput("x", TensorView(x, kFloat32, {3}, MakeDevice(100, 3)))) != "");
  CHECK(MessageOf(vm.TrySetOutput(0, TensorView(x, kFloat32, {3}, MakeDevice(100, 3)))) != "");
}

TEST_CASE("linking names the devices that the host did not give") {
  LinkOptions options;
  const Result<Program> program = Program::Link(ExecutableOf(kRoundTrip), options);
  REQUIRE_FALSE(program);
  CHECK(program.error().code() == StatusCode::kLinkFailed);
  CHECK(program.error().message() ==
        "the executable uses devices that are not there:\n  ext_dev:0: no library for it was given");
}

TEST_CASE("work is enqueued, and the host waits once, when the call returns") {
  FakeDevice device;
  device.put_off = true;
  {
    VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
    const Value x = Floats({1, 2, 3});
    for (std::uint64_t i = 1; i <= 3; ++i) {
      const Value result = *vm.TryInvoke("main", {&x, 1});
      CHECK(FloatsOf(result.field(0).tensor()) == std::vector<float>{3, 4, 5});
      CHECK(FloatsOf(result.field(1).tensor()) == std::vector<float>{4, 5, 6});
      CHECK(vm.device_waits().of(WaitCause::kEnd) == i);
      CHECK(vm.device_waits().all() == i);
    }
    CHECK(device.waits == 3);
    const std::size_t blocks = device.blocks.size();
    REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
    CHECK(device.blocks.size() == blocks);
  }
  CHECK(device.misuse.empty());
  CHECK(device.blocks.empty());
  CHECK(device.streams.empty());
  CHECK(device.events.empty());
}

TEST_CASE("a host kernel waits for the copy that it reads, and what a copy reads stays as it was") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
  const Value x = Floats({1, 2, 3});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    CHECK(FloatsOf(vm.TryInvoke("mixed", {&x, 1})->tensor()) == std::vector<float>{3, 4, 5});
    CHECK(vm.device_waits().of(WaitCause::kHostKernel) == i);
    CHECK(vm.device_waits().of(WaitCause::kEnd) == i);
  }
  CHECK(device.misuse.empty());
}

TEST_CASE("outputs of a device land in the caller's memory, on the host and on the device") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
  const Value x = Floats({1, 2, 3});
  float first[3] = {};
  float second[3] = {};
  vm.SetInput("x", x);
  vm.SetOutput(0, TensorView(first, {3}));
  vm.SetOutput(1, TensorView(second, {3}));
  vm.RequireZeroCopy(true);
  vm.Invoke();
  CHECK(std::vector<float>(first, first + 3) == std::vector<float>{3, 4, 5});
  CHECK(std::vector<float>(second, second + 3) == std::vector<float>{4, 5, 6});
  CHECK(vm.device_waits().all() == 1);
}

TEST_CASE("an integer or a shape that lies on a device is waited for, with its cause") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
  const Value one = Scalar(1);
  CHECK(vm.TryInvoke("branch", {&one, 1})->integer() == 1);
  CHECK(vm.device_waits().of(WaitCause::kValue) == 1);
  CHECK(vm.device_waits().all() == 1);
  const Value five = Scalar(5);
  CHECK(vm.TryInvoke("branch", {&five, 1})->tensor().shape()[0] == 5);
  CHECK(vm.device_waits().of(WaitCause::kShape) == 1);
}

TEST_CASE("work that fails late is an error that names what enqueued it, and the next call is right") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kRoundTrip, WithDevice(device)));
  const Value x = Floats({1, 2, 3});
  REQUIRE(MessageOf(vm.TryInvoke("main", {&x, 1})).empty());
  vm.Trim();
  const std::uint64_t held = vm.bytes_held();
  device.breaks_late = true;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})) ==
        "device fake:0: the work went wrong; main@0 (%1 = device_copy %x, cpu, ext_dev:0) enqueued the work "
        "that failed, or an instruction after it, up to main@17 (%5 = device_copy %4, ext_dev:0, cpu)");
  vm.Trim();
  CHECK(vm.bytes_held() == held);
  device.breaks_late = false;
  CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
  device.lost = true;
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})).find("device fake:0 is lost: the cable is cut") !=
        std::string::npos);
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})).find("is lost") != std::string::npos);
}

TEST_CASE("tensors go from one device to another of its kind behind events, and over the host to others") {
  FakeDevice device;
  FakeDevice other(kDLVPI, "other");
  device.put_off = true;
  other.put_off = true;
  LinkOptions options = WithDevice(device);
  options.devices.push_back(&other.api);
  VirtualMachine vm(ProgramOf(R"(
    .device first = ext_dev:0
    .device second = ext_dev:1
    .device third = vpi:0
    .func main(x: f32[3]) -> f32[3]
      %a = device_copy %x, cpu, first
      %b = device_copy %a, first, second
      kill %a
      %a = device_copy %b, second, first
      kill %b
      %b = device_copy %a, first, third
      kill %a
      %h = device_copy %b, third, cpu
      ret %h
    .end)",
                              options));
  const Value x = Floats({1, 2, 3});
  for (int i = 0; i < 3; ++i) {
    CHECK(FloatsOf(vm.TryInvoke("main", {&x, 1})->tensor()) == std::vector<float>{1, 2, 3});
  }
  CHECK(vm.device_waits().of(WaitCause::kTransfer) == 6);
  CHECK(device.misuse.empty());
  CHECK(other.misuse.empty());
}

}  // namespace
}  // namespace rewire::test
