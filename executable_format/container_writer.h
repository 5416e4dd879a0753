// SPDX-License-Identifier: Apache-2.0
//
// Writes the container (layout.h) without knowing what the sections mean. Private to the writers.
#pragma once

#include <utility>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/atomic_file.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/layout.h"

namespace rewire::container {

struct Section {
  const SectionInfo* info;
  std::vector<std::byte> bytes;  // empty for the data section, which is written from its items
  SectionEntry entry;
};

// Receives a file piece by piece.
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

// Writes a file that is complete or absent.
class FileSink : public Sink {
 public:
  explicit FileSink(AtomicFile* file) : file_(file) {}
  Status Write(Span<const std::byte> bytes) override { return file_->Write(bytes); }

 private:
  AtomicFile* file_;
};

// Passes a file to the sink, piece by piece. First come the sections in order. Then, if there are items,
// comes the data section with each item at the next multiple of kDataAlignment. Errors: kInvalidArgument if
// the file would be too large.
Status WriteSections(Array<Section> sections, Span<const Span<const std::byte>> items, Sink* sink);

}  // namespace rewire::container
