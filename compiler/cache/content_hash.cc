// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/cache/content_hash.h"

#include <fmt/format.h>
#include <sys/random.h>

#define XXH_STATIC_LINKING_ONLY  // states without an allocation
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "rewire/base/hash.h"
#include "rewire/base/mapped_file.h"

namespace rewire::compiler {
namespace {

constexpr char kKeyName[] = "key of hashes";
constexpr std::size_t kSecretBytes = 192;  // of XXH3: a block of 16 stripes, and the stripe behind
// Under an unknown key, two contents of one XXH3 can be guessed with a chance of about 2^-32, because the
// products that it sums have factors of 32 bits. Two hashes with keys of their own make that 2^-64.
constexpr std::size_t kHashes = 2;
constexpr std::size_t kKeyBytes = kHashes * kSecretBytes;
constexpr std::size_t kPiece = std::size_t{64} << 10;  // stays in a core's cache for the second hash
constexpr std::size_t kMostKnownFiles = 1024;

std::string KeyOf(const PrivateFolder& folder) {
  std::string key = folder.Read(kKeyName);
  if (key.size() == kKeyBytes) return key;
  std::string drawn(kKeyBytes, '\0');
  std::size_t done = 0;
  while (done < drawn.size()) {
    const ssize_t count = getrandom(drawn.data() + done, drawn.size() - done, 0);
    if (count <= 0) return {};
    done += static_cast<std::size_t>(count);
  }
  if (!folder.Write(kKeyName, drawn)) return {};
  key = folder.Read(kKeyName);  // that of another process, if it was later
  return key.size() == kKeyBytes ? key : std::string();
}

}  // namespace

ContentHash::ContentHash(const PrivateFolder& folder) {
  // Threads that begin with a folder have one key.
  static std::mutex& mutex = *new std::mutex;  // never destroyed: threads may run while the process ends
  const std::lock_guard lock(mutex);
  key_ = KeyOf(folder);
}

std::string ContentHash::TextOf(Span<const std::byte> content) const {
  std::array<XXH3_state_t, kHashes> states;
  for (std::size_t i = 0; i < kHashes; ++i) {
    XXH3_INITSTATE(&states[i]);
    (void)XXH3_64bits_reset_withSecret(&states[i], key_.data() + i * kSecretBytes, kSecretBytes);
  }
  for (std::size_t at = 0; at < content.size(); at += kPiece) {
    const std::size_t size = std::min(kPiece, content.size() - at);
    for (XXH3_state_t& state : states) (void)XXH3_64bits_update(&state, content.data() + at, size);
  }
  std::string text;
  for (const XXH3_state_t& state : states) text += HashText(XXH3_64bits_digest(&state));
  return fmt::format("{} {}", text, content.size());
}

std::string ContentHash::TextOf(const std::string& content) const {
  return TextOf(Span<const std::byte>(reinterpret_cast<const std::byte*>(content.data()), content.size()));
}

Result<std::string> ContentHash::TextOfFile(const std::string& path) const {
  using Place = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  struct Known {
    FileIdentity identity;
    std::string text;
  };
  static std::mutex& mutex = *new std::mutex;
  static std::map<Place, Known>& files = *new std::map<Place, Known>;

  const std::optional<FileIdentity> identity = IdentityOf(path);
  const Place place = identity ? Place(key_, identity->device, identity->inode) : Place();
  if (identity && identity->settled) {
    const std::lock_guard lock(mutex);
    const auto found = files.find(place);
    if (found != files.end() && found->second.identity == *identity) return found->second.text;
  }
  const Result<SharedBytes> bytes = MapFile(path);
  if (!bytes) return Forward(bytes);
  std::string text = TextOf(bytes->view);
  if (identity && identity->settled && IdentityOf(path) == identity) {
    const std::lock_guard lock(mutex);
    if (files.size() >= kMostKnownFiles) files.clear();
    files[place] = {*identity, text};
  }
  return text;
}

std::string IdentityText(const FileIdentity& identity) {
  return fmt::format("{} {} {}", identity.inode, identity.size, identity.modified);
}

}  // namespace rewire::compiler
