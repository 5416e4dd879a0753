// SPDX-License-Identifier: Apache-2.0
//
// The errors of one source text. They are collected, so that one run reports several errors, each with its
// position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/status.h"

namespace rewire::text {

// Both count from 1; a column counts bytes.
struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

class Diagnostics {
 public:
  Diagnostics(std::string file_name, std::size_t max_errors)
      : file_name_(std::move(file_name)), max_errors_(max_errors) {}

  // Errors past the limit are counted, not kept.
  void Report(Position position, const std::string& message);

  bool ok() const { return count_ == 0; }
  // True if enough errors have been reported, so that the reader may stop.
  bool full() const { return count_ >= max_errors_; }

  // One line "file:line:column: message" for each, in the order of the text. Only after a report.
  Error ToError() const;

 private:
  struct Entry {
    Position position;
    std::string message;
  };
  std::string file_name_;
  std::size_t max_errors_;
  std::size_t count_ = 0;
  Array<Entry> entries_;
};

}  // namespace rewire::text
