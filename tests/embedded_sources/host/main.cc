// SPDX-License-Identifier: Apache-2.0
// Has a base/status.h of its own, and includes Rewire's as well.
#include <rewire/vm/vm.h>

#include <cstdio>

#include "base/status.h"

int main() try {
  rewire::Program::Open("no_such_model.rwx");
  return 1;
} catch (const rewire::Error& error) {
  const Status status = HostStatus(static_cast<int>(error.code()));
  std::printf("%d: %s\n", status.code, error.what());
  return 0;
}
