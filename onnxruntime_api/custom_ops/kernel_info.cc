// SPDX-License-Identifier: Apache-2.0
//
// The functions by which a custom operator reads its node.
#include "rewire/onnxruntime_api/custom_ops/kernel_info.h"

#include <algorithm>
#include <cstring>

#include "rewire/onnxruntime_api/custom_ops/logger.h"
#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/key_value_pairs.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {
namespace {

// Copies elements into the host's array of *size. Without an array, only their number is told.
template <typename From, typename To>
OrtStatus* CopyOut(const From* from, std::size_t count, To* out, std::size_t* size) {
  const std::size_t room = std::exchange(*size, count);
  if (out == nullptr) return nullptr;
  if (room < count) return InvalidArgument("Result buffer is not large enough");
  std::transform(from, from + count, out, [](From value) { return static_cast<To>(value); });
  return nullptr;
}
OrtStatus* CopyText(const std::string& text, char* out, std::size_t* size) {
  return CopyOut(text.c_str(), text.size() + 1, out, size);
}

// Calls `use` with the attribute of this type.
template <typename T, typename Use>
OrtStatus* WithAttribute(const OrtKernelInfo* info, const char* name, Use&& use) noexcept {
  return Guard([&]() -> OrtStatus* {
    const auto found = info->attributes.find(name);
    if (found == info->attributes.end())
      return MakeStatus(ORT_FAIL, "No attribute with name:'" + std::string(name) + "'is defined.");
    const T* const value = std::get_if<T>(&found->second);
    if (value == nullptr)
      return MakeStatus(ORT_FAIL, "Attribute with name:'" + std::string(name) + "' is of another type.");
    return use(*value);
  });
}

// The same with a list. As in ONNX Runtime, an attribute of another type is an empty list.
template <typename T, typename Use>
OrtStatus* WithList(const OrtKernelInfo* info, const char* name, Use&& use) noexcept {
  const auto found = info->attributes.find(name);
  if (found != info->attributes.end() && !std::holds_alternative<T>(found->second))
    return Guard([&]() -> OrtStatus* { return use(T()); });
  return WithAttribute<T>(info, name, use);
}

OrtStatus* NameOf(const std::vector<OrtKernelInfo::End>& ends, std::size_t index, char* out,
                  std::size_t* size) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (index >= ends.size()) return InvalidArgument("Index is out of range");
    return CopyText(ends[index].name, out, size);
  });
}
OrtStatus* TypeOf(const std::vector<OrtKernelInfo::End>& ends, std::size_t index,
                  OrtTypeInfo** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (index >= ends.size()) return InvalidArgument("Index is out of range");
    *out = new OrtTypeInfo(ends[index].type);
    return nullptr;
  });
}

}  // namespace

OrtStatus* KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name, float* out) noexcept {
  return WithAttribute<double>(info, name, [&](double value) -> OrtStatus* {
    *out = static_cast<float>(value);
    return nullptr;
  });
}
OrtStatus* KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name,
                                        std::int64_t* out) noexcept {
  return WithAttribute<std::int64_t>(info, name, [&](std::int64_t value) -> OrtStatus* {
    *out = value;
    return nullptr;
  });
}
OrtStatus* KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name, char* out,
                                         std::size_t* size) noexcept {
  return WithAttribute<std::string>(info, name,
                                    [&](const std::string& text) { return CopyText(text, out, size); });
}
OrtStatus* KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name, float* out,
                                             std::size_t* size) noexcept {
  return WithList<std::vector<double>>(info, name, [&](const std::vector<double>& list) {
    return CopyOut(list.data(), list.size(), out, size);
  });
}
OrtStatus* KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name, std::int64_t* out,
                                             std::size_t* size) noexcept {
  return WithList<std::vector<std::int64_t>>(info, name, [&](const std::vector<std::int64_t>& list) {
    return CopyOut(list.data(), list.size(), out, size);
  });
}
OrtStatus* KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name,
                                              OrtAllocator* allocator, char*** out,
                                              std::size_t* size) noexcept {
  using Texts = std::vector<std::string>;
  return WithList<Texts>(info, name, [&](const Texts& texts) -> OrtStatus* {
    auto** const list = static_cast<char**>(allocator->Alloc(allocator, (texts.size() + 1) * sizeof(char*)));
    if (list == nullptr) return OutOfMemory();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      list[i] = AllocateText(allocator, texts[i]);
      if (list[i] != nullptr) continue;
      while (i-- > 0) allocator->Free(allocator, list[i]);
      allocator->Free(allocator, list);
      return OutOfMemory();
    }
    *out = list;
    *size = texts.size();
    return nullptr;
  });
}
// The tensor is a copy, in memory of the allocator.
OrtStatus* KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name, OrtAllocator* allocator,
                                         OrtValue** out) noexcept {
  using Body = std::shared_ptr<ValueBody>;
  return WithAttribute<Body>(info, name, [&](const Body& tensor) -> OrtStatus* {
    OrtStatus* const failed =
        CreateTensorAsOrtValue(allocator, tensor->shape.data(), tensor->shape.size(), tensor->type, out);
    if (failed == nullptr && tensor->bytes() != 0)
      std::memcpy((*out)->body->data, tensor->data, tensor->bytes());
    return failed;
  });
}

OrtStatus* KernelInfo_GetInputCount(const OrtKernelInfo* info, std::size_t* out) noexcept {
  *out = info->inputs.size();
  return nullptr;
}
OrtStatus* KernelInfo_GetOutputCount(const OrtKernelInfo* info, std::size_t* out) noexcept {
  *out = info->outputs.size();
  return nullptr;
}
OrtStatus* KernelInfo_GetInputName(const OrtKernelInfo* info, std::size_t index, char* out,
                                   std::size_t* size) noexcept {
  return NameOf(info->inputs, index, out, size);
}
OrtStatus* KernelInfo_GetOutputName(const OrtKernelInfo* info, std::size_t index, char* out,
                                    std::size_t* size) noexcept {
  return NameOf(info->outputs, index, out, size);
}
OrtStatus* KernelInfo_GetInputTypeInfo(const OrtKernelInfo* info, std::size_t index,
                                       OrtTypeInfo** out) noexcept {
  return TypeOf(info->inputs, index, out);
}
OrtStatus* KernelInfo_GetOutputTypeInfo(const OrtKernelInfo* info, std::size_t index,
                                        OrtTypeInfo** out) noexcept {
  return TypeOf(info->outputs, index, out);
}
OrtStatus* KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return Guard([&] { return CopyText(info->name, out, size); });
}
OrtStatus* KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return Guard([&] { return CopyText(info->domain, out, size); });
}
OrtStatus* KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, std::size_t* size) noexcept {
  return Guard([&] { return CopyText(info->type, out, size); });
}
OrtStatus* KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info, int* out) noexcept {
  *out = static_cast<int>(info->version);
  return nullptr;
}
// A kernel is given all of its inputs in each call: none of them is said to be a constant.
OrtStatus* KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, std::size_t index, int* is_constant,
                                             const OrtValue** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (index >= info->inputs.size()) return InvalidArgument("Index is out of range");
    *is_constant = 0;
    *out = nullptr;
    return nullptr;
  });
}
OrtStatus* KernelInfoGetAllocator(const OrtKernelInfo*, OrtMemType, OrtAllocator** out) noexcept {
  *out = DefaultOrtAllocator();
  return nullptr;
}
OrtStatus* KernelInfo_GetLogger(const OrtKernelInfo*, const OrtLogger** out) noexcept {
  *out = LoggerOfEnv();
  return nullptr;
}
OrtStatus* CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtKernelInfo(*info);
    return nullptr;
  });
}
void ReleaseKernelInfo(OrtKernelInfo* info) noexcept { delete info; }
OrtStatus* KernelInfo_GetConfigEntries(const OrtKernelInfo* info, OrtKeyValuePairs** out) noexcept {
  return NewPairs(info->config, out);
}

}  // namespace rewire::onnxruntime_api
