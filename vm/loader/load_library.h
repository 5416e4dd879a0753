// SPDX-License-Identifier: Apache-2.0
// Finding and loading kernel libraries, each once per process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "vm/loader/kernel_set.h"

namespace rewire {

// What KernelSet::AddLibrary does. Thread-safe.
Result<std::shared_ptr<const KernelSource>> LoadKernelLibrary(const std::string& name,
                                                              const std::vector<std::string>& directories);

}  // namespace rewire
