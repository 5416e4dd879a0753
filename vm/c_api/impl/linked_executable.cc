// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/linked_executable.h"

#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Status;
using rewire::c_api::Boundary;
using rewire::c_api::Given;

RewireStatus rewire_executable_open_linked(const RewireLinkedExecutable* linked, RewireExecutable** out) {
  return Boundary(Given("linked,out", linked, out),
                  [&]() -> Status { return rewire::c_api::GiveMade(rewire::OpenLinked(*linked), out); });
}
