// SPDX-License-Identifier: Apache-2.0
//
// Tensors of strings. Strings are bytes: they may have zeros, and need not be UTF-8.
#include <cstring>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/value.h"

namespace rewire::onnxruntime_api {
namespace {

// Calls `work` with the strings of a tensor.
template <typename Work>
OrtStatus* WithStrings(const OrtValue* value, Work&& work,
                       OrtErrorCode no_tensor = ORT_NOT_IMPLEMENTED) noexcept {
  return Guard([&]() -> OrtStatus* {
    ValueBody& body = *value->body;
    if (body.kind != ONNX_TYPE_TENSOR)
      return MakeStatus(no_tensor, "This API supports Tensors or SparseTensors");
    if (!body.is_string()) return MakeStatus(ORT_FAIL, "the value is no tensor of strings");
    return work(body.strings);
  });
}

// The same with one string.
template <typename Work>
OrtStatus* WithString(const OrtValue* value, std::size_t index, Work&& work,
                      OrtErrorCode no_tensor = ORT_NOT_IMPLEMENTED,
                      const char* no_such = "element index is out of bounds") noexcept {
  return WithStrings(
      value,
      [&](std::vector<std::string>& strings) -> OrtStatus* {
        if (index >= strings.size()) return InvalidArgument(no_such);
        return work(strings[index]);
      },
      no_tensor);
}

}  // namespace

OrtStatus* FillStringTensor(OrtValue* value, const char* const* strings, std::size_t count) noexcept {
  return WithStrings(
      value,
      [&](std::vector<std::string>& own) -> OrtStatus* {
        if (count != own.size()) return InvalidArgument("input array doesn't equal tensor size");
        for (std::size_t i = 0; i < count; ++i) own[i] = strings[i];
        return nullptr;
      },
      ORT_RUNTIME_EXCEPTION);
}
OrtStatus* FillStringTensorElement(OrtValue* value, const char* string, std::size_t index) noexcept {
  return WithString(
      value, index,
      [&](std::string& own) -> OrtStatus* {
        own = string;
        return nullptr;
      },
      ORT_RUNTIME_EXCEPTION);
}
OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, std::size_t index, std::size_t size,
                                               char** out) noexcept {
  return WithString(
      value, index,
      [&](std::string& own) -> OrtStatus* {
        own.resize(size);
        *out = own.data();
        return nullptr;
      },
      ORT_RUNTIME_EXCEPTION);
}
OrtStatus* GetStringTensorDataLength(const OrtValue* value, std::size_t* out) noexcept {
  return WithStrings(value, [&](const std::vector<std::string>& strings) -> OrtStatus* {
    *out = 0;
    for (const std::string& each : strings) *out += each.size();
    return nullptr;
  });
}
OrtStatus* GetStringTensorContent(const OrtValue* value, void* bytes, std::size_t size, std::size_t* offsets,
                                  std::size_t count) noexcept {
  return WithStrings(value, [&](const std::vector<std::string>& strings) -> OrtStatus* {
    std::size_t total = 0;
    for (const std::string& each : strings) total += each.size();
    if (count != strings.size()) return MakeStatus(ORT_FAIL, "offsets buffer is too small");
    if (size < total) return MakeStatus(ORT_FAIL, "output buffer is too small");
    std::size_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      offsets[i] = at;
      if (!strings[i].empty())
        std::memcpy(static_cast<char*>(bytes) + at, strings[i].data(), strings[i].size());
      at += strings[i].size();
    }
    return nullptr;
  });
}
OrtStatus* GetStringTensorElementLength(const OrtValue* value, std::size_t index, std::size_t* out) noexcept {
  return WithString(
      value, index,
      [&](const std::string& string) -> OrtStatus* {
        *out = string.size();
        return nullptr;
      },
      ORT_NOT_IMPLEMENTED, "index is out of bounds");
}
OrtStatus* GetStringTensorElement(const OrtValue* value, std::size_t size, std::size_t index,
                                  void* out) noexcept {
  return WithString(value, index, [&](const std::string& string) -> OrtStatus* {
    if (size < string.size()) return MakeStatus(ORT_FAIL, "buffer size is too small for string element");
    if (!string.empty()) std::memcpy(out, string.data(), string.size());
    return nullptr;
  });
}

}  // namespace rewire::onnxruntime_api
