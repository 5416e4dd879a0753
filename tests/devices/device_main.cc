// SPDX-License-Identifier: Apache-2.0
//
// The main function of tests of devices. The environment variable REWIRE_TEST_DEVICE names the library of
// devices. Without its driver the program ends with 77, which ctest counts as skipped.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>

#include "rewire/tests/devices/test_device.h"
#include "rewire/vm/devices.h"

int main(int argc, char** argv) {
  const rewire::Result<const RewireDeviceApi*> opened = rewire::OpenDevice(rewire::test::DeviceName());
  if (!opened) {
    std::printf("skipped: device %s: %s\n", rewire::test::DeviceName().c_str(),
                opened.error().message().c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
