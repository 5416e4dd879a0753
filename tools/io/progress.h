// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace rewire::tools {

// A progress line on stderr that is overwritten. It is shown only on a terminal.
class Progress {
 public:
  // "run 3 of 10" if `what` is "run". Nothing is shown for a single step.
  Progress(std::string what, std::size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(std::size_t step);

 private:
  std::string what_;
  std::size_t steps_;
  bool shown_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace rewire::tools
