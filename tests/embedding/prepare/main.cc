// SPDX-License-Identifier: Apache-2.0
// A host prepares a model before it runs it: its parameters as a set, and the memory that a run can need.
#include <rewire/vm/vm.h>

#include <cstdio>

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "model.rwx";
  const rewire::Result<rewire::ParameterSet> parameters = rewire::ParameterSet::Open(path);
  const rewire::Result<rewire::Executable> executable = rewire::Executable::Open(path);
  if (!parameters || !executable) {
    std::puts((parameters ? executable.error() : parameters.error()).what());
    return 1;
  }
  const rewire::Result<rewire::Program> program = rewire::Program::Link(*executable);
  if (!program) {
    std::puts(program.error().what());
    return 1;
  }
  const rewire::Result<rewire::MemoryBound> bound = program->TryMemoryBound("flatten");
  if (!bound || !bound->bounded()) {
    std::puts(bound ? bound->unbounded.c_str() : bound.error().what());
    return 1;
  }
  std::printf("%zu parameters, flatten takes at most %llu bytes\n", parameters->size(),
              static_cast<unsigned long long>(bound->bytes));
}
