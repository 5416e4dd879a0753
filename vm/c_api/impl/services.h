// SPDX-License-Identifier: Apache-2.0
//
// Converts the C structs of functions that a host gives to the C++ interfaces that the VM calls.
#pragma once

#include <memory>

#include "rewire/base/status.h"
#include "rewire/vm/c_api/machine.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::c_api {

Result<std::shared_ptr<ThreadPool>> MakeHostPool(const RewireThreadPool& pool);
// Returns null for a null observer.
Result<std::unique_ptr<Observer>> MakeHostObserver(const RewireObserver* observer);

}  // namespace rewire::c_api
