// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/touched_files.h"

#include <unistd.h>

#include <atomic>
#include <mutex>

#include "rewire/base/array.h"

namespace rewire {
namespace {

struct TouchedFile {
  dev_t device;
  ino_t inode;
  bool written;
  std::string path;
};

struct TouchedFiles {
  // Never destroyed: files are opened while a process ends.
  static TouchedFiles& Instance() {
    static TouchedFiles* const kInstance = new TouchedFiles;
    return *kInstance;
  }
  std::atomic<bool> remembered = false;
  std::mutex mutex;
  Array<TouchedFile> all;
};

void Note(const std::string& path, const struct stat& info, bool written) {
  TouchedFiles& files = TouchedFiles::Instance();
  // A device, a pipe and a terminal may be read and written.
  if (!files.remembered || !S_ISREG(info.st_mode)) return;
  const std::lock_guard<std::mutex> lock(files.mutex);
  for (const TouchedFile& known : files.all) {
    if (known.device == info.st_dev && known.inode == info.st_ino && known.written == written) return;
  }
  files.all.push_back({info.st_dev, info.st_ino, written, path});
}

}  // namespace

void RememberTouchedFiles() {
  TouchedFiles::Instance().remembered = true;
  struct stat info;
  if (fstat(STDIN_FILENO, &info) == 0) Note("standard input", info, false);
}

void NoteReadFile(const std::string& path, const struct stat& info) { Note(path, info, false); }

void NoteWrittenFile(const std::string& path) {
  struct stat info;
  if (TouchedFiles::Instance().remembered && stat(path.c_str(), &info) == 0) Note(path, info, true);
}

Status RefuseTouchedFile(const std::string& path) {
  TouchedFiles& files = TouchedFiles::Instance();
  struct stat info;
  if (!files.remembered || stat(path.c_str(), &info) != 0) return {};
  const std::lock_guard<std::mutex> lock(files.mutex);
  for (const TouchedFile& known : files.all) {
    if (known.device != info.st_dev || known.inode != info.st_ino) continue;
    return Fail(StatusCode::kInvalidArgument,
                "the output '{}' is the file '{}', which was {}; name another output", path, known.path,
                known.written ? "written just before" : "read as an input");
  }
  return {};
}

}  // namespace rewire
