// SPDX-License-Identifier: Apache-2.0
// Objects on a device that a kernel keeps beside the VM: whoever drops the last reference, and on whatever
// thread, their memory stays until the device has done what the VM has given it.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/tests/vm/device/device_programs.h"
#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// host.get returns the one object that it keeps, a tensor or an ADT with one; host.drop lets it go.
class Keeper {
 public:
  explicit Keeper(bool in_adt) : in_adt_(in_adt) {}

  LinkOptions Options(FakeDevice* device, bool on_thread) {
    LinkOptions options = WithKernels(*device);
    device_ = device;
    options.kernels.AddFunction("host.get",
                                MakePackedFunction([this](RewireFFIAny* result) { return Get(result); }));
    options.kernels.AddFunction("host.drop", MakePackedFunction([this, on_thread] {
                                  if (kept_ == nullptr) return;
                                  Object* const last = std::exchange(kept_, nullptr);
                                  if (on_thread) {
                                    std::thread([last] { DropStrong(last); }).join();
                                  } else {
                                    DropStrong(last);
                                  }
                                }));
    return options;
  }

 private:
  kernel::Status Get(RewireFFIAny* result) {
    if (kept_ == nullptr) {
      const std::int64_t shape[1] = {3};
      RewireFFIAny tensor{};
      if (KernelApi()->new_tensor(kFloat32, 1, shape, {kDLExtDev, 0}, &tensor) != 0)
        return kernel::RuntimeError("no tensor");
      const float values[3] = {1, 2, 3};
      const DLTensor& made = *RewireTensorOf(&tensor);
      std::memcpy(device_->Memory(made.data, sizeof(values)), values, sizeof(values));
      *result = tensor;
      if (in_adt_) {
        if (KernelApi()->new_adt(3, 1, &tensor, result) != 0) return kernel::RuntimeError("no ADT");
        DropStrong(ObjectOf(tensor));
      }
      kept_ = ObjectOf(*result);
    } else {
      *result = MakeAny(kept_->type_index, kept_);
    }
    kept_->AddStrong();
    return kernel::Status();
  }

  const bool in_adt_;
  FakeDevice* device_ = nullptr;
  Object* kept_ = nullptr;
};

// The VM takes the object once or twice, and drops its last reference while the device still uses the tensor.
std::string KeepingProgram(int taken, bool in_adt) {
  std::string code = R"(
  .device fake = ext_dev:0
  .kernel test.add_one
  .kernel get = "host.get"
  .kernel drop = "host.drop"
  .func main() -> f32[3]
    %s = alloc_storage _, alignment=64, f32[3], fake
    %a = alloc_tensor %s, _, f32[3]
)";
  for (int i = 0; i < taken; ++i) {
    code += "    %k = invoke_packed get(), outputs=0\n";
    code += in_adt ? "    %t = get_field %k, index=0\n" : "    %t = move %k\n";
    if (i + 1 < taken) code += "    kill %t\n    kill %k\n";
  }
  return code + R"(
    invoke_packed test.add_one(%t, %a), outputs=1
    kill %t
    kill %k
    invoke_packed drop(), outputs=0
    %h = device_copy %a, fake, cpu
    ret %h
  .end)";
}

TEST_CASE("memory of a device that a kernel keeps and drops is freed after the work that uses it") {
  for (const bool in_adt : {false, true}) {
    for (const int taken : {1, 2, 3}) {
      for (const bool on_thread : {false, true}) {
        INFO((in_adt ? "an ADT" : "a tensor")
             << ", taken " << taken << " times" << (on_thread ? ", dropped on another thread" : ""));
        FakeDevice device;
        device.put_off = true;
        Keeper keeper(in_adt);
        {
          VirtualMachine vm(ProgramOf(KeepingProgram(taken, in_adt), keeper.Options(&device, on_thread)));
          for (int run = 0; run < 3; ++run) {
            vm.Invoke();
            CHECK(FloatsOf(vm.result().tensor()) == std::vector<float>{2, 3, 4});
          }
        }
        CHECK(device.misuse == "");
        CHECK(device.blocks.empty());
      }
    }
  }
}

TEST_CASE("free blocks of a device stay with the VM until Trim, and serve the next runs") {
  FakeDevice device;
  device.put_off = true;
  VirtualMachine vm(ProgramOf(kChain, WithKernels(device)));
  vm.SetInput("x", Floats({1, 2, 3}));
  vm.Invoke();
  const std::size_t kept = device.blocks.size();
  CHECK(kept > 0);
  device.full = true;  // a further allocation would fail
  for (int run = 0; run < 3; ++run) {
    vm.Invoke();
    CHECK(FloatsOf(vm.result().field(1).tensor()) == std::vector<float>{4, 5, 6});
    CHECK(device.blocks.size() == kept);
  }
  vm.DropResult();
  CHECK(device.blocks.size() == kept);
  REQUIRE(vm.TryTrim());
  device.Finish();
  CHECK(device.blocks.empty());
  CHECK(device.misuse == "");
}

}  // namespace
}  // namespace rewire::test
