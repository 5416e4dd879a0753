// SPDX-License-Identifier: Apache-2.0
//
// Finds and loads kernel libraries, each once per process.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/vm/kernel_set.h"

namespace rewire {

// Implements KernelSet::AddLibrary. Thread-safe.
Result<std::shared_ptr<const KernelSource>> LoadKernelLibrary(const std::string& name,
                                                              const Array<std::string>& directories);

// Held while a library is loaded or released. Without it, a library that is loaded again while its last user
// releases it would share its variables with the old one. Recursive, because a load that fails releases the
// library while it holds the mutex.
std::recursive_mutex& LoadingMutex();

}  // namespace rewire
