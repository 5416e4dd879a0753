// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace rewire::serve::test {

// Sets where Rewire's own files are searched first, for as long as it lives.
class LibraryPath {
 public:
  explicit LibraryPath(const std::string& folder) {
    const char* const before = std::getenv(kName);
    if (before != nullptr) before_ = before;
    setenv(kName, (before_ ? folder + ":" + *before_ : folder).c_str(), 1);
  }
  ~LibraryPath() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  LibraryPath(const LibraryPath&) = delete;
  LibraryPath& operator=(const LibraryPath&) = delete;

 private:
  static constexpr const char* kName = "REWIRE_LIBRARY_PATH";
  std::optional<std::string> before_;
};

}  // namespace rewire::serve::test
