// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any text through the assembler, and what it assembles through the disassembler and back, which
// must give the same bytes.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_assembler
//   cd tests && ../build/asan-ubsan/tests/bin/fuzz_assembler -max_total_time=60 NEW programs
//   executable_format/text
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/text/disassembler.h"
#include "rewire/executable_format/verifier.h"
#include "rewire/executable_format/writer.h"

namespace rewire {
namespace {

// A text may name any file; one that the fuzzer finds must not be read.
constexpr const char kNowhere[] = "/nonexistent";

void Try(std::string_view text) {
  AssembleOptions options;
  options.directory = kNowhere;
  const Result<Module> module = Assemble(text, options);
  if (!module) return;
  const Result<std::vector<std::byte>> bytes = SerializeModule(*module);
  const std::string again_text = Disassemble(*module).text;
  const bool verified = VerifyModule(*module).has_value();
  if (!bytes) return;
  const Result<Module> again = Assemble(again_text, options);
  if (!again) {
    if (verified) std::abort();
    return;
  }
  const Result<std::vector<std::byte>> again_bytes = SerializeModule(*again);
  if (!again_bytes || *again_bytes != *bytes) std::abort();
}

}  // namespace
}  // namespace rewire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Absolute paths would leave the folder.
  if (text.find("@/") != std::string_view::npos || text.find("@\"/") != std::string_view::npos) return 0;
  rewire::Try(text);
  return 0;
}
