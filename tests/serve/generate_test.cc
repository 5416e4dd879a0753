// SPDX-License-Identifier: Apache-2.0
// The extension "generate", and bodies of responses that are sent piece by piece.
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/serve/sequence_models.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;

constexpr char kGenerate[] = "/v2/models/double/generate";
constexpr char kStream[] = "/v2/models/double/generate_stream";

// Returns both of its inputs.
constexpr char kScalar[] = R"(.func main(x: f32[1, 1], n: i64[]) -> (y: f32[1, 1], m: i64[])
  %result = alloc_adt tag=0 (%x, %n)
  ret %result
.end
)";

TEST_CASE("generate: inputs are fields by their names, and so are outputs") {
  const rewire::test::TempFolder folder;
  (void)WriteModel(folder, "double.rwx", DoubleProgram());
  const TestServer server(SettingsOf(folder.path().string()));
  TestClient client(server.port());
  const auto ask = [&](const std::string& path, const std::string& body) {
    const TestClient::Response response = client.Post(path, body);
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK_THAT(response.head, Contains("Content-Type: application/json\r\n"));
    return json::parse(response.body);
  };
  // A list is one row of a batch.
  CHECK(ask(kGenerate, R"({"x": [1, 2, 3, 4]})") ==
        json::parse(R"({"model_name": "double", "model_version": "1", "y": [2, 4, 6, 8]})"));
  CHECK(ask("/v2/models/double/versions/1/generate", R"({"x": [[1, 2, 3, 4], [5, 6, 7, 8]], "id": "a"})") ==
        json::parse(R"({"model_name": "double", "model_version": "1", "id": "a",
                        "y": [2, 4, 6, 8, 10, 12, 14, 16]})"));
  CHECK(ask(kGenerate, R"({"x": [1, 2, 3, 4], "parameters": {"timeout": 60000000, "other": 5}})")["y"] ==
        json({2, 4, 6, 8}));
  CHECK_THAT(client.Post(kGenerate, R"({"x": [[[1, 2, 3, 4]]]})").body, Contains("input 'x'"));
}

TEST_CASE("generate: a number is a tensor of one element, whatever its rank, and comes back as a number") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "scalar.rwx", kScalar)));
  TestClient client(server.port());
  for (const std::string x : {"2.5", "[2.5]", "[[2.5]]"}) {
    const TestClient::Response response =
        client.Post("/v2/models/scalar/generate", R"({"x": )" + x + R"(, "n": -7})");
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(json::parse(response.body)["y"] == 2.5);
    CHECK(json::parse(response.body)["m"] == -7);
  }
}

TEST_CASE("generate: a text is a tensor of texts") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "texts.rwx", R"w(
.metadata "input strings main.0" "{\"offsets\": 1, \"bytes\": 2}"
.func main(x: i64[?], ends: i64[?], text: u8[?]) -> (y: i64[?], ends: i64[?], text: u8[?])
  %result = alloc_adt tag=0 (%x, %ends, %text)
  ret %result
.end
)w")));
  TestClient client(server.port());
  const auto bytes = [&](const std::string& x) {
    const TestClient::Response response = client.Post("/v2/models/texts/generate", R"({"x": )" + x + "}");
    INFO(response.body);
    REQUIRE(response.status == 200);
    return json::parse(response.body)["text"];
  };
  CHECK(bytes(R"("ab")") == json({97, 98}));
  CHECK(bytes(R"(["a", "bc"])") == json({97, 98, 99}));
  CHECK_THAT(client.Post("/v2/models/texts/generate", R"({"x": ["a", 1]})").body,
             Contains("input 'x': an element of 'data' is no text"));
}

TEST_CASE("generate: what cannot be served is refused by name, and the connection goes on") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  struct Row {
    std::string body;
    int status;
    std::string words;
  };
  const std::vector<Row> rows = {
      {"{", 400, "the request is no JSON"},
      {"[]", 400, "the request must be an object"},
      {"{}", 400, "input 'x' is missing"},
      {R"({"x": 1})", 400, "input 'x'"},
      {R"({"x": "a"})", 400, "input 'x'"},
      {R"({"x": [1, 2, 3, null]})", 400, "element 3 of 'data' is no FP32"},
      {R"({"x": [[1, 2, 3, 4], [1, 2, 3]]})", 400, "input 'x': its lists have different sizes"},
      {R"({"x": [1, [2], 3, 4]})", 400, "input 'x': its lists have different sizes"},
      {R"({"x": )" + std::string(40, '[') + "1" + std::string(40, ']') + "}", 400, "lists lie in each other"},
      {R"({"X": [1, 2, 3, 4]})", 400, "model 'double' has no input 'X', and no parameter; did you mean 'x'?"},
      {R"({"x": [1, 2, 3, 4], "id": 5})", 400, "'id' must be a text"},
      {R"({"x": [1, 2, 3, 4], "parameters": []})", 400, "'parameters' must be an object"},
      {R"({"x": [1, 2, 3, 4], "parameters": {"a": []}})", 400, "the parameter 'a' must be a text"},
      {R"({"x": [1, 2, 3, 4], "timeout": "a"})", 400, "the parameter 'timeout' must be a number"},
      {R"({"x": [1, 2, 3, 4], "sequence_id": 5})", 501, "model 'double' keeps no state for sequences"},
  };
  for (const char* path : {kGenerate, kStream}) {
    for (const Row& row : rows) {
      CAPTURE(path, row.body);
      const TestClient::Response response = client.Post(path, row.body);
      CHECK(response.status == row.status);
      CHECK_THAT(response.body, Contains(row.words));
      CHECK_THAT(response.head, Contains("Content-Length: "));
    }
  }
  CHECK(client.Post("/v2/models/other/generate", "{}").status == 404);
  CHECK(client.Get(kGenerate).status == 405);
  CHECK(client.Post(kGenerate, R"({"x": [1, 2, 3, 4]})").status == 200);
}

TEST_CASE("generate: steps of a sequence are requests with its parameters") {
  SequenceModels models;
  const TestServer server(models.settings(), {}, models.kernels.Set());
  TestClient client(server.port());
  for (int i = 1; i <= 3; ++i) {
    const TestClient::Response response = client.Post(
        "/v2/models/steps/generate", R"({"x": [1, 1, 1, 1], "sequence_id": 4, "sequence_start": )" +
                                         std::string(i == 1 ? "true" : "false") + "}");
    INFO(response.body);
    REQUIRE(response.status == 200);
    CHECK(json::parse(response.body)["y"] == json({i, i, i, i}));
  }
}

TEST_CASE("chunks: a stream ends with an empty chunk, and the connection goes on behind it") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  for (int turn = 0; turn < 2; ++turn) {
    const TestClient::Response response = client.Post(kStream, R"({"x": [1, 2, 3, 4]})");
    CHECK(response.status == 200);
    CHECK_THAT(response.head, Contains("Content-Type: text/event-stream; charset=utf-8\r\n"));
    CHECK_THAT(response.head, !Contains("Content-Length"));
    CHECK_THAT(response.head, !Contains("Connection: close"));
    REQUIRE(response.chunks.size() == 1);
    REQUIRE(response.body.size() > 8);
    CHECK(response.body.substr(0, 6) == "data: ");
    CHECK(response.body.substr(response.body.size() - 2) == "\n\n");
    CHECK(json::parse(response.body.substr(6))["y"] == json({2, 4, 6, 8}));
  }
  CHECK(client.Get("/v2").status == 200);
}

TEST_CASE(
    "chunks: a client of HTTP/1.0 gets the same bytes without them, and then the connection is closed") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  const std::string body = R"({"x": [1, 2, 3, 4]})";
  TestClient client(server.port());
  const std::string expected = client.Post(kStream, body).body;
  for (const char* keep : {"", "Connection: keep-alive\r\n"}) {
    TestClient old(server.port());
    old.Send("POST " + std::string(kStream) + " HTTP/1.0\r\n" + keep +
             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const TestClient::Response response = old.Read();
    CHECK(response.status == 200);
    CHECK_THAT(response.head, !Contains("Transfer-Encoding"));
    CHECK_THAT(response.head, Contains("Connection: close\r\n"));
    CHECK(response.body == expected);
    CHECK(old.IsClosed());
  }
}

TEST_CASE("HEAD is answered as GET is, without the body, and the connection goes on") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  for (const std::string path :
       {"/v2", "/v2/models/double", "/metrics", "/v2/health/live", "/nothing", kStream}) {
    CAPTURE(path);
    const TestClient::Response get = client.Get(path);
    client.Send("HEAD " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
    const TestClient::Response head = client.ReadHead();
    CHECK(head.status == get.status);
    if (path != "/metrics") CHECK(head.head == get.head);  // its numbers change
  }
  CHECK(client.Get("/v2").status == 200);
}

TEST_CASE("chunks: a client that does not read is let go after a time, and the others are served") {
  const rewire::test::TempFolder folder;
  // More than the buffers of sockets have: each element of 4 bytes comes back as 11.
  std::string program = DoubleProgram();
  program.replace(program.find("65536"), 5, "67108864");
  FrontEndLimits limits;
  limits.transfer_time = std::chrono::milliseconds(300);
  limits.least_bytes_per_second = std::size_t{1} << 40;
  TestServer server(SettingsOf(WriteModel(folder, "double.rwx", program)), limits);
  std::string rows = R"({"x": [)";
  for (int i = 0; i < 250000; ++i) rows += i == 0 ? "[9e9,9e9,9e9,9e9]" : ",[9e9,9e9,9e9,9e9]";
  rows += "]}";
  TestClient slow(server.port(), 4096);
  slow.Send("POST " + std::string(kStream) +
            " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(rows.size()) + "\r\n\r\n" + rows);
  CHECK(slow.ReadHead().status == 200);
  while (server.open_connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // The client still gets the bytes that sockets hold, but never the end of the body.
  const std::string rest = slow.ReadUntil("\r\n0\r\n\r\n");
  CHECK(rest.size() < 11000000);
  TestClient other(server.port());
  CHECK(other.Get("/v2").status == 200);
}

}  // namespace
}  // namespace rewire::serve::test
