// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_head.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/serve/http/routes.h"

namespace rewire::serve {
namespace {

constexpr char kLine[] = "POST /v2/models/m/infer HTTP/1.1\r\n";

TEST_CASE("a head is read when all of it is there, at whatever byte it was cut") {
  const std::string text =
      std::string(kLine) +
      "Host: a\r\ncontent-length:  12 \r\nConnection: foo, Close\r\nExpect: 100-continue\r\n"
      "Inference-Header-Content-Length: 7\r\nX: \t\r\n\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) {
    HttpHead head;
    const HeadResult result = ParseHead(std::string_view(text).substr(0, size), {}, &head);
    CHECK(result.bytes == 0);
    CHECK(result.error.status == 0);
  }
  HttpHead head;
  const std::string more = text + "body";
  const HeadResult result = ParseHead(more, {}, &head);
  CHECK(result.bytes == text.size());
  CHECK(head.method == "POST");
  CHECK(head.target == "/v2/models/m/infer");
  CHECK(head.content_length == 12);
  CHECK(head.json_bytes == 7U);
  CHECK_FALSE(head.keep_alive);
  CHECK(head.expects_continue);
}

TEST_CASE("heads that are wrong, or that two programs could read differently, are refused") {
  struct Row {
    std::string text;
    int status;
    const char* words;
  };
  const std::string host = "Host: a\r\n";
  const std::vector<Row> rows = {
      {"\n", 400, "does not end with CR and LF"},
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400, "does not end with CR and LF"},
      {"GET /\r\n\r\n", 400, "the request line is not"},
      {"GET\r\n\r\n", 400, "the request line is not"},
      {"G(T / HTTP/1.1\r\n\r\n", 400, "the request line is not"},
      {" GET / HTTP/1.1\r\n\r\n", 400, "the request line is not"},
      {"GET  / HTTP/1.1\r\n\r\n", 400, "characters that must be escaped"},
      {"GET /a b HTTP/1.1\r\n\r\n", 400, "characters that must be escaped"},
      {"GET /\x01 HTTP/1.1\r\n\r\n", 400, "characters that must be escaped"},
      {"GET /\xc3\xa4 HTTP/1.1\r\n\r\n", 400, "characters that must be escaped"},
      {"GET http://a/ HTTP/1.1\r\n\r\n", 400, "does not begin with '/'"},
      {"GET / HTTP/2.0\r\n\r\n", 505, "this server speaks HTTP/1.1"},
      {"GET / HTTQ/1.1\r\n\r\n", 400, "the request line is not"},
      {"GET / http/1.1\r\n\r\n", 400, "the request line is not"},
      {"GET / HTTP/1.1\r\n\r\n", 400, "the header Host is missing"},
      {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400, "Host is given twice"},
      {kLine + host + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400,
       "Content-Length must be one number"},
      {kLine + host + "Content-Length: 1, 1\r\n\r\n", 400, "Content-Length must be one number"},
      {kLine + host + "Content-Length: -1\r\n\r\n", 400, "Content-Length must be one number"},
      {kLine + host + "Content-Length: +1\r\n\r\n", 400, "Content-Length must be one number"},
      {kLine + host + "Content-Length: 0x1\r\n\r\n", 400, "Content-Length must be one number"},
      {kLine + host + "Content-Length:\r\n\r\n", 400, "Content-Length must be one number"},
      {kLine + host + "Content-Length: 99999999999999999999\r\n\r\n", 400,
       "Content-Length must be one number"},
      {kLine + host + "Content-Length : 1\r\n\r\n", 400, "a header is not 'NAME: VALUE'"},
      {kLine + host + " folded: 1\r\n\r\n", 400, "a header is not 'NAME: VALUE'"},
      {kLine + host + "A: 1\r\n 2\r\n\r\n", 400, "a header is not 'NAME: VALUE'"},
      {kLine + host + ": 1\r\n\r\n", 400, "a header is not 'NAME: VALUE'"},
      {kLine + host + "no colon\r\n\r\n", 400, "a header is not 'NAME: VALUE'"},
      {kLine + host + "A: \x01\r\n\r\n", 400, "has a control character"},
      {kLine + host + "A: 1\r2\r\n\r\n", 400, "has a control character"},
      {kLine + host + std::string("A: 1\0\r\n\r\n", 9), 400, "has a control character"},
      {kLine + host + "Transfer-Encoding: chunked\r\n\r\n", 501, "Transfer-Encoding is not supported"},
      {kLine + host + "Transfer-Encoding: identity\r\n\r\n", 501, "Transfer-Encoding is not supported"},
      {kLine + host + "Content-Encoding: gzip\r\n\r\n", 415, "Content-Encoding is not supported"},
      {kLine + host + "Expect: 200-ok\r\n\r\n", 417, "only 100-continue can be expected"},
      {kLine + host + "Inference-Header-Content-Length: x\r\n\r\n", 400,
       "Inference-Header-Content-Length must be"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    HttpHead head;
    const HeadResult result = ParseHead(row.text, {}, &head);
    CHECK(result.bytes == 0);
    CHECK(result.error.status == row.status);
    CHECK_THAT(result.error.text, Catch::Contains(row.words));
  }
}

TEST_CASE("a head that is too long, or has too many headers, is refused before more of it is kept") {
  FrontEndLimits limits;
  limits.header_bytes = 200;
  limits.header_count = 3;
  HttpHead head;
  CHECK(ParseHead(kLine + std::string(300, 'a'), limits, &head).error.status == 431);
  CHECK(ParseHead(kLine + std::string("A: ") + std::string(300, 'a') + "\r\n\r\n", limits, &head)
            .error.status == 431);
  CHECK(
      ParseHead(std::string(kLine) + "Host: a\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits, &head).error.status ==
      431);
  CHECK(ParseHead(std::string(kLine) + "Host: a\r\nA: 1\r\nB: 2\r\n\r\n", limits, &head).error.status == 0);
}

TEST_CASE("paths are decoded, and damaged escapes are none") {
  CHECK(DecodePath("/v2/models/a%20b?x=%zz") == "/v2/models/a b");
  for (const char* path : {"/%", "/%2", "/%zz", "/%00", "/%0a", "/%+1"}) {
    CAPTURE(path);
    CHECK_FALSE(DecodePath(path));
  }
}

TEST_CASE("each path of the protocol has its route") {
  const Route infer = FindRoute("/v2/models/m/versions/3/infer");
  CHECK(infer.kind == Route::kInfer);
  CHECK(infer.name == "m");
  CHECK(infer.version == "3");
  CHECK(FindRoute("/v2/models/m").kind == Route::kModelMetadata);
  CHECK(FindRoute("/v2/models/m/").kind == Route::kModelMetadata);
  CHECK(FindRoute("/v2/models/stats").kind == Route::kModelStats);
  CHECK(FindRoute("/v2/models/m/generate_stream").kind == Route::kGenerateStream);
  CHECK(FindRoute("/v2/cudasharedmemory/region/r/register").kind == Route::kUnsupported);
  for (const char* path :
       {"/", "/v1", "/v2/models", "/v2/models//infer", "/v2/models/m/infer/x", "/v2/models/m/x/infer",
        "/v2/repository", "/v2/systemsharedmemory/region/r", "/v2/systemsharedmemory/register"}) {
    CAPTURE(path);
    CHECK(FindRoute(path).kind == Route::kUnknown);
  }
}

}  // namespace
}  // namespace rewire::serve
