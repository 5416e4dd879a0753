// SPDX-License-Identifier: Apache-2.0
//
// Failures of a stream's work that whoever gave it tells (vm/kernel/stream_work.h).
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/kernel/stream_work.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::test {
namespace {

// Null, with a warning, for a device that cannot be told.
const RewireStreamWorkApi* FailuresOf(const TestDevice& device) {
  const RewireStreamWorkApi* failures = RewireStreamWorkOf(&device.api);
  if (failures == nullptr) WARN("skipped: the device " << device.api.name << " cannot be told of failures");
  return failures;
}

TEST_CASE("a stream that has failed says so at the next wait, once, and other streams do not") {
  const TestDevice device;
  const RewireStreamWorkApi* failures = FailuresOf(device);
  if (failures == nullptr) return;
  const RewireDeviceApi& api = device.api;
  void* other = nullptr;
  REQUIRE(api.make_stream(api.context, device.id, &other) == REWIRE_DEVICE_OK);
  std::string words = "rank 1 has ended";
  REQUIRE(failures->fail_stream(api.context, device.id, device.stream, words.c_str()) == REWIRE_DEVICE_OK);
  words = "they are copied";
  REQUIRE(failures->fail_stream(api.context, device.id, device.stream, "a later failure") ==
          REWIRE_DEVICE_OK);
  CHECK(api.synchronize(api.context, device.id, other) == REWIRE_DEVICE_OK);
  CHECK(api.synchronize(api.context, device.id, device.stream) == REWIRE_DEVICE_FAILED);
  CHECK(api.error(api.context) == std::string("rank 1 has ended"));
  CHECK(api.synchronize(api.context, device.id, device.stream) == REWIRE_DEVICE_OK);

  // A failure that nobody has waited for ends with its stream, though a new one may have its address.
  REQUIRE(failures->fail_stream(api.context, device.id, other, "nobody waits") == REWIRE_DEVICE_OK);
  for (int i = 0; i < 20; ++i) {
    CHECK(api.destroy_stream(api.context, device.id, other) == REWIRE_DEVICE_OK);
    REQUIRE(api.make_stream(api.context, device.id, &other) == REWIRE_DEVICE_OK);
    CHECK(api.synchronize(api.context, device.id, other) == REWIRE_DEVICE_OK);
  }
  CHECK(api.destroy_stream(api.context, device.id, other) == REWIRE_DEVICE_OK);
}

TEST_CASE("a struct of a device that ends before the function does not have it") {
  const TestDevice device;
  RewireDeviceApi copy = device.api;
  copy.struct_size = sizeof(copy);
  CHECK(RewireStreamWorkOf(&copy) == nullptr);
  RewireStreamWorkApi without{};
  without.device = copy;
  without.device.struct_size = sizeof(without);
  CHECK(RewireStreamWorkOf(&without.device) == nullptr);
}

// Fails the stream of the run that it has given no work.
int FailOwnStream(void*, const RewireFFIAny* args, std::int32_t, RewireFFIAny*) {
  const DLDevice device = RewireTensorOf(&args[0])->device;
  const RewireDeviceApi* api = nullptr;
  void* stream = nullptr;
  if (KernelApi()->device(device, &api, &stream) != 0) return -1;
  return RewireStreamWorkOf(api)->fail_stream(api->context, device, stream, "rank 1 has ended");
}

TEST_CASE("a run whose stream has failed fails and names the instruction, and the next run is right") {
  const TestDevice device;
  if (FailuresOf(device) == nullptr) return;
  LinkOptions options;
  options.kernels.AddFunction("test.fail_own_stream", Packed(FailOwnStream));
  VirtualMachine vm(ProgramOf("    .device gpu = " + std::string(device.api.name) + R"(:0
    .kernel test.fail_own_stream
    .func main(x: f32[2]) -> f32[2]
      %d = device_copy %x, cpu, gpu
      invoke_packed test.fail_own_stream(%d), outputs=0
      %h = device_copy %d, gpu, cpu
      ret %h
    .end
    .func well(x: f32[2]) -> f32[2]
      %d = device_copy %x, cpu, gpu
      %h = device_copy %d, gpu, cpu
      ret %h
    .end
)",
                              options));
  static constexpr float kInput[] = {3, 4};
  vm.SetInputs("main", {{TensorView(kInput, {2})}});
  const std::string message = MessageOf(vm.TryInvoke("main"));
  CHECK_THAT(message, Catch::Contains("rank 1 has ended") && Catch::Contains("main"));
  vm.SetInputs("well", {{TensorView(kInput, {2})}});
  REQUIRE(MessageOf(vm.TryInvoke("well")).empty());
  CHECK(static_cast<const float*>(vm.result().tensor().view().data())[1] == 4.0f);
}

}  // namespace
}  // namespace rewire::test
