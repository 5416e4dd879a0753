// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/cache/model_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "rewire/base/files/file_identity.h"
#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"
#include "rewire/compiler/cache/cache_key.h"
#include "rewire/executable_format/writer.h"
#include "rewire/kernels/contract/libraries.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::compiler {
namespace {

constexpr char kKey[] = "cache key";
constexpr char kExternal[] = "cache external data ";  // with a number: place, content and location of a file
constexpr unsigned kOwnerOnly = 0600;
constexpr std::int64_t kClockStep = 10000000;  // nanoseconds; file systems count time in steps of less

std::string NameOf(const std::string& key) {
  return HashText(Hash64({reinterpret_cast<const std::byte*>(key.data()), key.size()})) + ".rwx";
}

std::string PlaceText(const FileIdentity& identity) {
  return fmt::format("{} {}", identity.device, IdentityText(identity));
}

// "PLACE, CONTENT, LOCATION" of a file of external data. The place spares reading a file that has not
// changed; it is 0 for one that has been written a moment ago.
Result<std::string> LineOf(const ContentHash& hash, const std::string& location, const ExternalData& external,
                           std::int64_t began) {
  const Result<std::string> path = ExternalPath(location, external);
  if (!path) return Forward(path);
  const std::optional<FileIdentity> identity = IdentityOf(*path);
  const Result<std::string> content = hash.TextOfFile(*path);
  if (!content) return Forward(content);
  if (!identity || identity->changed >= began - kClockStep)
    return Fail(StatusCode::kBusy, fmt::format("external data '{}' has just been written", location));
  return fmt::format("{}, {}, {}", identity->settled ? PlaceText(*identity) : "0", *content, location);
}

// Whether the file that a line describes still holds what it held.
bool Holds(const ContentHash& hash, std::string_view line, const ExternalData& external) {
  const std::size_t first = line.find(", ");
  const std::size_t second = first == line.npos ? line.npos : line.find(", ", first + 2);
  if (second == line.npos) return false;
  const Result<std::string> path = ExternalPath(std::string(line.substr(second + 2)), external);
  if (!path) return false;
  const std::optional<FileIdentity> identity = IdentityOf(*path);
  if (identity && PlaceText(*identity) == line.substr(0, first)) return true;
  const Result<std::string> content = hash.TextOfFile(*path);
  return content && *content == line.substr(first + 2, second - first - 2);
}

// Whether this is the entry of the key, and its external data is what it was.
bool IsCurrent(const ContentHash& hash, const Module& module, const std::string& key,
               const ExternalData& external) {
  bool is_of_key = false;
  for (const auto& [name, value] : module.metadata) {
    if (name == kKey) is_of_key = value == key;
    if (name.rfind(kExternal, 0) == 0 && !Holds(hash, value, external)) return false;
  }
  return is_of_key;
}

// Whether the libraries of Rewire's kernels are there that the program calls. Linking opens them, too.
bool HasLibraries(const Module& module) {
  std::set<std::size_t> used;
  for (const KernelImport& kernel : module.kernels) used.insert(names::StockLibraryOf(kernel.name));
  used.erase(names::kNoLibrary);
  return std::all_of(used.begin(), used.end(), [](std::size_t library) {
    return static_cast<bool>(KernelSet().AddLibrary(names::kStockLibraries[library].file));
  });
}

// Makes the folder if there is none.
const std::string& Made(const std::string& path) {
  (void)mkdir(path.c_str(), S_IRWXU);
  return path;
}

}  // namespace

ModelCache::ModelCache(const std::string& path) : path_(path), folder_(Made(path)), hash_(folder_) {
  if (is_open()) return;
  problem_ = fmt::format("the cache '{}' is not used: {}", path,
                         folder_.is_open() ? "the key of its hashes cannot be kept in it" : folder_.reason());
}

std::optional<Executable> ModelCache::Find(const std::string& key, const ExternalData& external) const {
  if (!is_open()) return std::nullopt;
  const std::string name = NameOf(key);
  const Descriptor file = folder_.OpenFile(name);
  if (!file.is_open()) return std::nullopt;
  // By its descriptor, so that it is the file that was checked.
  const Result<SharedBytes> bytes = MapFile(fmt::format("/proc/self/fd/{}", file.get()));
  if (!bytes) return std::nullopt;
  OpenOptions options;
  options.verify_data = true;
  Result<Executable> executable = Executable::FromBytes(*bytes, options);
  if (!executable || !IsCurrent(hash_, executable->module(), key, external) ||
      !HasLibraries(executable->module()))
    return std::nullopt;
  return *std::move(executable);
}

std::optional<Executable> ModelCache::Keep(const std::string& key, const Read& read,
                                           const ExternalData& external, Module module) {
  if (!is_open()) return std::nullopt;
  const auto fail = [&](const Error& error) -> std::optional<Executable> {
    problem_ = fmt::format("the executable is not kept in the cache '{}': {}", path_, error.message());
    return std::nullopt;
  };
  module.metadata.emplace_back(kKey, key);
  std::size_t count = 0;
  for (const std::string& location : read.locations) {
    const Result<std::string> line = LineOf(hash_, location, external, read.began);
    if (!line) return fail(line.error());
    module.metadata.emplace_back(fmt::format("{}{}", kExternal, count++), *line);
  }
  const Status written = WriteModule(module, folder_.PathOf(NameOf(key)), kOwnerOnly);
  if (!written) return fail(written.error());
  std::optional<Executable> kept = Find(key, external);
  if (!kept) problem_ = fmt::format("the executable in the cache '{}' cannot be read again", path_);
  return kept;
}

}  // namespace rewire::compiler
