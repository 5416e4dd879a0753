// SPDX-License-Identifier: Apache-2.0
// Finding and loading kernel libraries, each once per process.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/array.h"
#include "base/status.h"
#include "vm/loader/kernel_set.h"

namespace rewire {

// What KernelSet::AddLibrary does. Thread-safe.
Result<std::shared_ptr<const KernelSource>> LoadKernelLibrary(const std::string& name,
                                                              const Array<std::string>& directories);

// Held while a library is loaded or let go. One that is loaded again while its last user lets go shares its
// variables with the one that goes. Recursive: a load that fails lets go under it.
std::recursive_mutex& LoadingMutex();

}  // namespace rewire
