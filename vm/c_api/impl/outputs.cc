// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/outputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"
#include "rewire/vm/output.h"

using rewire::Fail;
using rewire::Forward;
using rewire::InputHandle;
using rewire::InputRef;
using rewire::OutputBinding;
using rewire::OutputHandle;
using rewire::OutputRef;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::Value;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::NameOrEntry;
using rewire::c_api::Require;

namespace {

OutputRef RefOf(RewireOutput output) { return OutputRef(OutputHandle{output.function, output.leaf}); }

Status SetOutput(RewireVm* vm, const OutputRef& output, const DLTensor* tensor) {
  if (Status ok = Require("vm", vm); !ok) return ok;
  const auto view = rewire::c_api::ViewOf(tensor, "tensor");
  if (!view) return Forward(view);
  return vm->machine.TrySetOutput(output, *view);
}

Result<rewire::Array<OutputBinding>> BindingsOf(const RewireOutput* outputs, const DLTensor* const* tensors,
                                                std::uint32_t count) {
  if (count > 0) {
    if (Status ok = Require("outputs,tensors", outputs, tensors); !ok) return Forward(ok);
  }
  rewire::Array<OutputBinding> bindings;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto view = rewire::c_api::ViewOf(tensors[i], "a tensor");
    if (!view) return Forward(view);
    bindings.push_back({RefOf(outputs[i]), *view});
  }
  return bindings;
}

// Runs into tensors that the call has taken over. Each is a value, or the reason why it is none. They are
// released when this returns.
Status CallInto(RewireVm* vm, std::uint32_t function, const RewireValue* const* inputs,
                std::uint32_t input_count, const RewireOutput* outputs, rewire::Array<Result<Value>> taken) {
  if (!taken.empty()) {
    if (Status ok = Require("outputs", outputs); !ok) return ok;
  }
  const Result<const rewire::Function*> target = rewire::c_api::FunctionAt(vm, function);
  if (!target) return Forward(target);
  const Result<rewire::Array<Value>> values = rewire::c_api::ValuesOf("inputs", inputs, input_count);
  if (!values) return Forward(values);
  rewire::Array<OutputBinding> bindings;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) return Forward(taken[i], {"tensors[{}]", i});
    bindings.push_back({RefOf(outputs[i]), taken[i]->tensor().view()});
  }
  return vm->machine.TryInvoke((*target)->name, *values, bindings);
}

// All tensors are taken over before anything else can fail.
template <typename Managed>
Result<rewire::Array<Result<Value>>> TakeAll(Managed* const* tensors, std::uint32_t count) {
  if (count > 0) {
    if (Status ok = Require("tensors", tensors); !ok) return Forward(ok);
  }
  rewire::Array<Result<Value>> taken;
  for (std::uint32_t i = 0; i < count; ++i) taken.push_back(rewire::c_api::TakeDLPack(tensors[i]));
  return taken;
}

template <typename Managed>
Status CallIntoManaged(RewireVm* vm, std::uint32_t function, const RewireValue* const* inputs,
                       std::uint32_t input_count, const RewireOutput* outputs, Managed* const* tensors,
                       std::uint32_t output_count) {
  Result<rewire::Array<Result<Value>>> taken = TakeAll(tensors, output_count);
  if (!taken) return Forward(taken);
  return CallInto(vm, function, inputs, input_count, outputs, *std::move(taken));
}

// The arguments of a stateless run, as C++ has them.
struct Run {
  std::string function;
  rewire::Array<Value> inputs;
  rewire::Limits limits;
};

Result<Run> RunOf(const RewireProgram& program, std::uint32_t function, const RewireLimits* limits,
                  const RewireValue* const* inputs, std::uint32_t input_count) {
  const auto& functions = program.program.executable().module().functions;
  if (function >= functions.size()) {
    return rewire::c_api::OutOfRange("function", function, functions.size());
  }
  Result<rewire::Array<Value>> values = rewire::c_api::ValuesOf("inputs", inputs, input_count);
  if (!values) return Forward(values);
  rewire::Limits read;
  if (Status ok = rewire::c_api::LimitsOf(limits, &read); !ok) return ok;
  return Run{functions[function].name, *std::move(values), read};
}

}  // namespace

RewireStatus rewire_vm_set_output(RewireVm* vm, RewireOutput output, const DLTensor* tensor) {
  return Boundary([&] { return SetOutput(vm, RefOf(output), tensor); });
}

RewireStatus rewire_vm_set_output_by_name(RewireVm* vm, const char* name, const DLTensor* tensor) {
  return Boundary(Given("name", name), [&]() -> Status { return SetOutput(vm, OutputRef(name), tensor); });
}

RewireStatus rewire_vm_set_output_by_index(RewireVm* vm, uint32_t leaf, const DLTensor* tensor) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    const Result<OutputHandle> handle = vm->machine.program().FindOutput(leaf);
    if (!handle) return Forward(handle);
    return SetOutput(vm, OutputRef(*handle), tensor);
  });
}

RewireStatus rewire_vm_set_output_value(RewireVm* vm, RewireOutput output, const RewireValue* tensor) {
  return Boundary(Given("vm,tensor", vm, tensor), [&]() -> Status {
    if (tensor->value.kind() != rewire::ValueKind::kTensor) {
      return Fail(StatusCode::kInvalidArgument, "the value is of kind {}, tensor expected",
                  ValueKindName(tensor->value.kind()));
    }
    return vm->machine.TrySetOutput(RefOf(output), tensor->value.tensor());
  });
}

RewireStatus rewire_vm_set_output_capacity(RewireVm* vm, RewireOutput output, void* data, uint64_t bytes,
                                           DLDevice device) {
  return Boundary(Given("vm,data", vm, data), [&]() -> Status {
    return vm->machine.TrySetOutput(RefOf(output), rewire::OutputCapacity{data, bytes, device});
  });
}

RewireStatus rewire_vm_set_output_allocator(RewireVm* vm, RewireOutput output,
                                            void* (*allocate)(void* context, uint64_t bytes,
                                                              uint64_t alignment),
                                            void* context, DLDevice device) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    if (allocate == nullptr) return Fail(StatusCode::kInvalidArgument, "allocate is NULL");
    return vm->machine.TrySetOutput(RefOf(output), rewire::OutputAllocator{context, allocate, device});
  });
}

RewireStatus rewire_vm_donate(RewireVm* vm, RewireInput input, RewireOutput output) {
  return Boundary(Given("vm", vm), [&]() -> Status {
    return vm->machine.TryDonate(InputRef(InputHandle{input.function, input.index}), RefOf(output));
  });
}

RewireStatus rewire_vm_clear_output(RewireVm* vm, RewireOutput output) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryClearOutput(RefOf(output)); });
}

RewireStatus rewire_vm_clear_outputs(RewireVm* vm, const char* function) {
  return Boundary(Given("vm", vm),
                  [&]() -> Status { return vm->machine.TryClearOutputs(NameOrEntry(function)); });
}

RewireStatus rewire_vm_require_zero_copy(RewireVm* vm, int32_t required) {
  return Boundary(Given("vm", vm), [&]() -> Status { return vm->machine.TryRequireZeroCopy(required != 0); });
}

RewireStatus rewire_vm_call_into(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                 uint32_t input_count, const RewireOutput* outputs,
                                 const DLTensor* const* tensors, uint32_t output_count) {
  return Boundary([&]() -> Status {
    const Result<const rewire::Function*> target = rewire::c_api::FunctionAt(vm, function);
    if (!target) return Forward(target);
    const Result<rewire::Array<Value>> values = rewire::c_api::ValuesOf("inputs", inputs, input_count);
    if (!values) return Forward(values);
    const Result<rewire::Array<OutputBinding>> bindings = BindingsOf(outputs, tensors, output_count);
    if (!bindings) return Forward(bindings);
    return vm->machine.TryInvoke((*target)->name, *values, *bindings);
  });
}

RewireStatus rewire_vm_call_into_dlpack(RewireVm* vm, uint32_t function, const RewireValue* const* inputs,
                                        uint32_t input_count, const RewireOutput* outputs,
                                        DLManagedTensor* const* tensors, uint32_t output_count) {
  return Boundary(
      [&] { return CallIntoManaged(vm, function, inputs, input_count, outputs, tensors, output_count); });
}

RewireStatus rewire_vm_call_into_dlpack_versioned(RewireVm* vm, uint32_t function,
                                                  const RewireValue* const* inputs, uint32_t input_count,
                                                  const RewireOutput* outputs,
                                                  DLManagedTensorVersioned* const* tensors,
                                                  uint32_t output_count) {
  return Boundary(
      [&] { return CallIntoManaged(vm, function, inputs, input_count, outputs, tensors, output_count); });
}

RewireStatus rewire_program_run(const RewireProgram* program, uint32_t function, const RewireLimits* limits,
                                const RewireValue* const* inputs, uint32_t input_count,
                                RewireValue** result) {
  return Boundary(Given("program", program), [&]() -> Status {
    const Result<Run> run = RunOf(*program, function, limits, inputs, input_count);
    if (!run) return Forward(run);
    Result<Value> value = program->program.TryRun(run->function, run->inputs, run->limits);
    if (!value) return Forward(value);
    if (result != nullptr) rewire::c_api::Give(*std::move(value), result);
    return {};
  });
}

RewireStatus rewire_program_run_into(const RewireProgram* program, uint32_t function,
                                     const RewireLimits* limits, const RewireValue* const* inputs,
                                     uint32_t input_count, const RewireOutput* outputs,
                                     const DLTensor* const* tensors, uint32_t output_count) {
  return Boundary(Given("program", program), [&]() -> Status {
    const Result<Run> run = RunOf(*program, function, limits, inputs, input_count);
    if (!run) return Forward(run);
    const Result<rewire::Array<OutputBinding>> bindings = BindingsOf(outputs, tensors, output_count);
    if (!bindings) return Forward(bindings);
    return program->program.TryRun(run->function, run->inputs, *bindings, run->limits);
  });
}

RewireStatus rewire_program_output_plan(const RewireProgram* program, RewireOutput output, int32_t* rewired,
                                        char* text, size_t capacity, size_t* length) {
  return Boundary(Given("program", program), [&]() -> Status {
    const OutputHandle handle{output.function, output.leaf};
    const Result<rewire::OutputPlan> plan = program->program.TryOutputPlan(handle);
    if (!plan) return Forward(plan);
    const std::string words = program->program.ExplainOutput(handle);
    if (Status ok = rewire::c_api::WriteText(words, text, capacity, length); !ok) return ok;
    if (rewired != nullptr) *rewired = plan->rewired ? 1 : 0;
    return {};
  });
}

RewireStatus rewire_vm_output_shape(const RewireVm* vm, RewireOutput output, int64_t* dims, uint32_t capacity,
                                    uint32_t* rank) {
  return Boundary(Given("vm,rank", vm, rank), [&]() -> Status {
    if (capacity > 0) {
      if (Status ok = Require("dims", dims); !ok) return ok;
    }
    const Result<std::vector<std::int64_t>> shape = vm->machine.TryOutputShape(RefOf(output));
    if (!shape) return Forward(shape);
    std::copy_n(shape->begin(), std::min<std::size_t>(capacity, shape->size()), dims);
    *rank = static_cast<std::uint32_t>(shape->size());
    return {};
  });
}

RewireStatus rewire_vm_output_report(const RewireVm* vm, RewireOutput output, int32_t* copied, char* reason,
                                     size_t capacity, size_t* length) {
  return Boundary(Given("vm,copied", vm, copied), [&]() -> Status {
    const Result<rewire::OutputReport> report = vm->machine.TryOutputReport(RefOf(output));
    if (!report) return Forward(report);
    if (Status ok = rewire::c_api::WriteText(report->reason, reason, capacity, length); !ok) return ok;
    *copied = report->copied ? 1 : 0;
    return {};
  });
}
