// SPDX-License-Identifier: Apache-2.0
// The container without what its sections mean (layout.h): the side that reads. Private to the readers.
#pragma once

#include <cstdint>
#include <string>

#include "base/array.h"
#include "base/export.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/layout.h"
#include "executable_format/module.h"

namespace rewire::container {

inline Status Damaged(const char* what) { return Fail(StatusCode::kInvalidFile, what); }
template <typename First, typename... Rest>
Status Damaged(MessageFormat<1 + sizeof...(Rest)> what, const First& first, const Rest&... rest) {
  return Fail(StatusCode::kInvalidFile, what, first, rest...);
}

struct FoundSection {
  const SectionInfo* info;  // null: unknown and not required
  SectionEntry entry;
  Span<const std::byte> bytes;
};

// Checks header, directory, padding and the sections' checksums; the sections in the file's order.
// kInvalidFile, kUnsupported.
REWIRE_API Result<Array<FoundSection>> ReadSections(Span<const std::byte> file);

// The items of a data section by their sizes, empty for a size of 0: each stands at the next multiple of
// kDataAlignment. `verify` also looks at the padding between them, which reads their pages. kInvalidFile, in
// words of the constants that they are, or of blobs where that is null.
REWIRE_API Result<Array<Span<const std::byte>>> SplitData(Span<const std::byte> data,
                                                          Span<const std::uint64_t> sizes,
                                                          const Array<Constant>* constants, bool verify);

}  // namespace rewire::container
