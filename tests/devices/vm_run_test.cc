// SPDX-License-Identifier: Apache-2.0
//
// vm-run's options for devices, on the device that REWIRE_TEST_DEVICE names.
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::test {
namespace {

using nlohmann::json;

// y = 4 x, of which `last` makes the second half.
std::string Quadruple(const std::string& last) {
  return ".device gpu = " + DeviceName() + R"(:0
.kernel rewire.device.add
.kernel rewire.add
.func main(x: f32[4]) -> y: f32[4]
  %d = device_copy %x, cpu, gpu
  %s = alloc_storage _, alignment=256, f32[4], gpu
  %twice = alloc_tensor %s, _, f32[4]
  invoke_packed rewire.device.add(%d, %d, %twice), outputs=1
)" + last +
         R"(
  ret %y
.end
)";
}

constexpr char kOnDevice[] = R"(
  %t = alloc_storage _, alignment=256, f32[4], gpu
  %all = alloc_tensor %t, _, f32[4]
  invoke_packed rewire.device.add(%twice, %twice, %all), outputs=1
  %y = device_copy %all, gpu, cpu
)";
constexpr char kOnHost[] = R"(
  %h = device_copy %twice, gpu, cpu
  %t = alloc_storage _, alignment=64, f32[4], cpu
  %y = alloc_tensor %t, _, f32[4]
  invoke_packed rewire.add(%h, %h, %y), outputs=1
)";

class Recorded {
 public:
  explicit Recorded(const std::string& program) { folder_.Write("program.asm", program); }

  Finished Run(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"program.asm", "-i", "x=4xf32=1,2,3,4", "--record-device"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram("vm-run", arguments, folder_.path());
  }
  // The outputs must be right in every case.
  json Json() const {
    const Finished finished = Run({"--repeat", "3", "--json"});
    INFO(finished.out + finished.err);
    REQUIRE(finished.exit_code == 0);
    json is = json::parse(finished.out);
    CHECK(is["outputs"][0]["data"] == json({4, 8, 12, 16}));
    return is;
  }

 private:
  TempFolder folder_;
};

TEST_CASE("vm-run --record-device replays a recording of the device's work") {
  const Recorded program(Quadruple(kOnDevice));
  CHECK(program.Json()["recorded_device"] == true);  // after all runs
  const Finished told = program.Run({"-e", "y=4xf32=4,8,12,16", "--repeat", "3"});
  INFO(told.out + told.err);
  CHECK(told.exit_code == 0);
  CHECK((told.out + told.err).find("not recorded") == std::string::npos);
}

TEST_CASE("vm-run --record-device says why a run cannot be recorded, and runs it without") {
  const Recorded mixed(Quadruple(kOnHost));
  const json is = mixed.Json();
  CHECK(is["recorded_device"] == false);
  // The instruction and the reason.
  CHECK_THAT(is["not_recorded"].get<std::string>(),
             Catch::StartsWith("main@") && Catch::Contains("invoke_packed rewire.add") &&
                 Catch::EndsWith("the run cannot be recorded: the host waits, because a kernel on the host "
                                 "read a copy"));
  const Finished told = mixed.Run({});
  CHECK(told.exit_code == 0);
  CHECK_THAT(told.out + told.err, Catch::Contains("not recorded: main@"));

  const Recorded alone(".func main(x: f32[4]) -> y: f32[4]\n  ret %x\n.end\n");
  const Finished none = alone.Run({"--json"});
  REQUIRE(none.exit_code == 0);
  CHECK(json::parse(none.out)["not_recorded"] ==
        "function main gives no work to a device, there is nothing to record");

  const Finished refused = mixed.Run({"--trace"});
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err, Catch::Contains("--record-device") && Catch::Contains("--trace"));
}

TEST_CASE("vm-run --devices lists what is there, and says what is missing of the rest") {
  const TempFolder folder;
  const Finished listed = RunProgram("vm-run", {"--devices", "--json"}, folder.path());
  INFO(listed.out + listed.err);
  REQUIRE(listed.exit_code == 0);
  const json is = json::parse(listed.out);
  const auto& devices = is["devices"];
  CHECK(devices[0]["device"] == "cpu:0");
  const auto own = std::find_if(devices.begin(), devices.end(),
                                [](const json& each) { return each["device"] == DeviceName() + ":0"; });
  REQUIRE(own != devices.end());
  const TestDevice device;
  CHECK((*own)["name"] == device.properties().name);
  CHECK((*own)["driver"] == device.properties().driver);
  // A driver may compute its memory from what the machine has free, which changes between two processes.
  CHECK((*own)["memory_bytes"] > 1 << 20);
  for (const json& missing : is["missing"]) {
    CHECK(missing["device"] != DeviceName());
    CHECK(missing["reason"] != "");
  }
  CHECK_THAT(RunProgram("vm-run", {"--devices"}, folder.path()).out,
             Catch::Contains(DeviceName() + ":0") && Catch::Contains(device.properties().name));
}

}  // namespace
}  // namespace rewire::test
