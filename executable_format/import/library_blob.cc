// SPDX-License-Identifier: Apache-2.0
// The data that TVM's export_library links into a shared library:
//
//   u64 bytes of what follows | u64 entries | per entry: str key, payload
//
// Key "_lib" (no payload) stands for the library itself, "_import_tree" for two list<u64> that say which
// module imports which. Any other key is the kind of a module that TVM knows how to read; its payload has no
// length, so an unknown one cannot be passed over. Modules stand in the order of the tree: the first is the
// root, which is what TVM gives to whoever loads the library.
#include <fmt/format.h>

#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/import/device_module.h"
#include "rewire/executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

// A module of the library that can be run, and how many modules stand before it.
struct Model {
  std::size_t position = 0;
  LibraryBlob content;
};

struct Contents {
  std::size_t modules = 0;
  Array<Model> models;
};

Status ReadGraphFactory(ByteReader& reader, LibraryBlob& blob) {
  blob.graph_json = ReadString(reader);
  const auto count = reader.Read<std::uint64_t>();
  Array<std::string> names = ReadStrings(reader);
  if (!reader.ok()) return Truncated("the graph in the library");
  if (count != names.size()) {
    return Malformed(fmt::format("the graph has {} parameters and {} names for them", count, names.size()));
  }
  for (std::string& name : names) {
    Result<ForeignTensor> tensor = ReadTensor(reader, fmt::format("parameter '{}'", name));
    if (!tensor) return Forward(tensor);
    blob.parameters.emplace_back(std::move(name), std::move(*tensor));
  }
  ReadString(reader);  // the name under which TVM offers it
  return reader.ok() ? Status{} : Truncated("the graph in the library");
}

Status Refuse(const std::string& kind) {
  if (kind.starts_with("relax.")) return RefuseRelax();
  if (kind == "AotExecutorFactory") {
    return Fail(
        StatusCode::kUnsupported,
        "the library has a model of TVM's ahead-of-time executor inside (AotExecutorFactory), which is "
        "machine code and no program that could be read; export the model with the graph executor or "
        "for the Relay VM");
  }
  return Fail(
      StatusCode::kUnsupported,
      fmt::format(
          "the library has a module of kind '{}' inside, of an external code generator or for a device "
          "that is not known; export the model for the CPU, OpenCL or CUDA",
          kind));
}

Status ReadEntry(ByteReader& reader, Contents& contents) {
  const std::string kind = ReadString(reader);
  if (!reader.ok()) return Truncated("the library's table of modules");
  if (kind == "_import_tree") {
    ReadInts(reader);
    ReadInts(reader);
    return reader.ok() ? Status{} : Truncated("the library's import tree");
  }
  const std::size_t position = contents.modules++;
  if (kind == "_lib") return {};
  Model model{position, {}};
  Status read;
  if (kind == "VMExecutable") {
    model.content.relay_executable = reader.ReadBytes(reader.Read<std::uint64_t>());
    if (!reader.ok()) read = Truncated("the Relay VM executable in the library");
  } else if (kind == "GraphExecutorFactory" || kind == "GraphRuntimeFactory") {
    read = ReadGraphFactory(reader, model.content);
  } else if (IsDeviceModule(kind)) {
    const Result<DeviceModule> code = ReadDeviceModule(kind, DeviceModuleForm::kClassic, reader);
    return code ? Status() : Forward(code);
  } else {
    read = Refuse(kind);
  }
  if (read) contents.models.push_back(std::move(model));
  return read;
}

}  // namespace

Result<LibraryBlob> ReadLibraryBlob(Span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto size = reader.Read<std::uint64_t>();
  if (!reader.ok() || size != reader.remaining()) {
    return Malformed(
        fmt::format("the library's data claims {} bytes, there are {}", size, reader.remaining()));
  }
  const auto count = reader.Read<std::uint64_t>();
  Contents contents;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (Status entry = ReadEntry(reader, contents); !entry) return Forward(entry);
  }
  if (!reader.ok()) return Truncated("the library's table of modules");
  if (contents.models.empty()) return LibraryBlob{};
  Model& first = contents.models.front();
  if (contents.models.size() > 1 && first.position != 0) {
    return Fail(
        StatusCode::kUnsupported,
        fmt::format("the library has {} models inside, and none of them is its root module; export each "
                    "into a library of its own",
                    contents.models.size()));
  }
  return std::move(first.content);
}

}  // namespace rewire::tvm
