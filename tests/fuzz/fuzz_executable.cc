// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes through reader, verifier, writer and the decoding of constants. Each input is tried as
// it is and with its checksums made right, without which nearly nothing would get past the directory.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target fuzz_executable
//   cd tests && ../build/fuzz/tests/bin/fuzz_executable -max_total_time=60 NEW fuzz/corpus/executable
//
// executable_format/samples/v1 is a good corpus to start from too.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "executable_format/constant_data.h"
#include "executable_format/executable.h"
#include "executable_format/reader.h"
#include "executable_format/strip.h"
#include "executable_format/writer.h"
#include "tests/fuzz/files.h"

namespace rewire {
namespace {

constexpr std::uint64_t kLargestConstant = 1 << 20;

void Try(const std::vector<std::byte>& file) {
  auto owner = std::make_shared<std::vector<std::byte>>(file);
  const SharedBytes bytes{{owner->data(), owner->size()}, owner};
  Result<Module> module = ReadModule(bytes);
  if (!module) return;
  // What was read can be written, and is then the same file; only the order of its sections may have been
  // another.
  Result<std::vector<std::byte>> written = SerializeModule(*module);
  OpenOptions options;
  options.verify_data = true;
  Result<Executable> executable = Executable::FromBytes(bytes, options);
  if (!executable) return;
  if (!written) std::abort();
  for (const Constant& constant : executable->module().constants) {
    if (constant.kind != ConstantKind::kData || constant.raw_bytes > kLargestConstant) continue;
    std::vector<std::byte> raw(constant.raw_bytes);
    (void)DecodeConstant(constant, {}, raw);
  }
  Result<StrippedModule> stripped = StripModule(executable->module());
  if (!stripped || !Executable::FromModule(stripped->module) || !NameMap::Parse(stripped->map)) std::abort();
}

}  // namespace
}  // namespace rewire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rewire::test::TryFile(data, size, &rewire::Try);
}
