// SPDX-License-Identifier: Apache-2.0
// The data that TVM's export_library links into a shared library:
//
//   u64 bytes of what follows | u64 entries | per entry: str key, payload
//
// Key "_lib" (no payload) stands for the library itself, "_import_tree" for two list<u64> that say which
// module imports which. Any other key is the kind of a module that TVM knows how to read; its payload has no
// length, so an unknown one cannot be passed over.
#include <fmt/format.h>

#include "base/array.h"
#include "executable_format/import/stream.h"

namespace rewire::tvm {
namespace {

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

Status ReadEntry(ByteReader& reader, LibraryBlob& blob) {
  const std::string kind = ReadString(reader);
  if (!reader.ok()) return Truncated("the library's table of modules");
  if (kind == "_lib") return {};
  if (kind == "_import_tree") {
    ReadInts(reader);
    ReadInts(reader);
    return reader.ok() ? Status{} : Truncated("the library's import tree");
  }
  if (kind == "VMExecutable") {
    blob.relay_executable = reader.ReadBytes(reader.Read<std::uint64_t>());
    return reader.ok() ? Status{} : Truncated("the Relay VM executable in the library");
  }
  if (kind == "GraphExecutorFactory" || kind == "GraphRuntimeFactory") return ReadGraphFactory(reader, blob);
  if (kind.starts_with("relax.")) return RefuseRelax();
  return Fail(
      StatusCode::kUnsupported,
      fmt::format("the library has a module of kind '{}' inside: code for a device, or of an external "
                  "code generator; export the model for the CPU and without external code generators",
                  kind));
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
  LibraryBlob blob;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (Status entry = ReadEntry(reader, blob); !entry) return Forward(entry);
  }
  if (!reader.ok()) return Truncated("the library's table of modules");
  if (!blob.relay_executable.empty() && !blob.graph_json.empty()) {
    return Fail(StatusCode::kUnsupported, "the library has both a Relay VM executable and a graph inside");
  }
  return blob;
}

}  // namespace rewire::tvm
