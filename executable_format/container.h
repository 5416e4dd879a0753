// SPDX-License-Identifier: Apache-2.0
//
// Reads the container (layout.h) without knowing what the sections mean. Private to the readers.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/module.h"

namespace rewire::container {

inline Status Damaged(const char* what) { return Fail(StatusCode::kInvalidFile, what); }
template <typename First, typename... Rest>
Status Damaged(MessageFormat<1 + sizeof...(Rest)> what, const First& first, const Rest&... rest) {
  return Fail(StatusCode::kInvalidFile, what, first, rest...);
}

struct FoundSection {
  const SectionInfo* info;  // null: an unknown section that is not required
  SectionEntry entry;
  Span<const std::byte> bytes;
};

// Checks the header, the directory, the padding and the checksums of sections. Adds the sections to `found`,
// in the order of the file. Errors: kInvalidFile, also if a section is in `found` already; kUnsupported.
REWIRE_API Status ReadSections(Span<const std::byte> file, Array<FoundSection>* found);

// Splits a data section into its items, given their sizes. Each item starts at the next multiple of
// kDataAlignment; an item of size 0 is empty. `verify` also checks the padding between items, which reads
// their pages. Errors: kInvalidFile. The message speaks of the given constants, or of blobs if that is null.
REWIRE_API Result<Array<Span<const std::byte>>> SplitData(Span<const std::byte> data,
                                                          Span<const std::uint64_t> sizes,
                                                          const Array<Constant>* constants, bool verify);

}  // namespace rewire::container
