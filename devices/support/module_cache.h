// SPDX-License-Identifier: Apache-2.0
//
// Compiled programs kept as files, because a driver's compiler takes seconds.
//
// A file holds its whole key (device, driver, options, source) before the binary, so two programs are never
// mixed up. A file that cannot be read or does not match is as good as none. Files appear whole: they are
// written under another name first.
#pragma once

#include <string>
#include <string_view>

namespace rewire::devices {

// The path of the file for a key in `folder`.
std::string CachePath(const std::string& folder, std::string_view key);

// The binary that is kept for the key; empty if there is none.
std::string ReadCached(const std::string& path, std::string_view key);

// Keeps a binary. Does nothing if the folder cannot be written.
void WriteCached(const std::string& path, std::string_view key, std::string_view binary);

}  // namespace rewire::devices
