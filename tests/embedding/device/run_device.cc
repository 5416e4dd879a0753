// SPDX-License-Identifier: Apache-2.0
// run_device LIBRARY: runs twice.rwx of this folder on the device of the library.
#include <rewire/vm/devices.h>
#include <rewire/vm/vm.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  rewire::LinkOptions options;
  if (rewire::Status loaded = options.kernels.AddLibrary(argv[1]); !loaded)
    throw rewire::Error(loaded.error());
  const rewire::Result<const rewire::DeviceApi*> worker = rewire::OpenDevice(argv[1]);
  if (!worker) throw rewire::Error(worker.error());
  options.devices.push_back(*worker);
  rewire::VirtualMachine vm(rewire::Program::Open("twice.rwx", options));
  const float x[] = {1, 2, 3, 4};
  float y[4] = {};
  vm.SetInput("x", rewire::TensorView(x, {4}));
  vm.SetOutput("y", rewire::TensorView(y, {4}));
  vm.Invoke();
  std::printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  return y[0] == 4 && y[3] == 16 ? 0 : 1;
} catch (const rewire::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
