// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/object_archive.h"

#include <cstring>
#include <string_view>

namespace rewire {
namespace {

bool Has(Span<const std::byte> file, std::size_t at, std::string_view magic) {
  return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
}

bool IsCompressed(Span<const std::byte> file) { return Has(file, 0, "\x1f\x8b\x08"); }

}  // namespace

bool IsArchive(Span<const std::byte> file) { return Has(file, 257, "ustar") || IsCompressed(file); }

Status RefuseArchive(Span<const std::byte> file) {
  return Fail(StatusCode::kUnsupported,
              "this is {}, which nothing here can link; unpack it and make a shared library of them: tar -xf "
              "model.tar && cc -shared -o model.so *.o",
              IsCompressed(file) ? "compressed by gzip, as TVM compresses its tar archives of object files"
                                 : "a tar archive of object files");
}

}  // namespace rewire
