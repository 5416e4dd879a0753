// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes through reader, verifier, writer, the decoding of constants, and what is accepted
// through linker and VM as a host would run it (tests/hostile/judge.h). Each input is tried as it is and with
// its checksums made right, without which nearly nothing would get past the directory.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_executable
//   cd tests && ../build/asan-ubsan/tests/bin/fuzz_executable -max_total_time=60 NEW fuzz/corpus/executable
//
// tests/executable_format/samples/v1 is a good corpus to start from too.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/executable_format/constant_data.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/names/name_map.h"
#include "rewire/executable_format/names/strip.h"
#include "rewire/executable_format/reader.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/fuzz/files.h"
#include "rewire/tests/hostile/judge.h"

namespace rewire {
namespace {

constexpr std::uint64_t kLargestConstant = 1 << 20;

[[noreturn]] void Give(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// A module that was read is written as bytes that are read and written the same again.
void TryWriting(const Module& module) {
  const Result<std::vector<std::byte>> written = SerializeModule(module);
  if (!written) return;
  auto owner = std::make_shared<const std::vector<std::byte>>(*written);
  const Result<Module> again = ReadModule({{owner->data(), owner->size()}, owner});
  if (!again) Give("what was written cannot be read: " + again.error().message());
  const Result<std::vector<std::byte>> rewritten = SerializeModule(*again);
  if (!rewritten || *rewritten != *written) Give("what was written is written otherwise again");
}

void Try(const std::vector<std::byte>& file) {
  auto owner = std::make_shared<std::vector<std::byte>>(file);
  const SharedBytes bytes{{owner->data(), owner->size()}, owner};
  const Result<Module> module = ReadModule(bytes);
  if (!module) return;
  TryWriting(*module);
  OpenOptions options;
  options.verify_data = true;
  const Result<Executable> executable = Executable::FromBytes(bytes, options);
  if (!executable) return;
  if (!SerializeModule(executable->module())) Give("what was verified cannot be written");
  for (const Constant& constant : executable->module().constants) {
    if (constant.kind != ConstantKind::kData || constant.raw_bytes > kLargestConstant) continue;
    std::vector<std::byte> raw(constant.raw_bytes);
    (void)DecodeConstant(constant, {}, raw);
  }
  const Result<StrippedModule> stripped = StripModule(executable->module());
  if (!stripped || !Executable::FromModule(stripped->module) || !NameMap::Parse(stripped->map))
    Give("cannot be stripped");
  // Also that the file is what docs/format.md describes, and what the library writes.
  static hostile::Judge judge(nullptr);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const hostile::Verdict verdict = judge.Try(text, file.size());
  if (!verdict.faults.empty()) Give(verdict.faults[0]);
}

}  // namespace
}  // namespace rewire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rewire::test::TryFile(data, size, &rewire::Try);
}
