// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/library_bin.h"

#include <cstdint>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/byte_reader.h"

namespace rewire {
namespace {

Status DamagedLibraryBin(const Message& what) {
  return Fail(StatusCode::kInvalidFile, "damaged __tvm_ffi__library_bin: {}", what.Text());
}

Array<std::uint64_t> ReadIndices(ByteReader* reader) {
  Array<std::uint64_t> indices(reader->ReadCount<std::uint64_t>(sizeof(std::uint64_t)));
  for (std::uint64_t& index : indices) index = reader->Read<std::uint64_t>();
  return indices;
}

}  // namespace

Result<Array<LibraryModule>> ParseLibraryBin(Span<const std::byte> bytes) {
  ByteReader outer(bytes);
  const auto size = outer.Read<std::uint64_t>();
  ByteReader reader(outer.ReadBytes(size));
  if (!outer.ok()) {
    return DamagedLibraryBin({"it says {} bytes, its symbol has {}", size, bytes.size()});
  }
  const Array<std::uint64_t> starts = ReadIndices(&reader);
  const Array<std::uint64_t> imports = ReadIndices(&reader);
  if (!reader.ok()) return DamagedLibraryBin("its import tree ends outside it");
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != imports.size()) {
    return DamagedLibraryBin("its import tree does not cover its modules");
  }
  const std::size_t count = starts.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (starts[i] > starts[i + 1]) return DamagedLibraryBin({"the imports of module {} run backwards", i});
  }
  for (std::uint64_t import : imports) {
    if (import >= count) {
      return DamagedLibraryBin({"module {} is imported, it has {}", import, count});
    }
  }
  Array<LibraryModule> modules;
  for (std::size_t i = 0; i < count; ++i) {
    LibraryModule module;
    module.kind = reader.ReadString(reader.Read<std::uint64_t>());
    if (module.kind != kOwnFunctionsKind) module.content = reader.ReadBytes(reader.Read<std::uint64_t>());
    if (!reader.ok()) return DamagedLibraryBin({"module {} ends outside it", i});
    modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace rewire
