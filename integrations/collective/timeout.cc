// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/timeout.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace rewire::collective {

using kernel::Status;

Status ReadTimeout(std::chrono::milliseconds* timeout) {
  *timeout = std::chrono::milliseconds(600'000);
  const char* const seconds = std::getenv("REWIRE_COLLECTIVE_TIMEOUT");
  if (seconds == nullptr) return Status();
  char* end = nullptr;
  const double given = std::strtod(seconds, &end);
  if (end == seconds || *end != '\0' || !(given > 0) || given > 1e9) {
    return kernel::ValueError("the environment variable REWIRE_COLLECTIVE_TIMEOUT is '", seconds,
                              "', expected seconds, more than 0");
  }
  *timeout = std::chrono::milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(given * 1000)));
  return Status();
}

Status TimedOut(std::chrono::milliseconds timeout) {
  return kernel::RuntimeError("the other ranks have not come to this call within ",
                              static_cast<double>(timeout.count()) / 1000.0,
                              " s (REWIRE_COLLECTIVE_TIMEOUT)");
}

}  // namespace rewire::collective
