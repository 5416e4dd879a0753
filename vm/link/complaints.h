// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"

namespace rewire {

// Collects errors, so that a host sees all of them at once, or as many as anybody reads. A file may have a
// million errors, and making the text of each costs more than finding it.
class Complaints {
 public:
  static constexpr std::uint32_t kMost = 64;

  // Does nothing once full.
  void Add(const Message& text) {
    if (!full()) Append(&text_, {"\n  {}", text});
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  // True if the collector may stop.
  bool full() const { return count_ >= kMost; }
  Status Fail(const std::string& head) const {
    return rewire::Fail(StatusCode::kLinkFailed, head + text_ + (full() ? "\n  (there may be more)" : ""));
  }

 private:
  std::string text_;
  std::uint32_t count_ = 0;
};

}  // namespace rewire
