// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/linked/linked_executable.h"

#include <memory>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/executable_format/bundle_reader.h"
#include "rewire/executable_format/linked/linked_archive.h"

extern "C" {
// CMake composes the name (executable_format/CMakeLists.txt).
extern const char REWIRE_LINKED_VERSION;
const char REWIRE_LINKED_VERSION = 0;
}

namespace rewire {

Result<Executable> OpenLinked(const RewireLinkedExecutable& linked) {
  if (linked.version != &REWIRE_LINKED_VERSION) {
    return Fail(StatusCode::kInvalidArgument,
                "no executable that vm-aot --bytecode has made for this library; make it again");
  }
  auto module = std::make_shared<Module>();
  Array<std::uint64_t> sizes;
  Array<std::uint32_t> words;
  LinkedArchive archive(linked.tables);
  sections::LinkedTables(archive, *module, sizes, words);
  const auto* data = reinterpret_cast<const std::byte*>(linked.data);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    module->constants[i].stored.view = {data, static_cast<std::size_t>(sizes[i])};
    data += (sizes[i] + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  }
  return BundleReader::Accept(std::move(module));
}

}  // namespace rewire
