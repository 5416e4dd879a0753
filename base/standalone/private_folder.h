// SPDX-License-Identifier: Apache-2.0
//
// PrivateFolder: a folder in which compiled code is kept between processes. Whoever can write such a file
// runs code in the process that loads it. So a folder and each file in it must belong to the effective user
// and be writable by nobody else.
//
// Everything is checked on what was opened and never on a path, which may lead elsewhere a moment later. No
// link is followed. This folder needs no other of Rewire's, because libraries of devices use it, too.
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/standalone/descriptor.h"

namespace rewire {

class PrivateFolder {
 public:
  // Opens an existing folder. One that cannot be trusted or opened holds nothing and takes nothing: reason()
  // says why. An empty path is none, too.
  explicit PrivateFolder(std::string path);

  bool is_open() const { return folder_.is_open(); }
  const char* reason() const { return reason_; }

  // Returns what was kept for the key; empty if nothing was, or if its file is damaged or cannot be trusted.
  // The file has the whole key, which is compared: its name is a hash that keys may share.
  std::string Read(std::string_view key) const;
  // Keeps `content` in place of what was kept before. The file appears whole, under a name that nobody
  // foresees until then. False if that fails; then nothing has changed.
  bool Write(std::string_view key, std::string_view content) const;

  // Opens a file of the folder for reading, by its name. There is no descriptor if there is no file, or if it
  // cannot be trusted.
  Descriptor OpenFile(const std::string& name) const;
  // Returns a path of a file of the folder, through its descriptor. So it leads into the folder that was
  // checked, whatever its own path leads to by now. It holds while this object lives.
  std::string PathOf(const std::string& name) const;

 private:
  Descriptor folder_;
  const char* reason_ = "";
};

}  // namespace rewire
