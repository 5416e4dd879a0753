// SPDX-License-Identifier: Apache-2.0
//
// A graph-executor JSON file after its checks: every index is in range, and a node uses only results of
// earlier nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

struct GraphNode {
  std::string name;
  std::string kernel;             // empty: an input or a parameter
  Array<std::uint32_t> inputs;    // entries
  std::uint32_t first_entry = 0;  // its outputs are entries first_entry ... first_entry + outputs - 1
  std::uint32_t outputs = 0;
};

// A tensor of the graph.
struct GraphEntry {
  DLDataType dtype{};
  Array<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::uint32_t node = 0;    // the node that makes it
  std::int64_t storage = 0;  // entries with the same storage share it at different times
  DeviceEntry device;
};

struct GraphFile {
  Array<GraphNode> nodes;
  Array<GraphEntry> entries;
  Array<std::uint32_t> heads;  // the entries that are the graph's outputs; may be none
};

// Errors: kInvalidFile and kUnsupported; the message gives the position in the JSON.
Result<GraphFile> ReadGraphFile(std::string_view json);

}  // namespace rewire::tvm
