// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a bundle of executables. Each input is tried as it is and with its checksums made
// right, those of the files inside too. What opens must be written again as a bundle of the same executables.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_bundle
//   cd tests && ../build/asan-ubsan/tests/bin/fuzz_bundle -max_total_time=60 NEW fuzz/corpus/bundle
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/executable_format/bundle.h"
#include "rewire/tests/fuzz/files.h"

namespace rewire {
namespace {

Result<Array<BundledExecutable>> Open(std::vector<std::byte> file) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(file));
  OpenOptions options;
  options.verify_data = true;
  return BundleFromBytes({{owner->data(), owner->size()}, owner}, options);
}

void Try(const std::vector<std::byte>& file) {
  const auto bundle = Open(file);
  if (!bundle) return;
  if (!IsBundle(file)) std::abort();
  const Result<std::vector<std::byte>> written = SerializeBundle(*bundle);
  if (!written) std::abort();
  const auto again = Open(*written);
  if (!again || again->size() != bundle->size()) std::abort();
  for (std::size_t i = 0; i < bundle->size(); ++i) {
    if ((*again)[i].name != (*bundle)[i].name) std::abort();
  }
  // From here on nothing changes: equal constants have met, sections stand in their order.
  if (*SerializeBundle(*again) != *written) std::abort();
}

}  // namespace
}  // namespace rewire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rewire::test::TryFile(data, size, &rewire::Try);
}
