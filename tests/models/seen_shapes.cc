// SPDX-License-Identifier: Apache-2.0
// Runs an executable over several sets of inputs in turn and counts what it allocates once it has seen each
// of them: by the program's allocator, and by malloc for all that kernels and the VM do for themselves.
//
//   seen_shapes model.rwx FOLDER...      a folder has an .npy file for each input
//
// Exits with 1 when anything is allocated.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/tests/support/malloc_watch.h"
#include "rewire/tests/support/test_allocator.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/vm/vm.h"

namespace rewire::test {
namespace {

using Inputs = std::vector<std::pair<std::string, Tensor>>;

Result<Inputs> ReadInputs(const std::string& folder) {
  Inputs inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Result<HostTensor> read = ReadNpy(entry.path().string());
    if (!read) return Forward(read);
    Result<Tensor> tensor = tools::ToTensor(*read);
    if (!tensor) return Forward(tensor);
    inputs.emplace_back(entry.path().stem().string(), *std::move(tensor));
  }
  return inputs;
}

Status RunOver(const Inputs& inputs, VirtualMachine* vm) {
  for (const auto& [name, tensor] : inputs) {
    if (Status set = vm->TrySetInput(name, tensor.view()); !set) return set;
  }
  Status ran = vm->TryInvoke();
  vm->DropResult();
  return ran;
}

Status Run(const std::string& path, const std::vector<std::string>& folders, int* faults) {
  const Result<Executable> executable = Executable::Open(path);
  if (!executable) return Forward(executable);
  TestAllocator allocator;
  LinkOptions options;
  options.allocator = allocator.allocator();
  const Result<Program> program = Program::Link(*executable, std::move(options));
  if (!program) return Forward(program);
  std::vector<Inputs> sets;
  for (const std::string& folder : folders) {
    Result<Inputs> inputs = ReadInputs(folder);
    if (!inputs) return Forward(inputs);
    sets.push_back(*std::move(inputs));
  }
  VirtualMachine vm(*program);
  for (const Inputs& inputs : sets) {
    if (Status ran = RunOver(inputs, &vm); !ran) return ran;
  }
  // Past two windows of what the VM remembers.
  for (std::size_t i = 0; i < 40 * sets.size(); ++i) {
    const std::size_t which = i % sets.size();
    const std::int64_t before = allocator.calls();
    StartMallocWatch();
    Status ran = RunOver(sets[which], &vm);
    const std::uint64_t mallocs = StopMallocWatch();
    if (!ran) return ran;
    if (allocator.calls() == before && mallocs == 0) continue;
    fmt::print("run {} over {}: {} allocations of the program, {} of malloc\n", i, folders[which],
               allocator.calls() - before, mallocs);
    if (++*faults == 3) break;
  }
  return {};
}

}  // namespace
}  // namespace rewire::test

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: seen_shapes model.rwx FOLDER...\n");
    return 2;
  }
  int faults = 0;
  const rewire::Status status =
      rewire::test::Run(argv[1], std::vector<std::string>(argv + 2, argv + argc), &faults);
  if (!status) fmt::print(stderr, "seen_shapes: {}\n", status.error().message());
  return status && faults == 0 ? 0 : 1;
}
