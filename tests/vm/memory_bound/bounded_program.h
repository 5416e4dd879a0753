// SPDX-License-Identifier: Apache-2.0
// The tests of memory bounds share a kernel that takes no workspace, bounds, and blocks of their size.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/program.h"

namespace rewire::test {

// host.add(a, ..., b, out): out = a + b, floats; declared to take no workspace.
LinkOptions Kernels();

// The bound of the entry; the test fails when it cannot be asked for.
MemoryBound BoundOf(const Program& program, bool outputs_bound = false,
                    Array<std::pair<std::string, std::int64_t>> dims = {});

struct Freed {
  void operator()(void* block) const { std::free(block); }
};
// For a StaticMemory of so many bytes.
std::unique_ptr<void, Freed> Block(std::uint64_t bytes);

}  // namespace rewire::test
