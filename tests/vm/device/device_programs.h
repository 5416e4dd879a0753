// SPDX-License-Identifier: Apache-2.0
//
// Programs and kernels for the fake device.
#pragma once

#include <string>

#include "rewire/tests/vm/device/fake_device.h"
#include "rewire/vm/program.h"

namespace rewire::test {

LinkOptions WithDevice(const FakeDevice& device);
// A kernel that adds one to each float of a tensor on a fake device.
void AddDeviceKernel(KernelSet* kernels, const std::string& name);
// Also with the kernels test.add_one, which gives its work to the device, and test.host_add_one.
LinkOptions WithKernels(const FakeDevice& device);

// main adds up to three on the device and has two outputs. mixed goes over the host in between.
constexpr char kChain[] = R"(
  .device fake = ext_dev:0
  .kernel test.add_one
  .kernel test.host_add_one
  .func main(x: f32[3]) -> (f32[3], f32[3])
    %s = alloc_storage _, alignment=64, f32[3], fake
    %a = alloc_tensor %s, _, f32[3]
    %d = device_copy %x, cpu, fake
    invoke_packed test.add_one(%d, %a), outputs=1
    kill %d
    %t = alloc_storage _, alignment=64, f32[3], fake
    %b = alloc_tensor %t, _, f32[3]
    invoke_packed test.add_one(%a, %b), outputs=1
    kill %a
    kill %s
    %h = device_copy %b, fake, cpu
    %u = alloc_storage _, alignment=64, f32[3], fake
    %c = alloc_tensor %u, _, f32[3]
    invoke_packed test.add_one(%b, %c), outputs=1
    kill %b
    %g = device_copy %c, fake, cpu
    %r = alloc_adt tag=0 (%h, %g)
    ret %r
  .end
  .func mixed(x: f32[3]) -> f32[3]
    %d = device_copy %x, cpu, fake
    %s = alloc_storage _, alignment=64, f32[3], fake
    %a = alloc_tensor %s, _, f32[3]
    invoke_packed test.add_one(%d, %a), outputs=1
    %h = device_copy %a, fake, cpu
    %t = alloc_storage _, alignment=64, f32[3], cpu
    %b = alloc_tensor %t, _, f32[3]
    invoke_packed test.host_add_one(%h, %b), outputs=1
    kill %h
    %e = device_copy %b, cpu, fake
    kill %b
    kill %t
    %v = alloc_storage _, alignment=64, f32[3], cpu
    %w = alloc_tensor %v, _, f32[3]
    invoke_packed test.host_add_one(%x, %w), outputs=1
    %o = device_copy %e, fake, cpu
    ret %o
  .end)";

}  // namespace rewire::test
