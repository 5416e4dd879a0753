// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/custom_ops/kernel_context.h"

#include <algorithm>
#include <utility>

#include "rewire/onnxruntime_api/custom_ops/logger.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/string_parts.h"
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

constexpr std::int32_t kStringParts = 3;

bool IsStrings(const OrtKernelInfo::End& end) {
  return end.type.tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
}

// A vector of an argument; empty for one of another dtype.
template <typename T>
rewire::Span<const T> VectorOf(const RewireFFIAny& argument, DLDataType dtype) {
  const DLTensor* const tensor = RewireTensorOf(&argument);
  if (tensor == nullptr || !rewire::operator==(tensor->dtype, dtype)) return {};
  const OrtValue value = Over(*tensor);
  return {static_cast<const T*>(value.body->data), value.body->elements()};
}

// A tensor of strings of three arguments. Errors: kRuntimeFailed.
rewire::Result<std::shared_ptr<ValueBody>> ReadStrings(const RewireFFIAny* parts, const std::string& name) {
  using namespace rewire::onnxruntime_api;
  const std::string what = "input '" + name + "'";
  const rewire::Result<std::vector<std::string>> list = ReadList(
      VectorOf<std::int64_t>(parts[1], rewire::kInt64), VectorOf<char>(parts[2], rewire::kUInt8), what);
  if (!list) return rewire::Forward(list);
  rewire::Result<std::vector<std::string>> strings =
      PickStrings(*list, VectorOf<std::int64_t>(parts[0], rewire::kInt64), what);
  if (!strings) return rewire::Forward(strings);
  auto body = Over(*RewireTensorOf(&parts[0])).body;
  if (strings->size() != body->elements())
    return rewire::Fail(rewire::StatusCode::kRuntimeFailed, "{} has no positions of strings", what);
  body->type = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  body->data = nullptr;
  body->strings = *std::move(strings);
  return body;
}

}  // namespace

OrtKernelContext::OrtKernelContext(const OrtKernelInfo& of) : info(of), outputs(of.outputs.size()) {}

OrtKernelContext::~OrtKernelContext() {
  for (const Output& output : outputs) (void)rewire::Value::Adopt(output.object);
}

rewire::Status OrtKernelContext::Read(const RewireFFIAny* args, std::int32_t count) {
  for (std::int32_t at = 0; inputs.size() < info.inputs.size();) {
    const OrtKernelInfo::End& end = info.inputs[inputs.size()];
    OrtValue& input = inputs.emplace_back();
    const bool given = !end.name.empty();
    const std::int32_t taken = given && IsStrings(end) ? kStringParts : 1;
    if (taken > count - at)
      return rewire::Fail(rewire::StatusCode::kRuntimeFailed,
                          "the kernel is given {} arguments, which are too few", count);
    const DLTensor* const tensor = given ? RewireTensorOf(&args[at]) : nullptr;
    if (tensor != nullptr && taken == 1) input = Over(*tensor);
    if (tensor != nullptr && taken != 1) {
      rewire::Result<std::shared_ptr<ValueBody>> strings = ReadStrings(&args[at], end.name);
      if (!strings) return rewire::Forward(strings);
      input.body = *std::move(strings);
    }
    at += taken;
  }
  return {};
}

int OrtKernelContext::Return(RewireFFIAny* result) {
  using rewire::Value;
  std::vector<RewireFFIAny> fields;
  std::vector<Value> owned;  // the fields that are made here
  const auto make = [&](DLDataType dtype, const std::vector<std::int64_t>& shape) {
    RewireFFIAny& field = fields.emplace_back();
    const auto rank = static_cast<std::int32_t>(shape.size());
    if (rewire_kernel_api()->new_tensor(dtype, rank, shape.data(), rewire::kHost, &field) != 0) return false;
    owned.push_back(Value::Adopt(field));
    return true;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueBody* const body = outputs[i].value.body.get();
    const bool strings = IsStrings(info.outputs[i]);
    if (body == nullptr && !info.outputs[i].name.empty()) {
      rewire::SetKernelError("ValueError", ("the custom operator did not make output " + std::to_string(i) +
                                            ", '" + info.outputs[i].name + "'")
                                               .c_str());
      return -1;
    }
    if (body == nullptr) {
      // Something stands in the place of an output that the node leaves out.
      RewireFFIAny nothing{};
      nothing.type_index = kRewireFFIInt;
      fields.insert(fields.end(), strings ? kStringParts : 1, nothing);
    } else if (!strings) {
      fields.push_back(outputs[i].object);
    } else {
      const auto count = static_cast<std::int64_t>(body->strings.size());
      const std::int64_t bytes = rewire::onnxruntime_api::BytesOf(body->strings);
      if (!make(rewire::kInt64, body->shape) || !make(rewire::kInt64, {count + 1}) ||
          !make(rewire::kUInt8, {bytes}))
        return -1;
      const auto data_of = [&](std::size_t from_end) {
        return RewireTensorOf(&fields[fields.size() - from_end])->data;
      };
      rewire::onnxruntime_api::WriteStrings(body->strings, static_cast<std::int64_t*>(data_of(3)),
                                            static_cast<std::int64_t*>(data_of(2)), data_of(1));
    }
  }
  if (fields.size() != 1)
    return rewire_kernel_api()->new_adt(0, static_cast<std::int32_t>(fields.size()), fields.data(), result);
  *result = fields[0];
  outputs[0].object = {};  // the reference is the caller's now
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
    if (output.value.body == nullptr && IsStrings(end)) {
      Result<std::shared_ptr<ValueBody>> made =
          MakeTensor(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, std::vector<std::int64_t>(dims, dims + rank));
      if (!made) return FromError(made.error());
      output.value.body = *std::move(made);
    } else if (output.value.body == nullptr) {
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
