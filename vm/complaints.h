// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"

namespace rewire {

// Collects what is wrong so that a host sees all of it at once.
class Complaints {
 public:
  void Add(const Message& text) { Append(&text_, {"\n  {}", text}); }
  bool empty() const { return text_.empty(); }
  Status Fail(const std::string& head) const { return rewire::Fail(StatusCode::kLinkFailed, head + text_); }

 private:
  std::string text_;
};

}  // namespace rewire
