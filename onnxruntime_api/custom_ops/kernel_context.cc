// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/custom_ops/kernel_context.h"

#include <algorithm>
#include <utility>

#include "rewire/onnxruntime_api/custom_ops/logger.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"
#include "rewire/vm/c_api/program.h"
#include "rewire/vm/packed_function.h"
#include "rewire/vm/value.h"

namespace {

using rewire::onnxruntime_api::ValueBody;

// A value over the memory of a tensor, which stays its owner's.
OrtValue Over(const DLTensor& tensor) {
  auto body = std::make_shared<ValueBody>();
  body->type = rewire::onnxruntime_api::ElementTypeOf(tensor.dtype);
  body->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  body->data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  return {std::move(body)};
}

}  // namespace

OrtKernelContext::OrtKernelContext(const OrtKernelInfo& of, const RewireFFIAny* args, std::int32_t count)
    : info(of), outputs(of.outputs.size()) {
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    const bool given = !info.inputs[i].name.empty() && std::cmp_less(i, count);
    const DLTensor* const tensor = given ? RewireTensorOf(&args[i]) : nullptr;
    inputs.push_back(tensor == nullptr ? OrtValue() : Over(*tensor));
  }
}

OrtKernelContext::~OrtKernelContext() {
  for (const Output& output : outputs) {
    if (output.value.body != nullptr) (void)rewire::Value::Adopt(output.object);
  }
}

int OrtKernelContext::Return(RewireFFIAny* result) {
  std::vector<RewireFFIAny> fields;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    RewireFFIAny& field = fields.emplace_back(outputs[i].object);
    if (outputs[i].value.body != nullptr) continue;
    if (!info.outputs[i].name.empty()) {
      rewire::SetKernelError("ValueError", ("the custom operator did not make output " + std::to_string(i) +
                                            ", '" + info.outputs[i].name + "'")
                                               .c_str());
      return -1;
    }
    field.type_index = kRewireFFIInt;  // something in the place of an output that the node leaves out
  }
  if (fields.size() != 1)
    return rewire_kernel_api()->new_adt(0, static_cast<std::int32_t>(fields.size()), fields.data(), result);
  *result = fields[0];
  outputs[0].value.body = nullptr;  // the reference is the caller's now
  return 0;
}

namespace rewire::onnxruntime_api {

OrtStatus* KernelContext_GetInputCount(const OrtKernelContext* context, std::size_t* out) noexcept {
  *out = context->inputs.size();
  return nullptr;
}
OrtStatus* KernelContext_GetOutputCount(const OrtKernelContext* context, std::size_t* out) noexcept {
  *out = context->outputs.size();
  return nullptr;
}
// Null for an input that the node leaves out, or does not have.
OrtStatus* KernelContext_GetInput(const OrtKernelContext* context, std::size_t index,
                                  const OrtValue** out) noexcept {
  const bool given = index < context->inputs.size() && context->inputs[index].body != nullptr;
  *out = given ? &context->inputs[index] : nullptr;
  return nullptr;
}
// Null for an output that the node leaves out, or does not have.
OrtStatus* KernelContext_GetOutput(OrtKernelContext* context, std::size_t index, const std::int64_t* dims,
                                   std::size_t rank, OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = nullptr;
    if (index >= context->outputs.size()) return nullptr;
    const OrtKernelInfo::End& end = context->info.outputs[index];
    if (end.name.empty()) return nullptr;
    OrtKernelContext::Output& output = context->outputs[index];
    if (output.value.body == nullptr) {
      const DLDataType dtype = DTypeOf(end.type.tensor.type);
      const int failed = rewire_kernel_api()->new_tensor(dtype, static_cast<std::int32_t>(rank), dims, kHost,
                                                         &output.object);
      if (failed != 0) return MakeStatus(ORT_FAIL, TakeKernelError().message);
      output.value = Over(*RewireTensorOf(&output.object));
    } else if (!std::equal(dims, dims + rank, output.value.body->shape.begin(),
                           output.value.body->shape.end())) {
      return InvalidArgument("Output " + std::to_string(index) + " was made with another shape");
    }
    *out = &output.value;
    return nullptr;
  });
}
OrtStatus* KernelContext_GetAllocator(const OrtKernelContext*, const OrtMemoryInfo*,
                                      OrtAllocator** out) noexcept {
  *out = DefaultOrtAllocator();
  return nullptr;
}
OrtStatus* KernelContext_GetLogger(const OrtKernelContext*, const OrtLogger** out) noexcept {
  *out = LoggerOfEnv();
  return nullptr;
}
// The memory is the VM's, and lasts until the kernel returns.
OrtStatus* KernelContext_GetScratchBuffer(const OrtKernelContext*, const OrtMemoryInfo*, std::size_t bytes,
                                          void** out) noexcept {
  *out = bytes == 0 ? nullptr : rewire_kernel_api()->workspace(bytes);
  if (*out != nullptr || bytes == 0) return nullptr;
  (void)TakeKernelError();
  return OutOfMemory();
}
// On the session's threads, in at most `batches` pieces; 0: as many as there are threads.
OrtStatus* KernelContext_ParallelFor(const OrtKernelContext*, void (*body)(void*, std::size_t),
                                     std::size_t total, std::size_t batches, void* data) noexcept {
  struct Call {
    void (*body)(void*, std::size_t);
    void* data;
  } call{body, data};
  const std::size_t grain = batches == 0 ? 1 : std::max<std::size_t>(1, (total + batches - 1) / batches);
  const auto run = [](void* of, std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin)
      static_cast<const Call*>(of)->body(static_cast<const Call*>(of)->data, static_cast<std::size_t>(begin));
  };
  rewire_kernel_api()->parallel_for(0, static_cast<std::int64_t>(total), static_cast<std::int64_t>(grain),
                                    run, &call);
  return nullptr;
}

}  // namespace rewire::onnxruntime_api
