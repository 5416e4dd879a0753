// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/machine.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/c_api/impl/services.h"

using rewire::Fail;
using rewire::Forward;
using rewire::InputHandle;
using rewire::InputRef;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::Value;
using rewire::c_api::Boundary;
using rewire::c_api::FunctionAt;
using rewire::c_api::Give;
using rewire::c_api::GiveManaged;
using rewire::c_api::Given;
using rewire::c_api::NameOrEntry;
using rewire::c_api::Require;

namespace rewire::c_api {

Result<const Function*> FunctionAt(const RewireVm* vm, std::uint32_t index) {
  if (Status ok = Require("vm", vm); !ok) return Forward(ok);
  return FunctionOf(vm->machine.program().executable(), index);
}

Result<const Function*> FunctionOf(const rewire::Executable& executable, std::uint32_t index) {
  const rewire::Array<Function>& functions = executable.module().functions;
  if (index >= functions.size()) return OutOfRange("function", index, functions.size());
  return &functions[index];
}

}  // namespace rewire::c_api

namespace {

InputRef RefOf(RewireInput input) { return InputRef(InputHandle{input.function, input.index}); }

Status SetInput(RewireVm* vm, const InputRef& input, const DLTensor* tensor, RewireInputMode mode) {
  if (Status ok = Require("vm", vm); !ok) return ok;
  if (mode != kRewireBorrow && mode != kRewireCopy)
    return Fail(StatusCode::kInvalidArgument, "there is no input mode {}", mode);
  const auto view = rewire::c_api::ViewOf(tensor, "tensor");
  if (!view) return Forward(view);
  return vm->machine.TrySetInput(input, *view,
                                 mode == kRewireCopy ? rewire::InputMode::kCopy : rewire::InputMode::kBorrow);
}

template <typename Managed>
Status SetManaged(RewireVm* vm, RewireInput input, Managed* managed) {
  const Result<Value> value = rewire::c_api::TakeDLPack(managed);
  if (!value) return Forward(value);
  if (Status ok = Require("vm", vm); !ok) return ok;
  return vm->machine.TrySetInput(RefOf(input), *value);
}

Result<rewire::Tensor> OutputTensor(const RewireVm* vm, std::uint32_t leaf) {
  if (Status ok = Require("vm", vm); !ok) return Forward(ok);
  const Result<Value> value = vm->machine.TryOutput(leaf);
  if (!value) return Forward(value);
  if (value->kind() == rewire::ValueKind::kTensor) return value->tensor();
  return Fail(StatusCode::kInvalidArgument,
              "output {} is of kind {}, tensor expected; rewire_vm_output gives it", leaf,
              ValueKindName(value->kind()));
}

}  // namespace

RewireStatus rewire_vm_make(const RewireProgram* program, const RewireLimits* limits, RewireVm** out) {
  return Boundary(Given("program,out", program, out), [&]() -> Status {
    rewire::Limits read;
    if (Status ok = rewire::c_api::LimitsOf(limits, &read); !ok) return ok;
    *out = new RewireVm(program->program, read);
    return {};
  });
}

void rewire_vm_destroy(RewireVm* vm) { delete vm; }

RewireStatus rewire_vm_set_input(RewireVm* vm, RewireInput input, const DLTensor* tensor,
                                 RewireInputMode mode) {
  return Boundary([&] { return SetInput(vm, RefOf(input), tensor, mode); });
}

RewireStatus rewire_vm_set_input_by_name(RewireVm* vm, const char* name, const DLTensor* tensor,
                                         RewireInputMode mode) {
  return Boundary(Given("name", name),
                  [&]() -> Status { return SetInput(vm, InputRef(name), tensor, mode); });
}

RewireStatus rewire_vm_set_input_by_index(RewireVm* vm, uint32_t index, const DLTensor* tensor,
                                          RewireInputMode mode) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    const Result<InputHandle> handle = vm->machine.program().FindInput(index);
    if (!handle) return Forward(handle);
    return SetInput(vm, InputRef(*handle), tensor, mode);
  });
}

RewireStatus rewire_vm_set_input_dlpack(RewireVm* vm, RewireInput input, DLManagedTensor* managed) {
  return Boundary([&] { return SetManaged(vm, input, managed); });
}

RewireStatus rewire_vm_set_input_dlpack_versioned(RewireVm* vm, RewireInput input,
                                                  DLManagedTensorVersioned* managed) {
  return Boundary([&] { return SetManaged(vm, input, managed); });
}

RewireStatus rewire_vm_set_input_value(RewireVm* vm, RewireInput input, const RewireValue* value) {
  return Boundary(Given("vm,value", vm, value),
                  [&]() -> Status { return vm->machine.TrySetInput(RefOf(input), value->value); });
}

RewireStatus rewire_vm_set_inputs(RewireVm* vm, uint32_t function, const DLTensor* const* tensors,
                                  uint32_t count, RewireInputMode mode) {
  return Boundary([&]() -> Status {
    const Result<const rewire::Function*> target = FunctionAt(vm, function);
    if (!target) return Forward(target);
    if (count != (*target)->inputs.size()) {
      return Fail(StatusCode::kInvalidArgument, "function {} takes {} inputs, {} given", (*target)->name,
                  (*target)->inputs.size(), count);
    }
    if (count > 0) {
      if (Status ok = Require("tensors", tensors); !ok) return ok;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (Status ok = SetInput(vm, RefOf({function, i}), tensors[i], mode); !ok) return ok;
    }
    return {};
  });
}

RewireStatus rewire_vm_input_report(const RewireVm* vm, RewireInput input, int32_t* copied, char* reason,
                                    size_t capacity, size_t* length) {
  return Boundary(Given("vm,copied", vm, copied), [&]() -> Status {
    const Result<rewire::InputReport> report = vm->machine.TryInputReport(RefOf(input));
    if (!report) return Forward(report);
    if (Status ok = rewire::c_api::WriteText(report->reason, reason, capacity, length); !ok) return ok;
    *copied = report->copied ? 1 : 0;
    return {};
  });
}

RewireStatus rewire_vm_clear_inputs(RewireVm* vm, const char* function) {
  return Boundary(Given("vm", vm),
                  [&]() -> Status { return vm->machine.TryClearInputs(NameOrEntry(function)); });
}

RewireStatus rewire_vm_invoke(RewireVm* vm, const char* function) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryInvoke(NameOrEntry(function)); });
}

RewireStatus rewire_vm_invoke_function(RewireVm* vm, uint32_t function) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryInvoke(function); });
}

RewireStatus rewire_vm_call(RewireVm* vm, uint32_t function, const RewireValue* const* inputs, uint32_t count,
                            RewireValue** result) {
  return Boundary([&]() -> Status {
    const Result<const rewire::Function*> target = FunctionAt(vm, function);
    if (!target) return Forward(target);
    const Result<rewire::Array<Value>> values = rewire::c_api::ValuesOf("inputs", inputs, count);
    if (!values) return Forward(values);
    Result<Value> value = vm->machine.TryInvoke((*target)->name, *values);
    if (!value) return Forward(value);
    if (result != nullptr) Give(*std::move(value), result);
    return {};
  });
}

RewireStatus rewire_vm_result(const RewireVm* vm, RewireValue** out) {
  return Boundary(Given("vm,out", vm, out), [&]() -> Status {
    const Value& result = vm->machine.result();
    if (result.kind() == rewire::ValueKind::kNone)
      return Fail(StatusCode::kInvalidArgument, "there is no result; invoke first");
    Give(result, out);
    return {};
  });
}

RewireStatus rewire_vm_output(const RewireVm* vm, uint32_t leaf, RewireValue** out) {
  return Boundary(Given("vm,out", vm, out),
                  [&]() -> Status { return rewire::c_api::GiveMade(vm->machine.TryOutput(leaf), out); });
}

RewireStatus rewire_vm_output_by_name(const RewireVm* vm, const char* name, RewireValue** out) {
  return Boundary(Given("vm,name,out", vm, name, out), [&]() -> Status {
    return rewire::c_api::GiveMade(vm->machine.TryOutput(std::string_view(name)), out);
  });
}

RewireStatus rewire_vm_output_tensor(const RewireVm* vm, uint32_t leaf, DLTensor* tensor) {
  return Boundary([&]() -> Status {
    const Result<rewire::Tensor> output = OutputTensor(vm, leaf);
    if (!output) return Forward(output);
    if (Status ok = Require("tensor", tensor); !ok) return ok;
    *tensor = output->dl();  // the VM's result keeps the object
    return {};
  });
}

RewireStatus rewire_vm_output_dlpack(const RewireVm* vm, uint32_t leaf, DLManagedTensor** out) {
  return Boundary([&]() -> Status {
    const Result<rewire::Tensor> output = OutputTensor(vm, leaf);
    if (!output) return Forward(output);
    if (Status ok = Require("out", out); !ok) return ok;
    return GiveManaged(output->ToDLPack(), out);
  });
}

RewireStatus rewire_vm_output_dlpack_versioned(const RewireVm* vm, uint32_t leaf,
                                               DLManagedTensorVersioned** out) {
  return Boundary([&]() -> Status {
    const Result<rewire::Tensor> output = OutputTensor(vm, leaf);
    if (!output) return Forward(output);
    if (Status ok = Require("out", out); !ok) return ok;
    return GiveManaged(output->ToDLPackVersioned(), out);
  });
}

RewireStatus rewire_vm_set_limits(RewireVm* vm, const RewireLimits* limits) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    rewire::Limits read;
    if (Status ok = rewire::c_api::LimitsOf(limits, &read); !ok) return ok;
    return vm->machine.TrySetLimits(read);
  });
}

RewireStatus rewire_vm_cancel(RewireVm* vm) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    vm->machine.Cancel();
    return {};
  });
}

RewireStatus rewire_vm_set_timeout(RewireVm* vm, int64_t nanoseconds) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point now = Clock::now();
    const std::chrono::nanoseconds wait(nanoseconds);
    const bool none = nanoseconds < 0 || wait > Clock::time_point::max() - now;
    return vm->machine.TrySetDeadline(none ? Clock::time_point::max() : now + wait);
  });
}

RewireStatus rewire_vm_bytes_held(const RewireVm* vm, uint64_t* bytes) {
  return Boundary(Given("vm,bytes", vm, bytes), [&]() -> Status {
    *bytes = vm->machine.bytes_held();
    return {};
  });
}

RewireStatus rewire_vm_bytes_peak(const RewireVm* vm, uint64_t* bytes) {
  return Boundary(Given("vm,bytes", vm, bytes), [&]() -> Status {
    *bytes = vm->machine.bytes_peak();
    return {};
  });
}

RewireStatus rewire_vm_trim(RewireVm* vm) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryTrim(); });
}

RewireStatus rewire_vm_set_observer(RewireVm* vm, const RewireObserver* observer) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    Result<std::unique_ptr<rewire::Observer>> made = rewire::c_api::MakeHostObserver(observer);
    if (!made) return Forward(made);
    if (Status ok = vm->machine.TrySetObserver(made->get()); !ok) return ok;
    vm->observer = *std::move(made);
    return {};
  });
}
