// SPDX-License-Identifier: Apache-2.0
//
// BoundInputs: the inputs of one VM's functions, as a host has set them.
//
// The VM has one reference to each input that is set (ObjectHeap::Pin). It is the host's value, a tensor that
// describes the host's memory, or a copy of what the program cannot use as it lies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/device/device_streams.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/input.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/account_array.h"
#include "rewire/vm/memory/vm_memory.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"

namespace rewire {

class BoundInputs {
 public:
  // All outlive this.
  BoundInputs(const Program& program, const VmMemory& memory, ObjectHeap* heap, DeviceStreams* streams)
      : program_(program), rep_(program.rep()), memory_(memory), heap_(*heap), streams_(*streams) {}
  BoundInputs(const BoundInputs&) = delete;
  BoundInputs& operator=(const BoundInputs&) = delete;

  // VirtualMachine has these under TrySetInput, TrySetInputs, TryClearInputs, TryInputReport and TryInput.
  Result<InputHandle> Resolve(const InputRef& input) const;
  Status Set(InputHandle handle, const TensorView& view, InputMode mode);
  Status Set(InputHandle handle, const Value& value);
  Status SetAll(std::uint32_t function, Span<const TensorView> tensors);
  Status Clear(std::string_view function);
  Result<InputReport> Report(InputHandle handle) const;
  [[gnu::cold]] Value ValueOf(InputHandle handle);
  // Before the VM ends.
  void DropAll();

  // Checks a value against an input's type and takes a reference to what the program will see.
  Status Take(InputHandle handle, const Value& value, RewireFFIAny* taken);

  // The inputs of a function; None for inputs that are not set. Null if the function has none, or if there is
  // no memory for them.
  RewireFFIAny* Of(std::uint32_t function) { return Of(rep_.functions[function]); }
  RewireFFIAny* Of(const LinkedFunction& linked) {
    if (linked.input_count == 0) return nullptr;
    if (values_.empty() && !Make()) return nullptr;
    return values_.data() + linked.first_input;
  }
  // The error for an input of the function that is not set.
  [[gnu::cold]] Status Missing(std::uint32_t function, const RewireFFIAny* input);

 private:
  [[gnu::cold]] bool Make() { return values_.Make(memory_.home, rep_.input_count); }
  bool Move(InputHandle handle, const TensorView& view);
  bool MayDescribeAnother(const TensorObject& object) const;
  // input_copies.cc
  TensorObject* CopyOf(const DLTensor& dl);
  [[gnu::cold]] Result<TensorObject*> CopyIfNeeded(InputHandle handle, const DLTensor& dl, InputMode mode);
  [[gnu::cold]] Result<TensorObject*> CopyToDevice(const DLTensor& from, const LinkedDevice& device);
  [[gnu::cold]] Result<TupleObject*> CopyTreeToDevice(const TupleObject& from, const LinkedDevice& device);

  const Program& program_;
  const ProgramRep& rep_;
  const VmMemory& memory_;
  ObjectHeap& heap_;
  DeviceStreams& streams_;
  AccountArray<RewireFFIAny> values_;  // of all functions one after another, made when first set
};

// Checks that a tensor with a valid form has memory for its elements. Errors: kInvalidArgument.
Status CheckMemory(const DLTensor& dl);

// A name for messages: "function main, input 0 (x)".
std::string InputText(const Function& function, std::uint32_t index);

}  // namespace rewire
