// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a state. Each input is tried as it is and with its size and checksum made right.
// What opens is written again, record by record: the same bytes.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_state
//   cd tests && ../build/asan-ubsan/tests/bin/fuzz_state -max_total_time=60 NEW fuzz/corpus/state
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rewire/executable_format/state/state_format.h"

namespace {

void Try(const std::vector<unsigned char>& file) {
  RewireStateReader reader;
  if (RewireStateOpen(&reader, file.data(), file.size()) != kRewireStateOk) return;
  std::vector<unsigned char> again(file.size());
  RewireStateWriter writer;
  const std::string function(reader.function, reader.function_bytes);
  if (function.find('\0') != std::string::npos) return;  // the writer takes texts of C
  RewireStateBegin(&writer, again.data(), again.size(), reader.program, function.c_str());
  RewireStateTensor tensor;
  while (RewireStateNext(&reader, &tensor) > 0) {
    const std::string name(tensor.name, tensor.name_bytes);
    const std::string dtype(tensor.dtype);
    if (name.find('\0') != std::string::npos) return;
    std::vector<std::int64_t> dims;
    for (std::uint32_t i = 0; i < tensor.rank; ++i) dims.push_back(RewireStateDim(&tensor, i));
    RewireStateAdd(&writer, name.c_str(), dtype.c_str(), tensor.rank, dims.data(), tensor.data,
                   tensor.data_bytes);
  }
  std::uint64_t size = 0;
  if (RewireStateEnd(&writer, &size) != kRewireStateOk || size != file.size() || again != file) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<unsigned char> file(data, data + size);
  Try(file);
  if (size < kRewireStateHeaderBytes) return 0;
  const std::uint64_t bytes = size + 4;
  for (int i = 0; i < 8; ++i)
    file[24 + static_cast<std::size_t>(i)] = static_cast<unsigned char>(bytes >> 8 * i);
  const std::uint32_t sum = RewireStateChecksum(file.data(), size);
  for (int i = 0; i < 4; ++i) file.push_back(static_cast<unsigned char>(sum >> 8 * i));
  Try(file);
  return 0;
}
