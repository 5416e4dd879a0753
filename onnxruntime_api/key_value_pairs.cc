// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/key_value_pairs.h"

#include <memory>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {

OrtStatus* NewPairs(const std::map<std::string, std::string>& entries, OrtKeyValuePairs** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->entries = entries;
    pairs->List();
    *out = pairs.release();
    return nullptr;
  });
}

void CreateKeyValuePairs(OrtKeyValuePairs** out) noexcept { *out = new (std::nothrow) OrtKeyValuePairs; }
void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) noexcept {
  if (pairs == nullptr || key == nullptr || value == nullptr || *key == '\0') return;
  Quietly([&] { pairs->Set(key, value); });
}
const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) noexcept {
  const char* found = nullptr;
  Quietly([&] {
    const auto at = pairs->entries.find(key);
    if (at != pairs->entries.end()) found = at->second.c_str();
  });
  return found;
}
void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values,
                      std::size_t* count) noexcept {
  *keys = pairs->keys.data();
  *values = pairs->values.data();
  *count = pairs->keys.size();
}
void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) noexcept {
  Quietly([&] {
    pairs->entries.erase(key);
    pairs->List();
  });
}
void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) noexcept { delete pairs; }

}  // namespace rewire::onnxruntime_api
