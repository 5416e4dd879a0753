// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/record/new_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace rewire::tools {

Status MakeNewFolder(const std::string& path, const std::string& option) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  const bool empty = !failed && std::filesystem::is_empty(path, failed);
  if (failed) {
    return Fail(StatusCode::kIo,
                fmt::format("{}: cannot make the folder '{}': {}", option, path, failed.message()));
  }
  if (empty) return {};
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("{}: there are files in '{}' already; name a new folder", option, path));
}

std::string FileNamePart(const std::string& text) {
  constexpr std::size_t kMost = 80;
  std::string part = text.substr(0, kMost);
  for (char& c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  return part;
}

}  // namespace rewire::tools
