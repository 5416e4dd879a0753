// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/peer_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "rewire/executable_format/writer.h"
#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {
namespace {

// The place of a section in a file that the library writes; behind all others where it writes none.
std::size_t PlaceOf(const Section& section) {
  const std::vector<std::uint32_t>& order = SectionOrder();
  return static_cast<std::size_t>(std::find(order.begin(), order.end(), section.id) - order.begin());
}

// The container as the library writes it: in order, without what it does not know and without empty lists.
Bytes AsWritten(Container container) {
  const auto is_left_out = [](const Section& section) {
    const bool is_list = section.id != kCode && section.id != kData;
    const bool is_empty = section.bytes.find_first_not_of('\0') == Bytes::npos;
    return PlaceOf(section) == SectionOrder().size() || section.bytes.empty() || (is_list && is_empty);
  };
  std::vector<Section>& sections = container.sections;
  sections.erase(std::remove_if(sections.begin(), sections.end(), is_left_out), sections.end());
  std::sort(sections.begin(), sections.end(),
            [](const Section& a, const Section& b) { return PlaceOf(a) < PlaceOf(b); });
  container.minor = 0;
  return WriteContainer(container);
}

std::string_view TextOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string CheckPeer(Module module, std::string_view file, bool data_checked) {
  std::optional<Container> container = ParseContainer(file);
  if (container) container = Decompressed(*std::move(container));
  if (!container) return "the reader accepts a container that docs/format.md does not allow";
  if (module.compressed) {
    const Result<std::vector<std::byte>> compressed = SerializeModule(module);
    module.compressed = false;
    const Result<std::vector<std::byte>> plain = SerializeModule(module);
    const std::optional<Container> again = compressed ? ParseContainer(TextOf(*compressed)) : std::nullopt;
    const std::optional<Container> opened = again ? Decompressed(*again) : std::nullopt;
    if (plain && (!opened || AsWritten(*opened) != TextOf(*plain))) return "compressed to another file";
  }
  const Result<std::vector<std::byte>> written = SerializeModule(module);
  // The checksums of constants that were not looked at may be wrong, which the writer refuses.
  if (!written) return data_checked ? "cannot be written: " + written.error().message() : "";
  const std::string_view bytes = TextOf(*written);
  const Bytes expected = AsWritten(*std::move(container));
  if (data_checked && bytes != expected) {
    const auto differs = std::mismatch(bytes.begin(), bytes.end(), expected.begin(), expected.end());
    return "written as another file from byte " + std::to_string(differs.first - bytes.begin());
  }
  const std::optional<Program> program = ParseFile(bytes);
  if (!program) return "docs/format.md does not describe what the library writes";
  if (WriteFile(*program) != bytes) return "docs/format.md leads to another file";
  return "";
}

}  // namespace rewire::hostile
