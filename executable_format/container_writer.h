// SPDX-License-Identifier: Apache-2.0
// The container without what its sections mean (layout.h): the side that writes. Private to the writers.
#pragma once

#include <utility>
#include <vector>

#include "base/array.h"
#include "base/atomic_file.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/layout.h"

namespace rewire::container {

struct Section {
  const SectionInfo* info;
  std::vector<std::byte> bytes;  // empty for data, which is written from its items
  SectionEntry entry;
};

// Where a file goes, piece by piece.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status Write(Span<const std::byte> bytes) = 0;
};

class MemorySink : public Sink {
 public:
  Status Write(Span<const std::byte> bytes) override {
    file_.insert(file_.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::vector<std::byte> Take() { return std::move(file_); }

 private:
  std::vector<std::byte> file_;
};

// A file that is whole or absent.
class FileSink : public Sink {
 public:
  explicit FileSink(AtomicFile* file) : file_(file) {}
  Status Write(Span<const std::byte> bytes) override { return file_->Write(bytes); }

 private:
  AtomicFile* file_;
};

// Passes a file on, piece by piece: the sections in their order, then, unless there are no items, data with
// each of them at the next multiple of kDataAlignment. kInvalidArgument: it would be larger than a file can
// be.
Status WriteSections(Array<Section> sections, Span<const Span<const std::byte>> items, Sink* sink);

}  // namespace rewire::container
