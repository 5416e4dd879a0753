// SPDX-License-Identifier: Apache-2.0
//
// The attributes of one kernel import, with what holds where one is not given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rewire/executable_format/module.h"

namespace rewire::aot {

class Attributes {
 public:
  explicit Attributes(const KernelImport& import) : import_(import) {}

  // The structs of kernels/contract read by these. Kernels have accepted the values before, so that limits
  // are not asked again.
  std::int64_t Int(const char* name, std::int64_t otherwise, std::int64_t /*least*/ = 0,
                   std::int64_t /*most*/ = 0) const {
    return Get<std::int64_t>(name, otherwise);
  }
  std::string String(const char* name, const char* otherwise) const {
    return Get<std::string>(name, otherwise);
  }
  std::vector<std::int64_t> Ints(const char* name, const std::vector<std::int64_t>& otherwise) const {
    return Find(name) == nullptr ? otherwise : List(name, 0, 0);
  }
  bool Bool(const char* name, bool otherwise) const { return Int(name, otherwise ? 1 : 0) != 0; }
  int Choice(const char* name, std::initializer_list<std::string_view> choices, int otherwise) const {
    const std::string value = Get<std::string>(name, {});
    const auto* found = std::find(choices.begin(), choices.end(), value);
    return found == choices.end() ? otherwise : static_cast<int>(found - choices.begin());
  }
  void Require(const char* /*name*/) const {}
  // A number may be given as an integer.
  double Float(const char* name, double otherwise) const {
    const Attribute* found = Find(name);
    if (found == nullptr) return otherwise;
    if (const auto* integer = std::get_if<std::int64_t>(&found->value)) return static_cast<double>(*integer);
    const auto* number = std::get_if<double>(&found->value);
    return number == nullptr ? otherwise : *number;
  }
  // An empty list is one that is not given: it has `size` elements then.
  std::vector<std::int64_t> List(const char* name, std::size_t size, std::int64_t otherwise) const {
    const auto list = Get<Array<std::int64_t>>(name, {});
    if (list.empty()) return std::vector<std::int64_t>(size, otherwise);
    return std::vector<std::int64_t>(list.begin(), list.end());
  }

 private:
  const Attribute* Find(const char* name) const {
    for (const Attribute& attribute : import_.attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }
  template <typename T>
  T Get(const char* name, T otherwise) const {
    const Attribute* found = Find(name);
    const T* value = found == nullptr ? nullptr : std::get_if<T>(&found->value);
    return value == nullptr ? otherwise : *value;
  }

  const KernelImport& import_;
};

}  // namespace rewire::aot
