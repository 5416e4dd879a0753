// SPDX-License-Identifier: Apache-2.0
// Opening libraries of devices: what is missing is said.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/loader/kernel_api.h"

namespace rewire::test {
namespace {

std::string Library(const std::string& name) {
  return std::string(BuildDir()) + "/tests/libraries/" + name + ".so";
}

TEST_CASE("a library of devices that cannot be opened says why") {
  CHECK(MessageOf(OpenDevice("no_such")) == "librewire_device_no_such.so is not installed");
  CHECK(MessageOf(OpenDevice("./none.so")) == "there is no file ./none.so");
  const TempFolder folder;
  const std::string text = (folder.path() / "text.so").string();
  std::ofstream(text) << "no library";
  CHECK(MessageOf(OpenDevice(text)).find(text + " cannot be opened: ") == 0);
  CHECK(MessageOf(OpenDevice(Library("no_device"))) ==
        Library("no_device") + " is no device library: it has no function rewire_device_open");
  CHECK(MessageOf(OpenDevice(Library("device_without_driver"))) == "libnone.so.7 is missing");
  CHECK(MessageOf(OpenDevice(Library("half_a_device"))) ==
        Library("half_a_device") + " lacks functions that every device has");
}

TEST_CASE("a library of devices outside the tree is opened by its path and linked with") {
  const Result<const DeviceApi*> opened = OpenDevice(Library("whole_device"));
  REQUIRE(MessageOf(opened).empty());
  CHECK(std::string((*opened)->name) == "heap");
  LinkOptions options;
  options.devices.push_back(*opened);
  const std::string program = R"(
    .func main(x: f32[3]) -> f32[3] on heap
      %d = device_copy %x, cpu, heap
      ret %d
    .end)";
  VirtualMachine vm(ProgramOf(".device heap = ext_dev:1" + program, options));
  const Value x = Floats({1, 2, 3});
  const Tensor there = vm.TryInvoke("main", {&x, 1})->tensor();
  CHECK(there.dl().device.device_type == kDLExtDev);
  CHECK(FloatsOf(*CopyToHost(there)) == std::vector<float>{1, 2, 3});
  CHECK(MessageOf(Program::Link(ExecutableOf(".device heap = ext_dev:2" + program), options)) ==
        "the executable uses devices that are not there:\n"
        "  ext_dev:2: there are 2 devices of this kind, numbered from 0");
}

TEST_CASE("only memory of a VM is copied to the host") {
  FakeDevice device;
  float data[3] = {};
  const Tensor mine = *Tensor::Wrap(TensorView(data, kFloat32, {3}, {kDLExtDev, 0}), nullptr);
  CHECK(MessageOf(CopyToHost(mine)) == "the tensor is on a device, in memory that no VM allocated");
  CHECK(FloatsOf(*CopyToHost(Floats({1, 2}))) == std::vector<float>{1, 2});
}

int AskForDevice(void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  return KernelApi()->device({kDLCUDA, 3}, &api, &stream);
}

TEST_CASE("a kernel that asks for a device which the executable does not name fails") {
  LinkOptions options;
  options.kernels.AddFunction("test.ask", Packed(AskForDevice));
  VirtualMachine vm(ProgramOf(R"(
    .kernel test.ask
    .func main(x: f32[1]) -> f32[1]
      invoke_packed test.ask(%x), outputs=0
      ret %x
    .end)",
                              options));
  const Value x = Floats({1});
  CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})).find("the executable does not name device cuda:3") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire::test
