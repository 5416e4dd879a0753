// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/object_archive.h"

#include <cstring>
#include <string_view>

namespace rewire {

bool IsTarArchive(Span<const std::byte> file) {
  constexpr std::string_view kMagic = "ustar";
  constexpr std::size_t kMagicAt = 257;
  return file.size() >= kMagicAt + kMagic.size() &&
         std::memcmp(file.data() + kMagicAt, kMagic.data(), kMagic.size()) == 0;
}

Status RefuseTarArchive() {
  return Fail(
      StatusCode::kUnsupported,
      "this is a tar archive of object files, which nothing here can link; unpack it and make a shared "
      "library of them: tar -xf model.tar && cc -shared -o model.so *.o");
}

}  // namespace rewire
