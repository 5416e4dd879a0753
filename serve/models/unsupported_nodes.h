// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/compiler.h"

namespace rewire::serve {

// The message of an error of the compiler, and a line for each node that it does not have.
inline std::string WithNodes(const Error& error, const std::vector<UnsupportedNode>& unsupported) {
  std::string text = error.message();
  for (const UnsupportedNode& node : unsupported)
    text += "\n  " + node.op_type + " '" + node.node + "': " + node.reason;
  return text;
}

}  // namespace rewire::serve
