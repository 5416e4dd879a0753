// SPDX-License-Identifier: Apache-2.0
//
// Zip archives, as far as .npz files need them: stored and deflated entries, and zip64 for what has 4 GiB or
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/atomic_file.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire {

// An entry as the directory of an archive describes it. Nothing of it is trusted until UnpackZipEntry has
// compared it with the bytes.
struct ZipEntry {
  std::string name;
  bool encrypted = false;
  std::uint16_t method = 0;
  std::uint32_t checksum = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t header_at = 0;  // where the entry's own header begins
};

// The entries in the order of the directory. Errors: kInvalidFile if the bytes are no archive, or if the
// directory does not lie within them.
Result<std::vector<ZipEntry>> ReadZipDirectory(Span<const std::byte> archive);

// The content of an entry, whose size and checksum are right. Errors: kInvalidFile; kUnsupported for an
// encrypted entry and for methods other than stored and deflated.
Result<SharedBytes> UnpackZipEntry(Span<const std::byte> archive, const ZipEntry& entry);

enum class ZipMethod : std::uint16_t { kStored = 0, kDeflated = 8 };

// Writes an archive to a file, entry by entry. Entries have the earliest date that a zip can hold, so equal
// entries give equal archives.
class ZipWriter {
 public:
  // Sizes and positions from `zip64_from` on are written in their long form. Tests lower it.
  explicit ZipWriter(AtomicFile* file, std::uint64_t zip64_from = 0xFFFFFFFF)
      : file_(*file), zip64_from_(zip64_from) {}

  Status Add(const std::string& name, Span<const std::byte> content, ZipMethod method);
  // Writes the directory. The file is not committed.
  Status Finish();

 private:
  bool IsLong(const ZipEntry& entry) const;
  Status Write(Span<const std::byte> bytes);

  AtomicFile& file_;
  std::uint64_t zip64_from_;
  std::uint64_t position_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace rewire
