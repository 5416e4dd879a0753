// SPDX-License-Identifier: Apache-2.0
//
// ContentHash: what a folder of compiled models tells contents apart by.
//
// The hash has a key of random numbers, which the folder keeps. So a model from somebody else cannot be made
// to have the hash of another one: whoever makes it does not know the key.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/files/file_identity.h"
#include "rewire/base/span.h"
#include "rewire/base/standalone/private_folder.h"
#include "rewire/base/status.h"

namespace rewire::compiler {

class ContentHash {
 public:
  // Takes the folder's key. Draws one and keeps it if there is none.
  explicit ContentHash(const PrivateFolder& folder);

  // False if the folder has no key and takes none. Then nothing may be hashed.
  bool has_key() const { return !key_.empty(); }

  // "HASH SIZE" of a content: 128 bits as hexadecimal digits, and the number of bytes.
  std::string TextOf(Span<const std::byte> content) const;
  std::string TextOf(const std::string& content) const;

  // The same for a file. A file that this process has hashed before is not read again if it is the same by
  // device, inode, size and time. Thread-safe. Errors: as of MapFile.
  Result<std::string> TextOfFile(const std::string& path) const;

 private:
  std::string key_;
};

// "INODE SIZE TIME". The device is left out, because a container's differs each time that it starts.
std::string IdentityText(const FileIdentity& identity);

}  // namespace rewire::compiler
