// SPDX-License-Identifier: Apache-2.0
// --explain-outputs: the copies between devices, and what reads them. No device is needed for that.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tools/run/device_copies.h"

namespace rewire::tools {
namespace {

TEST_CASE("each copy between devices is listed with its readers") {
  const Module module = *Assemble(R"(
    .device gpu = opencl:0
    .kernel double
    .kernel halve
    .func main(x: f32[2], n: i64[]) -> (f32[2], f32[2])
      %a = device_copy %x, cpu, gpu
      invoke_packed double(%a, %a), outputs=1
      invoke_packed halve(%a, %a), outputs=1
      invoke_packed halve(%a, %a), outputs=1
      %b = device_copy %a, gpu, cpu
      kill %a
      %c = device_copy %b, cpu, gpu
      %c = device_copy %n, cpu, gpu
      %one = load_consti 1
      if %c == %one goto yes else no
    yes:
      %d = device_copy %b, cpu, gpu
      %e = move %d
      goto no
    no:
      %r = alloc_adt tag=0 (%b, %x)
      ret %r
    .end)");
  const Function& function = module.functions[0];
  const std::vector<DeviceCopyPlan> copies = DeviceCopies(module, function);
  REQUIRE(copies.size() == 5);
  CHECK(copies[0].pc == 0);
  CHECK(copies[0].from == "cpu");
  CHECK(copies[0].to == "opencl:0");
  CHECK(copies[0].readers == std::vector<std::string>{"double", "halve", "device_copy"});
  CHECK(copies[1].from == "opencl:0");
  CHECK(copies[1].readers == std::vector<std::string>{"device_copy", "an output"});
  CHECK(copies[2].readers.empty());
  CHECK(copies[3].readers == std::vector<std::string>{"if"});
  CHECK(copies[4].readers == std::vector<std::string>{"what an If gives or a Loop carries"});
  const std::string text = DeviceCopiesText(module, function);
  CHECK(text.find("main@0: copies from cpu to opencl:0 for double, halve, device_copy\n") == 0);
  CHECK(text.find("for nothing that comes later in the code\n") != std::string::npos);
}

}  // namespace
}  // namespace rewire::tools
