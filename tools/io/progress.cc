// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace rewire::tools {

Progress::Progress(std::string what, std::size_t steps)
    : what_(std::move(what)), steps_(steps), shown_(isatty(STDERR_FILENO) == 1 && steps > 1) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::Show(std::size_t step) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  fmt::print(stderr, "\r{} {} of {}", what_, step + 1, steps_);
  std::fflush(stderr);
}

}  // namespace rewire::tools
