// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/file_kind.h"

#include <algorithm>
#include <cstring>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/executable_format/layout.h"
#include "rewire/vm/loader/object_archive.h"

namespace rewire::tools {
namespace {

bool StartsWith(Span<const std::byte> content, std::string_view start) {
  return content.size() >= start.size() && std::memcmp(content.data(), start.data(), start.size()) == 0;
}

// The first byte that is no space is a brace.
bool LooksLikeJson(Span<const std::byte> content) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto* first = std::find_if(content.begin(), content.end(), [&](std::byte byte) {
    return kSpace.find(static_cast<char>(byte)) == std::string_view::npos;
  });
  return first != content.end() && *first == std::byte{'{'};
}

}  // namespace

FileKind FindFileKind(std::string_view path, Span<const std::byte> content) {
  if (path.ends_with(".asm")) return FileKind::kAssembly;
  if (path.ends_with(".onnx")) return FileKind::kOnnx;
  if (StartsWith(content,
                 "\x7f"
                 "ELF"))
    return FileKind::kSharedLibrary;
  if (tvm::IsVmExecutable(content)) return FileKind::kRelayExecutable;
  if (tvm::IsParameterList(content)) return FileKind::kParameterList;
  if (IsArchive(content)) return FileKind::kObjectArchive;
  if (LooksLikeJson(content)) return FileKind::kGraph;
  return FileKind::kExecutable;
}

Status RefuseForeignModel(const std::string& path, Span<const std::byte> content) {
  struct Row {
    std::string_view extension, what;
  };
  constexpr std::string_view kPyTorch =
      "a file of PyTorch; load it there and call torch.onnx.export(model, inputs, \"model.onnx\")";
  constexpr std::string_view kTensorFlow =
      "a model of TensorFlow; python -m tf2onnx.convert writes an ONNX model of it (its --help has the "
      "kinds)";
  static constexpr Row kRows[] = {
      {".pt", kPyTorch},
      {".pth", kPyTorch},
      {".pt2", kPyTorch},
      {".tflite", kTensorFlow},
      {".pb", kTensorFlow},
      {".h5", kTensorFlow},
      {".keras", kTensorFlow},
      {".gguf", "weights of llama.cpp, without a graph; export the model that they were made of as ONNX"},
      {".safetensors", "weights without a graph; give the model as FILE and this as --params of vm-run"},
      {".npz", "arrays, no model; vm-run takes them as --input @FILE or --params FILE"},
      {".npy", "an array, no model; vm-run takes it as --input NAME=@FILE"},
  };
  const std::string_view start = {reinterpret_cast<const char*>(kMagic.data()), kMagic.size()};
  if (StartsWith(content, start)) return {};
  for (const Row& row : kRows) {
    if (path.ends_with(row.extension))
      return Fail(StatusCode::kUnsupported, path + ": this is " + std::string(row.what));
  }
  return {};
}

std::string_view FileKindName(FileKind kind) {
  switch (kind) {
    case FileKind::kExecutable:
      return "a Rewire executable";
    case FileKind::kAssembly:
      return "text assembly";
    case FileKind::kOnnx:
      return "an ONNX model";
    case FileKind::kRelayExecutable:
      return "a Relay VM executable of TVM";
    case FileKind::kGraph:
      return "a graph-executor artifact of TVM";
    case FileKind::kSharedLibrary:
      return "a shared library";
    case FileKind::kParameterList:
      return "a parameter file of TVM";
    case FileKind::kObjectArchive:
      return "an archive of object files";
  }
  return "";
}

}  // namespace rewire::tools
