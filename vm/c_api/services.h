// SPDX-License-Identifier: Apache-2.0
// The C structs of functions that a host gives, as the C++ interfaces that the VM calls.
#pragma once

#include <memory>

#include "base/status.h"
#include "vm/c_api/machine.h"
#include "vm/observer.h"
#include "vm/thread_pool.h"

namespace rewire::c_api {

Result<std::shared_ptr<ThreadPool>> MakeHostPool(const RewireThreadPool& pool);
// Null for a null observer.
Result<std::unique_ptr<Observer>> MakeHostObserver(const RewireObserver* observer);

}  // namespace rewire::c_api
