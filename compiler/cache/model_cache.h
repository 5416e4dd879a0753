// SPDX-License-Identifier: Apache-2.0
//
// ModelCache: a folder with executables of models that were compiled before (docs/compiler.md).
//
// Each entry is an .rwx file, which is mapped, so that processes share its constants. Its name is a hash of
// the key. The whole key is in its metadata and is compared, together with the files of external data and
// what they held. All of it are hashes under a key of the folder's own (content_hash.h). Folder and files
// must be the user's alone (base/standalone/private_folder.h).
//
// Any number of threads and processes may use a folder at once: an entry appears whole, and the last one that
// writes it stays.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "rewire/base/standalone/private_folder.h"
#include "rewire/compiler/cache/content_hash.h"
#include "rewire/compiler/import/tensor_data.h"
#include "rewire/executable_format/executable.h"

namespace rewire::compiler {

class ModelCache {
 public:
  // Makes the folder if its parent has none of that name.
  explicit ModelCache(const std::string& path);

  // Whether the folder is used. If not, problem() says why.
  bool is_open() const { return folder_.is_open() && hash_.has_key(); }

  // Hashes of models and options, for keys. Only if is_open().
  const ContentHash& hash() const { return hash_; }

  // Returns the entry of a key. Nothing if there is none, or if it is damaged: every checksum is checked.
  // Nothing if its external data has changed, or if a library of Rewire's kernels that it calls is gone.
  std::optional<Executable> Find(const std::string& key, const ExternalData& external) const;

  // External data that a module was made of: locations, and when compiling began, as WallTime gives it.
  struct Read {
    std::set<std::string> locations;
    std::int64_t began = 0;
  };
  // Writes the module as the entry of the key and returns it as Find does. Nothing if that fails, or if
  // external data has changed since compiling began; problem() then says why.
  std::optional<Executable> Keep(const std::string& key, const Read& read, const ExternalData& external,
                                 Module module);

  // Why the folder is not used, or why the last entry was not written. Empty: nothing went wrong.
  const std::string& problem() const { return problem_; }

 private:
  std::string path_;
  PrivateFolder folder_;
  ContentHash hash_;
  std::string problem_;
};

}  // namespace rewire::compiler
