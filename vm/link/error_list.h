// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"

namespace rewire {

// Collects the errors of one step of linking into one Status, so that a host sees all of them at once, or as
// many as anybody reads. A file may have a million errors, and making the text of each costs more than
// finding it.
class ErrorList {
 public:
  static constexpr std::uint32_t kMost = 64;

  explicit ErrorList(std::uint32_t most = kMost) : most_(most) {}

  // Does nothing once full.
  void Add(const Message& text) {
    if (full()) return;
    Append(&text_, {"\n  {}", text});
    ++count_;
  }
  // True if the collector may stop.
  bool full() const { return count_ >= most_; }
  // OK if there are no errors, else kLinkFailed: `head`, and a line for each.
  Status ToStatus(const char* head) const {
    if (count_ == 0) return {};
    return Fail(StatusCode::kLinkFailed,
                std::string(head) + text_ + (full() ? "\n  (there may be more)" : ""));
  }

 private:
  std::string text_;
  std::uint32_t most_;
  std::uint32_t count_ = 0;
};

}  // namespace rewire
