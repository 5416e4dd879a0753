// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace rewire {

void AssertionFailed(const char* condition, const char* file, int line, const Message& message) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", file, line, condition, message.Text().c_str());
  std::abort();
}

}  // namespace rewire
