// SPDX-License-Identifier: Apache-2.0
// Uses one header and one function of the library: whatever is wrong with the package shows here first.
#include <rewire/base/status.h>

#include <cstdio>
#include <cstring>

int main() {
  const char* name = rewire::StatusCodeName(rewire::StatusCode::kDepthLimit);
  std::printf("%s\n", name);
  return std::strcmp(name, "depth limit") == 0 ? 0 : 1;
}
