// SPDX-License-Identifier: Apache-2.0
// Section `compressed`, after docs/format.md.
#include <algorithm>
#include <utility>

#include "rewire/tests/hostile/container.h"

#ifndef REWIRE_NO_ZSTD
#include <zstd.h>
#endif

namespace rewire::hostile {
namespace {

constexpr std::uint64_t kMostTimes = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

auto FindCompressed(Container& container) {
  return std::find_if(container.sections.begin(), container.sections.end(),
                      [](const Section& section) { return section.id == kCompressed; });
}

bool Has(const Container& container, std::uint32_t id) {
  return std::any_of(container.sections.begin(), container.sections.end(),
                     [id](const Section& section) { return section.id == id; });
}

std::optional<Bytes> Content(std::string_view section) {
  ByteReader reader(section);
  const auto size = reader.Number<std::uint64_t>();
  if (!reader.ok() || size == 0) return std::nullopt;
  const std::string_view frames = section.substr(sizeof(size));
  if (size > kMostBytes || size > kMostTimes * frames.size()) return std::nullopt;
#ifdef REWIRE_NO_ZSTD
  return std::nullopt;
#else
  Bytes content(size, '\0');
  if (ZSTD_decompress(content.data(), size, frames.data(), frames.size()) != size) return std::nullopt;
  return content;
#endif
}

}  // namespace

std::optional<Container> Decompressed(Container container) {
  const auto at = FindCompressed(container);
  if (at == container.sections.end()) return container;
  const std::optional<Bytes> content = Content(at->bytes);
  container.sections.erase(at);
  const std::optional<Container> inside = content ? ParseContainer(*content) : std::nullopt;
  if (!inside || Has(container, kCompressed)) return std::nullopt;
  for (const Section& section : inside->sections) {
    if (section.id == kData || section.id == kCompressed || Has(container, section.id)) return std::nullopt;
    container.sections.push_back(section);
  }
  return container;
}

Container Compressed(const Container& container) {
#ifdef REWIRE_NO_ZSTD
  return container;
#else
  Container inside = container, outside = container;
  const auto is_data = [](const Section& section) { return section.id == kData; };
  const auto is_other = [](const Section& section) { return section.id != kData; };
  std::vector<Section>& in = inside.sections;
  in.erase(std::remove_if(in.begin(), in.end(), is_data), in.end());
  std::vector<Section>& out = outside.sections;
  out.erase(std::remove_if(out.begin(), out.end(), is_other), out.end());
  const Bytes content = WriteContainer(inside);
  Bytes frames(ZSTD_compressBound(content.size()), '\0');
  frames.resize(ZSTD_compress(frames.data(), frames.size(), content.data(), content.size(), 1));
  ByteWriter writer;
  writer.Number(static_cast<std::uint64_t>(content.size()));
  writer.Raw(frames);
  Section section;
  section.id = kCompressed;
  section.flags = FlagsOf(kCompressed);
  section.bytes = writer.bytes();
  out.insert(out.begin(), std::move(section));
  return outside;
#endif
}

}  // namespace rewire::hostile
