// SPDX-License-Identifier: Apache-2.0
// The example of a device outside the tree. tests/embedding builds it there.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/support/paths.h"
#include "rewire/vm/devices.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

Program LinkTwice(const std::string& text = {}) {
  const std::string path = std::string(test::BuildDir()) + "/lib/example_device_c.so";
  const Result<const DeviceApi*> worker = OpenDevice(path);
  REQUIRE(worker);
  LinkOptions options;
  options.devices.push_back(*worker);
  REQUIRE(options.kernels.AddLibrary(path));
  const std::string program = std::string(test::SourceDir()) + "/examples/device_c/twice.asm";
  return *Program::Link(*Executable::FromModule(*(text.empty() ? AssembleFile(program) : Assemble(text))),
                        options);
}

TEST_CASE("the example of a device computes, and the host waits once in a call") {
  VirtualMachine vm(LinkTwice());
  float x[] = {1, 2, 3, 4};
  float y[4] = {};
  vm.SetInput("x", TensorView(x, {4}));
  vm.SetOutput("y", TensorView(y, {4}));
  for (int i = 0; i < 200; ++i) {
    x[3] = static_cast<float>(i);
    vm.Invoke();
    CHECK(y[0] == 4);
    CHECK(y[3] == 4 * x[3]);
  }
  CHECK(vm.device_waits().all() == 200);
}

TEST_CASE("a result stays on the example's device, and outlives its VM") {
  Value result;
  {
    VirtualMachine vm(LinkTwice());
    const float x[] = {1, 2, 3, 4};
    vm.SetInput(*vm.program().FindInput("x", "there"), TensorView(x, {4}));
    vm.Invoke("there");
    result = vm.result();
  }
  const Tensor back = *CopyToHost(result.tensor());
  CHECK(std::vector<float>(back.data<float>(), back.data<float>() + 4) == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("the example's kernel says what is wrong with a tensor") {
  VirtualMachine vm(LinkTwice(R"(
    .kernel example_worker_twice
    .func main(x: f32[4]) -> f32[4]
      %s = alloc_storage _, alignment=64, f32[4], cpu
      %a = alloc_tensor %s, _, f32[4]
      invoke_packed example_worker_twice(%x, %a), outputs=1
      ret %a
    .end)"));
  const float x[] = {1, 2, 3, 4};
  vm.SetInput("x", TensorView(x, {4}));
  CHECK(vm.TryInvoke().error().message().find("x, out: expected f32 tensors on the worker") !=
        std::string::npos);
}

}  // namespace
}  // namespace rewire
