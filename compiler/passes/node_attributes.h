// SPDX-License-Identifier: Apache-2.0
//
// Reads the attributes of a node by its kernel's own struct (kernels/contract), so that a pass cannot take
// another default than the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "rewire/compiler/passes/edit.h"

namespace rewire::compiler {

// Values that a kernel would refuse count as left out: the kernel says so when the program is linked.
class NodeAttributes {
 public:
  explicit NodeAttributes(const Node& node) : node_(node) {}

  std::int64_t Int(const char* name, std::int64_t fallback, std::int64_t /*least*/ = 0,
                   std::int64_t /*most*/ = 0) const {
    return IntAttribute(node_, name, fallback);
  }
  std::vector<std::int64_t> Ints(const char* name, const std::vector<std::int64_t>& fallback) const {
    return IntsAttribute(node_, name).value_or(fallback);
  }
  bool Bool(const char* name, bool fallback) const { return Int(name, fallback ? 1 : 0) != 0; }
  double Float(const char* name, double fallback) const { return FloatAttribute(node_, name, fallback); }
  void Require(const char* /*name*/) const {}

 private:
  const Node& node_;
};

template <typename Given>
Given AttributesOf(const Node& node) {
  Given given;
  const NodeAttributes attributes(node);
  given.Read(attributes);
  return given;
}

}  // namespace rewire::compiler
