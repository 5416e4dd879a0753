// SPDX-License-Identifier: Apache-2.0
// What a file given to a tool is, told by its content. All tools ask here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/span.h"

namespace rewire::tools {

enum class FileKind : std::uint8_t {
  kExecutable,       // Rewire's own; also whatever is none of the others: its reader says what is wrong
  kAssembly,         // text assembly, which is told by its name: it ends in .asm
  kOnnx,             // an ONNX model, told by its name: it ends in .onnx
  kRelayExecutable,  // a VM executable of TVM; Relax ones too, which its reader refuses by name
  kGraph,            // JSON: a graph-executor artefact of TVM
  kSharedLibrary,    // kernels; one that TVM exported may have a model inside
  kParameterList,    // what TVM's save_param_dict wrote
};

FileKind FindFileKind(std::string_view path, Span<const std::byte> content);

// "a graph-executor artefact of TVM".
std::string_view FileKindName(FileKind kind);

}  // namespace rewire::tools
