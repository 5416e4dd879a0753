// SPDX-License-Identifier: Apache-2.0
// Attributes whose strings are data, such as labels: byte for byte, while Op::String makes them fit for
// messages.
#pragma once

#include <string>
#include <vector>

#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/lower/op.h"

namespace rewire::compiler {

inline std::vector<std::string> TextsOf(const Op& op, const std::string& name) {
  if (op.StringList(name).empty()) return {};  // it reports an attribute of another type
  const auto& texts = op.Find(name)->strings();
  return {texts.begin(), texts.end()};
}

inline std::string TextOf(const Op& op, const std::string& name, const std::string& fallback) {
  const bool is_given = op.HasAttribute(name) && !op.String(name, "").empty();
  return is_given ? op.Find(name)->s() : op.String(name, fallback);
}

}  // namespace rewire::compiler
