// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rewire/onnxruntime_api/api.h"

// Pairs by name, and the two arrays of pointers that a host reads them by.
struct OrtKeyValuePairs {
  std::map<std::string, std::string> entries;
  std::vector<const char*> keys;
  std::vector<const char*> values;

  void Set(const char* key, const char* value) {
    entries[key] = value;
    List();
  }
  void List() {
    keys.clear();
    values.clear();
    for (const auto& [key, value] : entries) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
};

namespace rewire::onnxruntime_api {

// Pairs that the caller releases.
OrtStatus* NewPairs(const std::map<std::string, std::string>& entries, OrtKeyValuePairs** out) noexcept;

}  // namespace rewire::onnxruntime_api
