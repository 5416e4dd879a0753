// SPDX-License-Identifier: Apache-2.0
// Damaged requests, the same ones every time: none may be read beyond its end, and each has an answer.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rewire/serve/core/shared_regions.h"
#include "rewire/serve/http/http_head.h"
#include "rewire/serve/http/infer_json.h"
#include "rewire/serve/http/routes.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

// Changes, doubles, removes or inserts some bytes.
std::string Damaged(std::string text, std::mt19937* random) {
  static const std::vector<std::string> kPieces = {"\r\n", "\r\n\r\n", " ",       ":",
                                                   "\"",   "{",        "[",       "]",
                                                   "}",    "-1",       "1e999",   "18446744073709551616",
                                                   "null", "%00",      "\\u0000", std::string(1, '\0')};
  const auto pick = [&](std::size_t count) { return (*random)() % std::max<std::size_t>(count, 1); };
  for (std::size_t changes = 1 + pick(4); changes > 0; --changes) {
    const std::size_t at = pick(text.size() + 1);
    switch (pick(5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(pick(256));
        break;
      case 1:
        text.erase(at, pick(8));
        break;
      case 2:
        text.insert(at, kPieces[pick(kPieces.size())]);
        break;
      case 3:
        text.insert(at, text.substr(pick(text.size()), pick(20)));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

class DrillRequest : public Request {
 public:
  void Finish() override {}
};

constexpr char kHead[] =
    "POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: "
    "90\r\n"
    "Inference-Header-Content-Length: 70\r\nConnection: keep-alive\r\n\r\n";
const std::vector<std::string> kBodies = {
    R"({"id":"1","inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[1,2.5,-3,1e2]}],"outputs":[{"name":"y"}]})",
    R"({"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","parameters":{"binary_data_size":16}}],)"
    R"("outputs":[{"name":"y","parameters":{"binary_data":true}}],"parameters":{"timeout":5,"a":true}})",
    R"({"inputs":[{"name":"x","shape":[2,2],"datatype":"INT8","data":[[1,2],[3,4]]}],"parameters":{"binary_data_output":true}})",
};

TEST_CASE("damaged heads are read or refused, and never beyond their end") {
  std::mt19937 random(1);
  for (int i = 0; i < 40000; ++i) {
    const std::string text = Damaged(kHead, &random);
    // A copy of exactly this size, so that a sanitizer sees a read behind it.
    const std::vector<char> exact(text.begin(), text.end());
    HttpHead head;
    const HeadResult result = ParseHead({exact.data(), exact.size()}, {}, &head);
    REQUIRE(result.bytes <= exact.size());
    if (result.bytes == 0) continue;
    REQUIRE(result.error.status == 0);
    if (const auto path = DecodePath(head.target)) FindRoute(*path);
  }
}

TEST_CASE("damaged bodies are read or refused, and inputs lie inside what was sent") {
  std::mt19937 random(2);
  InferReader reader;
  const SharedRegions regions;
  DrillRequest request;
  ResponseForm form;
  int good = 0;
  for (int i = 0; i < 40000; ++i) {
    const std::string json = Damaged(kBodies[static_cast<std::size_t>(i) % kBodies.size()], &random);
    std::vector<char> padded(json.begin(), json.end());
    padded.resize(json.size() + kJsonPadding);
    const std::vector<std::byte> tensors(random() % 2 == 0 ? 16 : random() % 32);
    request.Reset();
    const Status read =
        reader.Read({padded.data(), json.size()}, {tensors.data(), tensors.size()}, regions, &request, &form);
    if (!read) {
      REQUIRE_FALSE(read.error().message().empty());
      continue;
    }
    ++good;
    REQUIRE(form.wanted.size() == request.wanted.size());
    for (const InputTensor& input : request.inputs) {
      unsigned sum = 0;
      for (const std::byte byte : input.data) sum += static_cast<unsigned>(byte);
      REQUIRE(sum < 1U << 30);
    }
  }
  CHECK(good > 100);
}

TEST_CASE("a server that gets damaged requests goes on serving the others") {
  const rewire::test::TempFolder folder;
  TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  std::mt19937 random(3);
  TestClient good(server.port());
  for (int i = 0; i < 500; ++i) {
    const std::string& body = kBodies[static_cast<std::size_t>(i) % kBodies.size()];
    TestClient bad(server.port());
    bad.Send(Damaged("POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n\r\n" + body,
                     &random));
    if (i % 10 == 0) CHECK(good.Post("/v2/models/double/infer", kBodies[0]).status == 200);
  }
  CHECK(good.Get("/v2/health/ready").status == 200);
}

}  // namespace
}  // namespace rewire::serve::test
