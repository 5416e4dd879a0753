// SPDX-License-Identifier: Apache-2.0
//
// Reads those attributes of an operator that are its kernel's, too, by the kernel's own struct
// (kernels/contract).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

class GivenAttributes {
 public:
  explicit GivenAttributes(const Op& op) : op_(op) {}

  std::vector<std::int64_t> Ints(const char* name, const std::vector<std::int64_t>& fallback) const {
    return op_.IntList(name, fallback);
  }
  double Float(const char* name, double fallback) const { return op_.Float(name, fallback); }
  bool Bool(const char* name, bool fallback) const { return op_.Int(name, fallback ? 1 : 0) != 0; }
  // The index of the attribute's value in `choices`.
  int Choice(const char* name, std::initializer_list<std::string_view> choices, int fallback) {
    const std::string value = op_.String(name, std::string(choices.begin()[fallback]));
    const auto* found = std::find(choices.begin(), choices.end(), value);
    if (found != choices.end()) return static_cast<int>(found - choices.begin());
    if (status_)
      status_ = op_.Invalid("{} is '{}', expected one of {}", name, value, fmt::join(choices, ", "));
    return fallback;
  }
  // An operator's row says which attributes it needs.
  void Require(const char* /*name*/) const {}

  // The error of a value that is none of its choices: kInvalidFile.
  Status Finish() { return std::move(status_); }

 private:
  const Op& op_;
  Status status_;
};

}  // namespace rewire::compiler
