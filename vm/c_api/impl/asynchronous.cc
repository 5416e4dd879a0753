// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/asynchronous.h"

#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Forward;
using rewire::Result;
using rewire::Status;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::NameOrEntry;

RewireStatus rewire_vm_invoke_async(RewireVm* vm, const char* function) {
  return Boundary(Given("vm", vm),
                  [&]() -> Status { return vm->machine.TryInvokeAsync(NameOrEntry(function)); });
}

RewireStatus rewire_vm_wait(RewireVm* vm) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryWait(); });
}

RewireStatus rewire_vm_set_stream(RewireVm* vm, DLDevice device, void* stream) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TrySetStream(device, stream); });
}

RewireStatus rewire_vm_done_event(RewireVm* vm, DLDevice device, void** event) {
  return Boundary(Given("vm,event", vm, event), [&]() -> Status {
    const Result<void*> done = vm->machine.TryDoneEvent(device);
    if (!done) return Forward(done);
    *event = *done;
    return {};
  });
}

RewireStatus rewire_vm_wait_for_event(RewireVm* vm, DLDevice device, void* event) {
  return Boundary(Given("vm,event", vm, event),
                  [&]() -> Status { return vm->machine.TryWaitForEvent(device, event); });
}

RewireStatus rewire_vm_record(RewireVm* vm, const char* function) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryRecord(NameOrEntry(function)); });
}

RewireStatus rewire_vm_set_automatic_recording(RewireVm* vm, std::int32_t automatic) {
  return Boundary(Given("vm", vm),
                  [&]() -> Status { return vm->machine.TrySetAutomaticRecording(automatic != 0); });
}
