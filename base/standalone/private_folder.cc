// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/standalone/private_folder.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

namespace rewire {
namespace {

// Why what was opened cannot be trusted; null if it can.
const char* Distrust(const struct stat& info) {
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others than its owner can write it";
  return nullptr;
}

// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv): for names, and to notice damage. It protects against
// nobody; that only the user can write the file does.
std::uint64_t HashOf(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string NameOf(std::string_view key) {
  char name[32];
  std::snprintf(name, sizeof(name), "%016" PRIx64 ".kept", HashOf(key));
  return name;
}

// The header stands before the content. Drivers may crash on damaged code, so its length and hash are part of
// it.
std::string HeaderOf(std::string_view key, std::string_view content) {
  return "rewire-kept-1 " + std::to_string(key.size()) + ' ' + std::to_string(content.size()) + ' ' +
         std::to_string(HashOf(content)) + '\n' + std::string(key);
}

bool ReadAll(int descriptor, std::size_t size, std::string* text) {
  text->resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = read(descriptor, text->data() + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

bool WriteAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

PrivateFolder::PrivateFolder(std::string path) {
  // A slash at the end would make a link be followed.
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  constexpr int kHow = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor folder(path.empty() ? -1 : open(path.c_str(), kHow));
  if (!folder.is_open()) {
    reason_ = path.empty()       ? "there is no name"
              : errno == ENOTDIR ? "it is no folder, or a link"
              : errno == ENOENT  ? "there is no such folder"
                                 : std::strerror(errno);
    return;
  }
  struct stat info;
  const char* distrust = fstat(folder.get(), &info) != 0 ? std::strerror(errno) : Distrust(info);
  if (distrust != nullptr) {
    reason_ = distrust;
    return;
  }
  folder_ = std::move(folder);
}

Descriptor PrivateFolder::OpenFile(const std::string& name) const {
  if (!is_open()) return {};
  // A pipe would keep open() waiting.
  Descriptor file(openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0) return {};
  // A second name of the file may lie where others can reach it.
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || Distrust(info) != nullptr) return {};
  return file;
}

std::string PrivateFolder::PathOf(const std::string& name) const {
  return "/proc/self/fd/" + std::to_string(folder_.get()) + '/' + name;
}

std::string PrivateFolder::Read(std::string_view key) const {
  constexpr off_t kMostBytes = off_t{1} << 32;
  const Descriptor file = OpenFile(NameOf(key));
  struct stat info;
  if (!file.is_open() || fstat(file.get(), &info) != 0 || info.st_size > kMostBytes) return {};
  std::string text;
  if (!ReadAll(file.get(), static_cast<std::size_t>(info.st_size), &text)) return {};
  const std::size_t line = text.find('\n');
  if (line == std::string::npos || text.size() - line - 1 < key.size()) return {};
  std::string content = text.substr(line + 1 + key.size());
  const std::string header = HeaderOf(key, content);
  return text.compare(0, text.size() - content.size(), header) == 0 ? content : std::string();
}

bool PrivateFolder::Write(std::string_view key, std::string_view content) const {
  if (!is_open()) return false;
  std::uint64_t random[2];
  if (getrandom(random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) return false;
  char draft[48];
  std::snprintf(draft, sizeof(draft), "%016" PRIx64 "%016" PRIx64 ".draft", random[0], random[1]);
  constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
  constexpr int kHow = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  Descriptor file(openat(folder_.get(), draft, kHow, kOwnerOnly));
  if (!file.is_open()) return false;
  const bool is_written =
      WriteAll(file.get(), HeaderOf(key, content)) && WriteAll(file.get(), content) && file.Close();
  if (is_written && renameat(folder_.get(), draft, folder_.get(), NameOf(key).c_str()) == 0) return true;
  unlinkat(folder_.get(), draft, 0);
  return false;
}

}  // namespace rewire
