// SPDX-License-Identifier: Apache-2.0
// Fails as it should: the file is not there.
#include <rewire/vm/vm.h>

#include <cstdio>

int main() {
  const rewire::Result<rewire::Program> program = rewire::Program::TryOpen("no_such_model.rwx");
  if (program || program.error().code() != rewire::StatusCode::kNotFound) return 1;
  std::printf("%s\n", program.error().what());
  return 0;
}
