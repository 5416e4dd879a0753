// SPDX-License-Identifier: Apache-2.0
// A graph-executor JSON, checked: what indexes something is in range, and a node uses only what earlier ones
// gave.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/array.h"
#include "base/status.h"
#include "executable_format/module.h"

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
  std::int64_t storage = 0;  // entries with one storage take turns in it
  DeviceEntry device;
};

struct GraphFile {
  Array<GraphNode> nodes;
  Array<GraphEntry> entries;
  Array<std::uint32_t> heads;  // the entries that are the graph's outputs
};

// kInvalidFile, kUnsupported; the message says where in the JSON.
Result<GraphFile> ReadGraphFile(std::string_view json);

}  // namespace rewire::tvm
