// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as the body of a request for tokens. The first byte chooses among the paths of
// OpenAI's interface and of generate. The answer must be whole, and JSON or events of JSON.
//
//   cmake --preset asan-ubsan && cmake --build --preset asan-ubsan --target fuzz_openai
//   tests/fuzz/front_end_seeds.py SEEDS
//   build/asan-ubsan/tests/bin/fuzz_openai -max_total_time=60 NEW SEEDS/openai
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "rewire/serve/http/http_front_end.h"
#include "rewire/tests/fuzz/answer_check.h"
#include "rewire/tests/fuzz/fuzzed_connection.h"
#include "rewire/tests/fuzz/generating_service.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::string_view, 4> kPaths = {"/v1/completions", "/v1/chat/completions",
                                                      "/v2/models/double/generate",
                                                      "/v2/models/double/generate_stream"};
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string request = "POST " + std::string(kPaths[data[0] % kPaths.size()]) +
                              " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
                              "\r\n\r\n" + std::string(body);
  rewire::fuzz::GeneratingService service;
  const std::string answer =
      rewire::fuzz::SendBytes(&service, &rewire::serve::MakeHttpFrontEnd, request,
                              "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\n");
  const std::string_view wrong = rewire::fuzz::WhatIsWrong(answer);
  if (!wrong.empty()) {
    std::cerr << wrong << ": '" << answer << "'\n";
    std::abort();
  }
  return 0;
}
