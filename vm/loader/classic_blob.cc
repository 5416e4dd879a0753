// SPDX-License-Identifier: Apache-2.0
//   u64 bytes that follow | u64 entries | per entry: str key, payload        (str, vec: u64 count, elements)
// Payloads: "_lib" none; "_import_tree" two vec<u64>; "VMExecutable" str; "GraphExecutorFactory" (in old
// versions "GraphRuntimeFactory") str graph, u64 n, vec<str> names, n tensors, str name. Those of other kinds
// have no length.
#include "rewire/vm/loader/classic_blob.h"

#include <string>
#include <string_view>
#include <utility>

#include "rewire/base/byte_reader.h"
#include "rewire/vm/loader/device_code.h"

namespace rewire {
namespace {

Status DamagedBlob(const Message& what) {
  return Fail(StatusCode::kInvalidFile, "damaged __tvm_dev_mblob: {}", what.Text());
}

void SkipString(ByteReader* reader) { reader->ReadBytes(reader->Read<std::uint64_t>()); }

void SkipIndices(ByteReader* reader) {
  reader->ReadBytes(reader->ReadCount<std::uint64_t>(sizeof(std::uint64_t)) * sizeof(std::uint64_t));
}

// u64 magic, u64 reserved, i32 device type, i32 device id, i32 rank, 4 bytes element type, i64 dimensions,
// i64 bytes of data, data.
void SkipTensor(ByteReader* reader) {
  reader->ReadBytes(24);
  const auto rank = reader->Read<std::int32_t>();
  reader->ReadBytes(4);
  reader->ReadBytes(rank < 0 ? ~std::uint64_t{0} : std::uint64_t{8} * static_cast<std::uint64_t>(rank));
  reader->ReadBytes(reader->Read<std::uint64_t>());
}

void SkipGraph(ByteReader* reader) {
  SkipString(reader);
  const auto tensors = reader->Read<std::uint64_t>();
  for (std::uint64_t names = reader->ReadCount<std::uint64_t>(sizeof(std::uint64_t)); names > 0; --names) {
    SkipString(reader);
  }
  for (std::uint64_t i = 0; i < tensors && reader->ok(); ++i) SkipTensor(reader);
  SkipString(reader);
}

}  // namespace

Result<Array<tvm::DeviceModule>> ReadClassicBlob(Span<const std::byte> bytes) {
  ByteReader outer(bytes);
  const auto size = outer.Read<std::uint64_t>();
  ByteReader reader(outer.ReadBytes(size));
  if (!outer.ok()) {
    return Forward(DamagedBlob({"it says {} bytes, its symbol has {}", size, bytes.size()}));
  }
  Array<tvm::DeviceModule> modules;
  for (auto entries = reader.Read<std::uint64_t>(); entries > 0 && reader.ok(); --entries) {
    const std::string_view kind = reader.ReadString(reader.Read<std::uint64_t>());
    if (!reader.ok()) break;
    if (kind == "_lib") continue;
    if (kind == "_import_tree") {
      SkipIndices(&reader);
      SkipIndices(&reader);
    } else if (kind == "VMExecutable") {
      SkipString(&reader);
    } else if (kind == "GraphExecutorFactory" || kind == "GraphRuntimeFactory") {
      SkipGraph(&reader);
    } else if (tvm::IsDeviceModule(kind)) {
      Result<tvm::DeviceModule> module = tvm::ReadDeviceModule(kind, tvm::DeviceModuleForm::kClassic, reader);
      if (!module) return Forward(DamagedBlob(module.error().message()));
      modules.push_back(std::move(*module));
    } else if (kind == "AotExecutorFactory") {
      return Fail(
          StatusCode::kUnsupported,
          "it is a model for TVM's ahead-of-time executor (AotExecutorFactory); export it with the graph "
          "executor or for the Relay VM");
    } else {
      return RefuseModules(Format("'{}'", kind));
    }
  }
  if (!reader.ok()) return Forward(DamagedBlob("an entry ends outside it"));
  return modules;
}

}  // namespace rewire
