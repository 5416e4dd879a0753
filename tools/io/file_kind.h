// SPDX-License-Identifier: Apache-2.0
//
// Detects the kind of a file given to a tool, from its content. All tools use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::tools {

enum class FileKind : std::uint8_t {
  kExecutable,       // Rewire's own, and every unknown file: the reader then says what is wrong
  kAssembly,         // text assembly, recognized by its name: .asm
  kOnnx,             // an ONNX model, recognized by its name: .onnx
  kTflite,           // a model of TensorFlow Lite
  kRelayExecutable,  // a VM executable of TVM; also of Relax, which its reader refuses by name
  kGraph,            // JSON: a graph-executor artifact of TVM
  kSharedLibrary,    // kernels; one that TVM exported may contain a model
  kParameterList,    // a file of TVM's save_param_dict
  kObjectArchive,    // object files in a tar archive, which TVM also exports
};

FileKind FindFileKind(std::string_view path, Span<const std::byte> content);

// The content begins as an executable of ours.
bool IsExecutable(Span<const std::byte> content);

// Refuses a file that is a model or weights of another framework, by its content or else by its name, with
// what to do. Does nothing for content that is an executable of ours.
Status RefuseForeignModel(const std::string& path, Span<const std::byte> content);

// Refuses a file that is no executable of ours: says what it is, and which tool takes it.
Status RefuseNoExecutable(const std::string& path, Span<const std::byte> content);

// "this is text assembly; vm-as makes an executable of it".
std::string KindAndTaker(FileKind kind);

// "a graph-executor artifact of TVM".
std::string_view FileKindName(FileKind kind);

}  // namespace rewire::tools
