// SPDX-License-Identifier: Apache-2.0
// The values of --input, --output and --expect, parsed but not yet loaded.
//
//   binding = target "=" value | "@" archive         all members of an .npz or .safetensors file, by name
//   value   = "@" file [":" member]                  .npy; .npz and .safetensors with a member
//           | dims dtype "=" number {"," number}     1x3xf32=1,2,3; a single number fills the tensor
//           | dims dtype "=random"                   uniform, from the ranges of --range
//           | string | "[" [strings {"," strings}] "]"  in JSON, for an input that is strings
//           | number                                 an integer, or a scalar of the input's dtype
//           | [tag] "(" [value {"," value}] ")"      a tree; without a tag, that of the signature, else 0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

struct SpecNode {
  enum class Kind : std::uint8_t { kFile, kLiteral, kRandom, kNumber, kTree };

  Kind kind = Kind::kFile;
  std::string text;                  // kFile: without "@"; kNumber: its digits
  HostTensor tensor;                 // kLiteral; kRandom: without bytes
  std::optional<std::uint32_t> tag;  // kTree
  std::uint32_t field_count = 0;     // kTree: the subtrees follow
};

// In pre-order, as a Type's nodes are.
using ValueSpec = std::vector<SpecNode>;

// The deepest nesting of trees.
inline constexpr std::size_t kMaxSpecDepth = 64;

// Errors: kInvalidArgument, with what is wrong and where.
Result<ValueSpec> ParseValueSpec(std::string_view text);

struct ValueBinding {
  std::string target;  // a name or an index; empty for a whole archive
  std::string archive;
  ValueSpec value;
};
Result<ValueBinding> ParseValueBinding(std::string_view text);

// "y=@y.npy", "0=@y.npy", "@all.npz": the destination of outputs.
struct FileBinding {
  std::string target;  // empty: every output, by name
  std::string path;
};
Result<FileBinding> ParseFileBinding(std::string_view text);

// "x.npz" and "x.safetensors" hold tensors by name.
bool IsArchivePath(std::string_view path);

}  // namespace rewire::tools
