// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as the frames that a client of gRPC sends behind its preface and settings. Another
// client must get its answer all the same.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_grpc
//   tests/fuzz/front_end_seeds.py SEEDS
//   build/asan-ubsan/tests/bin/fuzz_grpc -max_total_time=60 NEW SEEDS/grpc
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/serve/grpc/grpc_front_end.h"
#include "rewire/tests/fuzz/fuzzed_connection.h"

namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Frames of SETTINGS and of PING, and the answer to the latter.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr std::string_view kPing("\0\0\10\6\0\0\0\0\0question", 17);
constexpr std::string_view kPong("\0\0\10\6\1\0\0\0\0question", 17);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string begin = std::string(kPreface) + std::string(kSettings),
                    question = begin + std::string(kPing);
  const std::string bytes = begin + std::string(reinterpret_cast<const char*>(data), size);
  rewire::test::FakeService service;
  rewire::fuzz::SendBytes(&service, &rewire::serve::MakeGrpcFrontEnd, bytes, question, kPong);
  return 0;
}
