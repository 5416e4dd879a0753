// SPDX-License-Identifier: Apache-2.0
// The server as clients of HTTP see it: answers, wrong requests, clients that go or are slow.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using nlohmann::json;

ServeSettings OneModel(const rewire::test::TempFolder& folder, const std::string& kernel = "rewire.add") {
  ServeSettings settings = SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram(kernel)));
  settings.defaults.instances = 1;
  return settings;
}

constexpr char kInfer[] = "/v2/models/double/infer";
constexpr char kRequest[] =
    R"({"id": "7", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2.5, -3, 0.1]}]})";

std::string Bytes(const std::vector<float>& floats) {
  return std::string(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
}

TEST_CASE("a request in JSON is answered in JSON, and floats come back exactly") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    const TestClient::Response response = client.Post(kInfer, kRequest);
    CHECK(response.status == 200);
    CHECK(
        response.body ==
        R"({"model_name":"double","model_version":"1","id":"7","outputs":[{"name":"y","datatype":"FP32","shape":[1,4],)"
        R"("data":[2,5,-6,0.2]}]})");
  }
  const TestClient::Response nested = client.Post(
      kInfer,
      R"({"inputs": [{"datatype": "FP32", "data": [[1, 2, 3, 4], [5, 6, 7, 8]], "shape": [2, 4], "name": "x"}]})");
  CHECK(json::parse(nested.body)["outputs"][0]["data"] == json({2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST_CASE("tensors as bytes go both ways behind the JSON") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  const std::string text =
      R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}],)"
      R"("parameters": {"binary_data_output": true}})";
  const TestClient::Response response =
      client.Post(kInfer, text + Bytes({1, 2, 3, 4}),
                  "Inference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n");
  CHECK(response.status == 200);
  const std::size_t at = response.head.find("Inference-Header-Content-Length: ");
  REQUIRE(at != std::string::npos);
  const std::size_t head = std::stoul(response.head.substr(at + 33));
  CHECK(json::parse(response.body.substr(0, head))["outputs"][0]["parameters"]["binary_data_size"] == 16);
  CHECK(response.body.substr(head) == Bytes({2, 4, 6, 8}));
}

TEST_CASE("requests for inference that are wrong are refused by name, and the connection goes on") {
  struct Row {
    std::string body;
    int status;
    const char* words;
  };
  const auto input = [](const std::string& fields) { return R"({"inputs": [{)" + fields + "}]}"; };
  const std::string typed = R"("name": "x", "shape": [1, 4], "datatype": "FP32")";
  const std::vector<Row> rows = {
      {"", 400, "the request is no JSON"},
      {"{", 400, "the request is no JSON"},
      {std::string(2000, '['), 400, "the request is no JSON"},
      {"\xff", 400, "the request is no JSON"},
      {R"({"a": "\xff"})", 400, "the request is no JSON"},
      {"[]", 400, "the request must be an object"},
      {"3", 400, "the request must be an object"},
      {"{}", 400, "'inputs' must be a list of tensors"},
      {R"({"inputs": {}})", 400, "'inputs' must be a list of tensors"},
      {R"({"inputs": []})", 400, "input 'x' is missing"},
      {R"({"inputs": [1]})", 400, "each of 'inputs' must be an object with a 'name'"},
      {R"({"inputs": [{}]})", 400, "each of 'inputs' must be an object with a 'name'"},
      {input(R"("name": 1)"), 400, "each of 'inputs' must be an object with a 'name'"},
      {input(R"("name": "x")"), 400, "input 'x': 'datatype' must be a text"},
      {input(R"("name": "x", "datatype": "F32")"), 400, "input 'x': there is no datatype 'F32' here"},
      {input(R"("name": "x", "datatype": "BYTES")"), 400,
       "input 'x': 'shape' must be a list of whole numbers"},
      {input(R"("name": "x", "datatype": "FP32")"), 400,
       "input 'x': 'shape' must be a list of whole numbers"},
      {input(R"("name": "x", "datatype": "FP32", "shape": [1.5])"), 400,
       "'shape' must be a list of whole numbers"},
      {input(R"("name": "x", "datatype": "FP32", "shape": [-1, 4])"), 400, "none below 0"},
      {input(R"("name": "x", "datatype": "FP32", "shape": [1e3])"), 400,
       "'shape' must be a list of whole numbers"},
      {input(R"("name": "x", "datatype": "FP32", "shape": [)" +
             [] {
               std::string ones = "1";
               for (int i = 0; i < 64; ++i) ones += ",1";
               return ones;
             }() +
             R"(], "data": [])"),
       400, "'shape' has more than"},
      {input(typed), 400, "exactly one of 'data', 'binary_data_size' and 'shared_memory_region'"},
      {input(typed + R"(, "data": [], "parameters": {"binary_data_size": 16})"), 400,
       "exactly one of 'data'"},
      {input(typed + R"(, "data": 1)"), 400, "input 'x': 'data' must be a list"},
      {input(typed + R"(, "data": [1, 2, 3])"), 400, "'data' has 3 elements, and the shape 4"},
      {input(typed + R"(, "data": [1, 2, 3, 4, 5])"), 400, "'data' has more elements, and the shape 4"},
      {input(typed + R"(, "data": [1, 2, 3, "4"])"), 400, "input 'x': element 3 of 'data' is no FP32"},
      {input(typed + R"(, "data": [1, 2, 3, 1e300])"), 400, "input 'x': element 3 of 'data' is no FP32"},
      {input(typed + R"(, "data": [1, 2, 3, null])"), 400, "input 'x': element 3 of 'data' is no FP32"},
      {input(R"("name": "x", "shape": [1000000, 1000000], "datatype": "FP32", "data": [1])"), 400,
       "'data' has fewer elements than the shape"},
      {input(R"("name": "x", "shape": [4611686018427387904, 4], "datatype": "FP32", "data": [1])"), 400,
       "'data' has fewer elements than the shape"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "INT8", "data": [1, 2, 3, 128])"), 400,
       "element 3 of 'data' is no INT8"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "UINT8", "data": [1, 2, 3, -1])"), 400,
       "element 3 of 'data' is no UINT8"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "INT64", "data": [1, 2, 3, 1.5])"), 400,
       "element 3 of 'data' is no INT64"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "BOOL", "data": [true, false, 1, 2])"), 400,
       "element 3 of 'data' is no BOOL"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "INT64", "data": [1, 2, 3, 4])"), 400,
       "datatype FP32 expected, INT64 given"},
      {input(R"("name": "x", "shape": [1, 4], "datatype": "FP16", "data": [1, 2, 3, 4])"), 501,
       "JSON has no form of FP16: send it as binary data"},
      {input(typed + R"(, "parameters": {"binary_data_size": 16})"), 400,
       "'binary_data_size' is 16, and 0 bytes are left"},
      {input(typed + R"(, "parameters": {"binary_data_size": -1})"), 400,
       "'binary_data_size' has a wrong value"},
      {input(typed + R"(, "parameters": {"binary_data_size": "16"})"), 400,
       "'binary_data_size' has a wrong value"},
      {input(typed + R"(, "parameters": 5)"), 400, "input 'x': 'parameters' must be an object"},
      {input(typed + R"(, "parameters": {"shared_memory_region": "r"})"), 400,
       "needs 'shared_memory_byte_size'"},
      {input(typed + R"(, "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 16})"), 404,
       "shared memory region 'r' is not registered"},
      {input(typed + R"(, "parameters": {"shared_memory_region": "", "shared_memory_byte_size": 16})"), 400,
       "'shared_memory_region' has a wrong value"},
      {R"({"id": 5, "inputs": []})", 400, "'id' must be a text"},
      {R"({"parameters": [], "inputs": []})", 400, "'parameters' must be an object"},
      {R"({"parameters": {"a": []}, "inputs": []})", 400, "the parameter 'a' must be a text, a number"},
      {R"({"parameters": {"binary_data_output": 1}, "inputs": []})", 400,
       "'binary_data_output' must be true or false"},
      {R"({"parameters": {"timeout": -1}, "inputs": []})", 400, "'timeout' must be a number of microseconds"},
      {R"({"parameters": {"timeout": "1"}, "inputs": []})", 400,
       "'timeout' must be a number of microseconds"},
      {R"({"parameters": {"sequence_id": 5}, "inputs": []})", 501,
       "model 'double' keeps no state for sequences"},
      {R"({"inputs": [], "outputs": 1})", 400, "'outputs' must be a list"},
      {R"({"inputs": [], "outputs": [1]})", 400, "each of 'outputs' must be an object with a 'name'"},
      {R"({"inputs": [], "outputs": [{"name": "y", "parameters": {"classification": "3"}}]})", 400,
       "output 'y': the parameter 'classification' has a wrong value"},
      {R"({"inputs": [], "outputs": [{"name": "y", "parameters": {"binary_data": 3}}]})", 400,
       "output 'y': the parameter 'binary_data' has a wrong value"},
  };
  const rewire::test::TempFolder folder;
  TestServer server(OneModel(folder));
  TestClient client(server.port());
  for (const Row& row : rows) {
    CAPTURE(row.body);
    const TestClient::Response response = client.Post(kInfer, row.body);
    CHECK(response.status == row.status);
    CHECK_THAT(response.body, Catch::Contains(row.words));
    CHECK(json::parse(response.body).contains("error"));
  }
  CHECK(client.Post(kInfer, std::string(kRequest) + "  ").status == 200);
  const TestClient::Response left =
      client.Post(kInfer, std::string(kRequest) + "abc",
                  "Inference-Header-Content-Length: " + std::to_string(sizeof kRequest - 1) + "\r\n");
  CHECK_THAT(left.body, Catch::Contains("3 bytes behind the JSON belong to no input"));
  CHECK(server.service()->in_flight() == 0);
}

TEST_CASE("NaN, which JSON does not have, is an error that says what to do") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  const std::string text =
      R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}]})";
  const TestClient::Response response =
      client.Post(kInfer, text + Bytes({1, std::nanf(""), 3, 4}),
                  "Inference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n");
  CHECK(response.status == 500);
  CHECK_THAT(response.body, Catch::Contains("has NaN or infinite elements, which JSON does not have"));
}

TEST_CASE("what is asked of the server and its models is answered") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  CHECK(json::parse(client.Get("/v2/health/live").body) == json({{"live", true}}));
  CHECK(json::parse(client.Get("/v2/health/ready").body) == json({{"ready", true}}));
  CHECK(json::parse(client.Get("/v2").body)["name"] == "rewire");
  CHECK(json::parse(client.Get("/v2/models/double/ready").body) ==
        json({{"name", "double"}, {"ready", true}}));
  CHECK(client.Get("/v2/models/double/versions/1/ready").status == 200);
  CHECK(client.Get("/v2/models/double/versions/2/ready").status == 404);
  CHECK(client.Get("/v2/models/triple").status == 404);
  const json model = json::parse(client.Get("/v2/models/double").body);
  CHECK(model["inputs"][0] == json({{"name", "x"}, {"datatype", "FP32"}, {"shape", {-1, 4}}}));
  CHECK(json::parse(client.Get("/v2/models/double/config").body)["input"][0]["data_type"] == "TYPE_FP32");
  CHECK(client.Post(kInfer, kRequest).status == 200);
  const json statistics = json::parse(client.Get("/v2/models/double/stats").body)["model_stats"][0];
  CHECK(statistics["inference_stats"]["success"]["count"] == 1);
  CHECK(json::parse(client.Post("/v2/repository/index", "").body)[0]["state"] == "READY");
  CHECK_THAT(client.Get("/metrics").body,
             Catch::Contains("rewire_requests_success_total{model=\"double\",version=\"1\"} 1\n"));
  CHECK(client.Get("/v2/cudasharedmemory/status").body == "[]");
  struct Row {
    const char* path;
    int status;
    const char* words;
  };
  for (const Row& row : {Row{"/v2/models/double/infer", 405, "takes the method POST"},
                         Row{"/v2/logging", 501, "this server has no log"},
                         Row{"/nothing", 404, "there is nothing at the path '/nothing'"}}) {
    const TestClient::Response response = client.Get(row.path);
    CHECK(response.status == row.status);
    CHECK_THAT(response.body, Catch::Contains(row.words));
  }
  CHECK_THAT(client.Post("/v2/repository/models/double/load", "").body,
             Catch::Contains("--let-clients-load"));
}

TEST_CASE("clients that may load models load them again, and unload them") {
  const rewire::test::TempFolder folder;
  ServeSettings settings = OneModel(folder);
  settings.let_clients_load = true;
  const TestServer server(settings);
  TestClient client(server.port());
  CHECK(client.Post("/v2/repository/models/double/load", "{}").status == 200);
  CHECK_THAT(client.Post("/v2/repository/models/double/load", R"({"parameters": {"config": "{}"}})").body,
             Catch::Contains("the parameter 'config' is not supported"));
  CHECK(client.Post("/v2/repository/models/other/load", "{}").status == 404);
  CHECK(client.Post("/v2/repository/models/double/unload", "{}").status == 200);
  const TestClient::Response gone = client.Post(kInfer, kRequest);
  CHECK(gone.status == 503);
  CHECK_THAT(gone.body, Catch::Contains("model 'double' is not ready: unloaded"));
  CHECK(client.Post("/v2/repository/models/double/load", "{}").status == 200);
  CHECK(client.Post(kInfer, kRequest).status == 200);
}

TEST_CASE("requests that are sent before the answers come are answered in order, byte by byte") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  const std::string request = "POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                              std::to_string(sizeof kRequest - 1) + "\r\n\r\n" + kRequest;
  client.Send(request + "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n\r\n" + request);
  CHECK(client.Read().status == 200);
  CHECK(json::parse(client.Read().body)["name"] == "rewire");
  CHECK(client.Read().status == 200);
  for (const char byte : request) client.Send({&byte, 1});
  CHECK(client.Read().status == 200);
}

TEST_CASE("a client that waits for 100 Continue gets it") {
  const rewire::test::TempFolder folder;
  const TestServer server(OneModel(folder));
  TestClient client(server.port());
  client.Send("POST " + std::string(kInfer) +
              " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(sizeof kRequest - 1) + "\r\n\r\n");
  CHECK(client.Read().status == 100);
  client.Send(kRequest);
  CHECK(client.Read().status == 200);
}

TEST_CASE("what ends a connection is answered first") {
  const rewire::test::TempFolder folder;
  FrontEndLimits limits;
  limits.body_bytes = 1000;
  limits.json_bytes = 500;
  const TestServer server(OneModel(folder), limits);
  struct Row {
    std::string text;
    int status;
  };
  const std::vector<Row> rows = {
      {"nonsense\r\n", 400},
      {"GET /v2 HTTP/1.1\r\n\r\n", 400},
      {"POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
      {"POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 501\r\n\r\n", 413},
      {"POST " + std::string(kInfer) +
           " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nInference-Header-Content-Length: 6\r\n\r\n",
       400},
      {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200},
      {"GET /v2 HTTP/1.0\r\n\r\n", 200},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    TestClient client(server.port());
    client.Send(row.text);
    const TestClient::Response response = client.Read();
    CHECK(response.status == row.status);
    CHECK_THAT(response.head, Catch::Contains("Connection: close"));
    CHECK(client.IsClosed());
  }
}

TEST_CASE("a client that goes while its request waits leaves nothing behind") {
  const rewire::test::TempFolder folder;
  Gate gate;
  gate.Shut();
  TestServer server(OneModel(folder, "test.gate"), {}, gate.Kernels());
  TestClient first(server.port());
  const std::string request = "POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                              std::to_string(sizeof kRequest - 1) + "\r\n\r\n" + kRequest;
  first.Send(request);
  gate.WaitForRuns(1);
  TestClient second(server.port());
  second.Send(request);
  while (server.service()->in_flight() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  second.Close();
  while (server.service()->in_flight() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  gate.Open();
  first.Close();
  while (server.service()->in_flight() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(gate.rows().size() == 1);
  TestClient third(server.port());
  CHECK(third.Get("/v2").status == 200);
}

TEST_CASE("a client that goes in the middle of a request is gone at once") {
  const rewire::test::TempFolder folder;
  FrontEndLimits limits;
  limits.header_time = limits.transfer_time = limits.idle_time = std::chrono::hours(1);
  const TestServer server(OneModel(folder), limits);
  const std::string request = "POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                              std::to_string(sizeof kRequest - 1) + "\r\n\r\n" + kRequest;
  // The end arrives together with the bytes, at least for some of them.
  for (std::size_t bytes = 0; bytes <= request.size(); ++bytes) {
    TestClient client(server.port());
    client.Send(request.substr(0, bytes));
    client.Close();
  }
  for (int i = 0; i < 2000 && server.open_connections() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(server.open_connections() == 0);
}

TEST_CASE("a client that is too slow is told so, and one that says nothing is let go") {
  const rewire::test::TempFolder folder;
  FrontEndLimits limits;
  limits.header_time = std::chrono::milliseconds(100);
  limits.transfer_time = std::chrono::milliseconds(100);
  const TestServer server(OneModel(folder), limits);
  TestClient half_head(server.port());
  half_head.Send("GET /v2 HTTP/1.1\r\n");
  CHECK(half_head.Read().status == 408);
  TestClient half_body(server.port());
  half_body.Send("POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{");
  CHECK(half_body.Read().status == 408);
  // A server of its own, because a busy machine may keep the clients above silent for so long, too.
  limits.idle_time = std::chrono::milliseconds(100);
  const TestServer hasty(OneModel(folder), limits);
  TestClient silent(hasty.port());
  CHECK(silent.IsClosed());
}

TEST_CASE("a server that drains answers what has arrived, and takes no more connections") {
  const rewire::test::TempFolder folder;
  Gate gate;
  gate.Shut();
  TestServer server(OneModel(folder, "test.gate"), {}, gate.Kernels());
  TestClient idle(server.port());
  CHECK(idle.Get("/v2").status == 200);
  TestClient busy(server.port());
  busy.Send(
      "POST " + std::string(kInfer) + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
      std::to_string(
          sizeof R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})" -
          1) +
      "\r\n\r\n" +
      R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})");
  gate.WaitForRuns(1);
  std::size_t open = 1;
  std::thread drains([&] { open = server.server()->Drain(std::chrono::seconds(60)); });
  CHECK(idle.IsClosed());
  gate.Open();
  const TestClient::Response response = busy.Read();
  drains.join();
  CHECK(open == 0);
  CHECK(response.status == 200);
  CHECK(busy.IsClosed());
}

TEST_CASE("many clients of one model are all served, and each gets its own answer") {
  const rewire::test::TempFolder folder;
  ServeSettings settings = OneModel(folder);
  settings.defaults.instances = 2;
  settings.defaults.batching.max_batch_size = 16;
  TestServer server(settings);
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back([&, i] {
      TestClient client(server.port());
      const std::string body = R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [)" +
                               std::to_string(i) + ", 0, 0, 0]}]}";
      const std::string expected = "\"data\":[" + std::to_string(2 * i) + ",0,0,0]";
      for (int turn = 0; turn < 20; ++turn) {
        const TestClient::Response response = client.Post(kInfer, body);
        if (response.status != 200 || response.body.find(expected) == std::string::npos) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(wrong == 0);
  CHECK((*server.service()->Statistics("double", ""))[0].inference_count == 640);
}

}  // namespace
}  // namespace rewire::serve::test
