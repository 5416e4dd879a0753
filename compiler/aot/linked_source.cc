// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/linked_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "rewire/compiler/aot/c_names.h"
#include "rewire/executable_format/linked/linked_executable.h"
#include "rewire/executable_format/linked/linked_image.h"

namespace rewire {
namespace {

// The bytes as words, which compilers read several times as fast as bytes. C has no array of length 0.
std::string WordsText(const std::vector<std::byte>& bytes) {
  constexpr std::size_t kWordsOfLine = 5;
  std::string text;
  const std::size_t words = std::max<std::size_t>(1, (bytes.size() + 7) / 8);
  text.reserve(words * 20);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    const std::size_t at = i * 8;
    if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    fmt::format_to(std::back_inserter(text), "{}0x{:x},", i % kWordsOfLine == 0 ? "\n  " : " ", word);
  }
  return text;
}

// An array, and a line that does not compile if the file has lost some of it, or got more.
std::string ArrayText(const std::string& name, const char* attribute, const std::vector<std::byte>& bytes) {
  return fmt::format(
      "static const uint64_t {0}[]{1} = {{{2}\n}};\n"
      "typedef char {0}_is_whole[sizeof({0}) == {3} ? 1 : -1];\n\n",
      name, attribute, WordsText(bytes), std::max<std::size_t>(8, (bytes.size() + 7) / 8 * 8));
}

}  // namespace

Result<LinkedSource> EmitLinked(const Executable& executable, const std::string& prefix,
                                const std::string& header_name) {
  if (!aot::IsCName(prefix)) {
    return Fail(StatusCode::kInvalidArgument,
                "{} cannot begin names of C; give letters, digits and _, with a letter first (--prefix)",
                prefix);
  }
  const Result<LinkedImage> image = MakeLinkedImage(executable);
  if (!image) return Forward(image);
  LinkedSource source;
  source.table_bytes = image->tables.size();
  source.constant_bytes = image->data.size();
  source.header = fmt::format(
      "/* Made by vm-aot --bytecode. In C++ rewire::OpenLinked({0}_executable) opens it, in C\n"
      " * rewire_executable_open_linked(&{0}_executable, &executable) of "
      "rewire/vm/c_api/linked_executable.h. */\n"
      "#ifndef {1}_LINKED_H_\n#define {1}_LINKED_H_\n\n"
      "#include <rewire/executable_format/linked/linked_executable.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "extern const RewireLinkedExecutable {0}_executable;\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      prefix, aot::Upper(prefix));
  source.source = fmt::format(
      "/* Made by vm-aot --bytecode. */\n#include \"{0}\"\n\n"
      "#if REWIRE_LINKED_LAYOUT != {1}\n"
      "#error \"this file was made by another version of vm-aot than that of these headers; make it again\"\n"
      "#endif\n"
      "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
      "#error \"executables need a processor whose byte order is little-endian\"\n#endif\n\n"
      "/* A linker that misses it has the librewire.a of another version; make this file again with its "
      "vm-aot. */\n"
      "#ifdef __cplusplus\nextern \"C\"\n#else\nextern\n#endif\n    const char {2};\n\n",
      header_name, REWIRE_LINKED_LAYOUT, LinkedVersionSymbol());
  source.source += ArrayText(prefix + "_tables", "", image->tables);
  source.source += ArrayText(prefix + "_data", " REWIRE_LINKED_ALIGNED", image->data);
  source.source +=
      fmt::format("const RewireLinkedExecutable {0}_executable = {{&{1}, {0}_tables, {0}_data}};\n", prefix,
                  LinkedVersionSymbol());
  return source;
}

}  // namespace rewire
