// SPDX-License-Identifier: Apache-2.0
#include "rewire/devices/support/module_cache.h"

#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace rewire::devices {
namespace {

// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv): for the file's name, and to notice damage.
std::uint64_t Hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// What stands before the binary. Drivers may crash on a damaged binary, so its length and hash are part of
// it.
std::string Header(std::string_view key, std::string_view binary) {
  return "rewire-module-1 " + std::to_string(key.size()) + ' ' + std::to_string(binary.size()) + ' ' +
         std::to_string(Hash(binary)) + '\n' + std::string(key);
}

}  // namespace

std::string CachePath(const std::string& folder, std::string_view key) {
  char name[32];
  std::snprintf(name, sizeof(name), "/%016" PRIx64 ".module", Hash(key));
  return folder + name;
}

std::string ReadCached(const std::string& path, std::string_view key) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t line = content.find('\n');
  if (line == std::string::npos || content.size() - line - 1 < key.size()) return {};
  const std::string binary = content.substr(line + 1 + key.size());
  return content == Header(key, binary) + binary ? binary : std::string();
}

void WriteCached(const std::string& path, std::string_view key, std::string_view binary) {
  static std::atomic<unsigned> number{0};
  const std::string draft = path + "." + std::to_string(getpid()) + "-" + std::to_string(++number);
  std::error_code ignored;
  {
    std::ofstream file(draft, std::ios::binary);
    file << Header(key, binary) << binary;
    file.close();
    if (!file) {
      std::filesystem::remove(draft, ignored);
      return;
    }
  }
  std::filesystem::rename(draft, path, ignored);
  if (ignored) std::filesystem::remove(draft, ignored);
}

}  // namespace rewire::devices
