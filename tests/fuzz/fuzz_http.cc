// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as what a client of HTTP/1.1 sends. Another client must get its answer all the same.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_http
//   tests/fuzz/front_end_seeds.py SEEDS
//   build/asan-ubsan/tests/bin/fuzz_http -max_total_time=60 NEW SEEDS/http
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rewire/serve/http/http_front_end.h"
#include "rewire/tests/fuzz/fuzzed_connection.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rewire::test::FakeService service;
  rewire::fuzz::SendBytes(&service, &rewire::serve::MakeHttpFrontEnd,
                          {reinterpret_cast<const char*>(data), size},
                          "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n");
  return 0;
}
