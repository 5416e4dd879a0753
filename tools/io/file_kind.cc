// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/file_kind.h"

#include <fmt/format.h>

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

// The identifier of flatbuffers' format, behind the place of the first table.
bool IsTflite(Span<const std::byte> content) {
  constexpr std::size_t kPlace = 4;
  return content.size() > kPlace && StartsWith({content.data() + kPlace, content.size() - kPlace}, "TFL3");
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
  if (IsTflite(content)) return FileKind::kTflite;
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

namespace {

constexpr std::string_view kPyTorch =
    "this is a file of PyTorch; load it there and call torch.onnx.export(model, inputs, \"model.onnx\")";
constexpr std::string_view kTensorFlow =
    "this is a model of TensorFlow; python -m tf2onnx.convert writes an ONNX model of it (its --help has the "
    "kinds)";
constexpr std::string_view kGguf =
    "these are weights of llama.cpp, without a graph; export the model that they were made of as ONNX";
constexpr std::string_view kSafetensors =
    "these are weights without a graph; give the model as FILE and this as --params of vm-run";
constexpr std::string_view kArrays =
    "these are arrays, no model; vm-run takes them as --input @FILE or --params FILE";
constexpr std::string_view kArray = "this is an array, no model; vm-run takes it as --input NAME=@FILE";

constexpr std::string_view kPointer =
    "this is a pointer of Git LFS and not the file; run git lfs pull in its folder";
constexpr std::string_view kWebPageText =
    "this is a page of HTML, as a failed download leaves one; download the file again";

std::string_view TextOf(Span<const std::byte> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::uint64_t LittleEndian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i > 0; --i)
    number = number << 8 | static_cast<unsigned char>(bytes[i - 1]);
  return number;
}

// The name of a ZIP archive's first file; empty if this is none.
std::string_view FirstInZip(std::string_view text) {
  constexpr std::size_t kNameLength = 26, kName = 30;
  if (!text.starts_with("PK\3\4") || text.size() < kName) return {};
  return text.substr(kName, LittleEndian(text.substr(kNameLength, 2)));
}

// Tells a file by its bytes, because a name can be wrong. Empty if they are not known.
std::string_view ForeignByContent(std::string_view text) {
  using namespace std::string_view_literals;
  constexpr std::size_t kLength = 8;
  if (text.starts_with("GGUF")) return kGguf;
  if (text.starts_with("version https://git-lfs")) return kPointer;
  if (text.starts_with("<!DOCTYPE") || text.starts_with("<!doctype") || text.starts_with("<html"))
    return kWebPageText;
  if (text.starts_with("\x93NUMPY")) return kArray;
  if (text.starts_with("\x89HDF\r\n\x1a\n")) return kTensorFlow;
  // torch.save before version 1.6: a pickled number of its own.
  if (text.starts_with("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"sv)) return kPyTorch;
  if (const std::string_view first = FirstInZip(text); !first.empty()) {
    if (first.ends_with(".pkl") || first.ends_with("archive_format")) return kPyTorch;
    if (first.ends_with(".npy")) return kArrays;
  }
  // The length of a JSON text, and the text.
  if (text.size() > kLength && text[kLength] == '{' &&
      LittleEndian(text.substr(0, kLength)) <= text.size() - kLength) {
    return kSafetensors;
  }
  return {};
}

std::string_view ForeignByName(std::string_view path) {
  struct Row {
    std::string_view extension, what;
  };
  static constexpr Row kRows[] = {
      {".pt", kPyTorch},    {".pth", kPyTorch},      {".pt2", kPyTorch}, {".pb", kTensorFlow},
      {".h5", kTensorFlow}, {".keras", kTensorFlow}, {".gguf", kGguf},   {".safetensors", kSafetensors},
      {".npz", kArrays},    {".npy", kArray},
  };
  for (const Row& row : kRows) {
    if (path.ends_with(row.extension)) return row.what;
  }
  return {};
}

}  // namespace

bool IsExecutable(Span<const std::byte> content) {
  return StartsWith(content, {reinterpret_cast<const char*>(kMagic.data()), kMagic.size()});
}

Status RefuseForeignModel(const std::string& path, Span<const std::byte> content) {
  const std::string_view text = TextOf(content);
  if (IsExecutable(content)) return {};
  std::string_view what = ForeignByContent(text);
  if (what.empty()) what = ForeignByName(path);
  if (what.empty()) return {};
  return Fail(StatusCode::kUnsupported, fmt::format("{}: {}", path, what));
}

Status RefuseNoExecutable(const std::string& path, Span<const std::byte> content) {
  // The reader tells of a damaged one.
  constexpr std::size_t kTold = 4;
  if (StartsWith(content, {reinterpret_cast<const char*>(kMagic.data()), kTold})) return {};
  if (Status refused = RefuseForeignModel(path, content); !refused) return refused;
  const FileKind kind = FindFileKind(path, content);
  if (kind == FileKind::kExecutable) {
    return Fail(
        StatusCode::kInvalidFile,
        path +
            ": this is not a Rewire executable, which begins with the bytes 89 'RWX'; vm-compile makes "
            "one of an ONNX model, vm-as of text assembly, vm-convert of a model of TVM");
  }
  return Fail(StatusCode::kUnsupported, fmt::format("{}: {}", path, KindAndTaker(kind)));
}

std::string KindAndTaker(FileKind kind) {
  const auto taken = [&](std::string_view taker) {
    return fmt::format("this is {}; {}", FileKindName(kind), taker);
  };
  switch (kind) {
    case FileKind::kExecutable:
      return "this model is compiled already; vm-run runs it";
    case FileKind::kAssembly:
      return taken("vm-as makes an executable of it");
    case FileKind::kOnnx:
    case FileKind::kTflite:
      return taken("vm-compile makes an executable of it");
    case FileKind::kRelayExecutable:
    case FileKind::kGraph:
    case FileKind::kObjectArchive:
      return taken("vm-convert makes an executable of it");
    case FileKind::kSharedLibrary:
      return taken("give the model as FILE, and this as --kernels of vm-run");
    case FileKind::kParameterList:
      return taken("give the model as FILE, and this as --params of vm-run");
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
    case FileKind::kTflite:
      return "a model of TensorFlow Lite";
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
