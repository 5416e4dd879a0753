// SPDX-License-Identifier: Apache-2.0
// The settings of the log and of traces, which clients read and change.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/serve/http/http_front_end.h"
#include "rewire/serve/run/model_service.h"
#include "rewire/tests/serve/kept_log.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;

constexpr char kX[] =
    R"({"id": "7", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})";

// A server of `double` with a log, which may trace into a file.
class SettingsServer {
 public:
  explicit SettingsServer(bool traces = true, const char* trace_file = nullptr) {
    ServeSettings settings = SettingsOf(WriteModel(folder_, "double.rwx", DoubleProgram()));
    if (traces) settings.trace_file = trace_file != nullptr ? trace_file : TraceFile();
    settings.let_clients_load = true;
    server_.emplace(*MakeService(std::move(settings), {{}, {}, &log}), 1);
    port_ = *server_->Add(MakeHttpFrontEnd(server_->service(), {}), "127.0.0.1:0");
    REQUIRE(server_->Start());
    client_.emplace(port_);
  }
  json Infer() { return json::parse(client_->Post("/v2/models/double/infer", kX).body); }
  TestClient& client() { return *client_; }
  // Also ends the file of traces.
  void End() {
    client_.reset();
    server_.reset();
  }
  std::string TraceFile() const { return (folder_.path() / "traces.json").string(); }
  std::string Traced() const {
    std::ifstream file(TraceFile());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  KeptLog log;

 private:
  const rewire::test::TempFolder folder_;
  std::optional<Server> server_;
  std::optional<TestClient> client_;
  int port_ = 0;
};

TEST_CASE("logging: clients read and set the level of the host's log, and requests are logged by it") {
  SettingsServer server;
  CHECK_THAT(server.log.TakeText(), Contains("model double, version 1: ready"));
  TestClient& client = server.client();
  const auto all = [&] { return json::parse(client.Get("/v2/logging").body); };
  const json at_info = {{"log_file", ""},    {"log_info", true},       {"log_warning", true},
                        {"log_error", true}, {"log_verbose_level", 0}, {"log_format", "default"}};
  CHECK(all() == at_info);
  (void)server.Infer();
  CHECK(server.log.TakeText().empty());
  const auto set = [&](const std::string& changes) { return client.Post("/v2/logging", changes); };
  CHECK(json::parse(set(R"({"log_verbose_level": 1})").body)["log_verbose_level"] == 1);
  (void)server.Infer();
  CHECK_THAT(server.log.TakeText(),
             Contains("request '7' of model double, version 1, after ") && Contains(" us: answered"));
  CHECK(json::parse(set(R"({"log_verbose_level": 0, "log_info": false})").body)["log_error"] == true);
  CHECK(client.Post("/v2/repository/models/double/load", "").status == 200);
  CHECK(server.log.TakeText().empty());
  CHECK(server.log.level() == ServerLogLevel::kError);
  CHECK(set(R"({"log_error": false, "log_warning": false})").status == 200);
  CHECK(server.log.level() == ServerLogLevel::kOff);
  CHECK(set(R"({"log_info": true})").status == 200);
  CHECK(all() == at_info);
  CHECK(client.Post("/v2/repository/models/double/unload", "").status == 200);
  CHECK_THAT(server.log.TakeText(), Contains("model double: unloaded"));
  struct Row {
    const char* changes;
    int status;
    const char* words;
  };
  for (const Row& row : {Row{R"({"log_error": false})", 501, "the log has levels"},
                         Row{R"({"log_warning": false})", 501, "log_error and log_warning are one"},
                         Row{R"({"log_verbose_level": 1, "log_info": false})", 501, "the log has levels"},
                         Row{R"({"log_info": 1})", 400, "the log setting 'log_info' must be true or false"},
                         Row{R"({"log_verbose_level": -1})", 400, "must be a whole number from 0"},
                         Row{R"({"log_file": "/tmp/a"})", 501, "'log_file' cannot be changed by clients"},
                         Row{R"({"log_format": "ISO8601"})", 501, "'log_format' has one value here"},
                         Row{R"({"log_level": 1})", 400, "there is no log setting 'log_level'"},
                         Row{"[]", 400, "the body must be a JSON object of settings"}}) {
    CAPTURE(row.changes);
    const auto refused = set(row.changes);
    CHECK(refused.status == row.status);
    CHECK_THAT(refused.body, Contains(row.words));
    CHECK(all() == at_info);
  }
  client.Send("DELETE /v2/logging HTTP/1.1\r\nHost: test\r\n\r\n");
  const auto refused = client.Read();
  CHECK(refused.status == 405);
  CHECK_THAT(refused.body, Contains("takes the method GET or POST"));
}

TEST_CASE("logging: a server without a log says so") {
  const rewire::test::TempFolder folder;
  TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  CHECK(client.Get("/v2/logging").status == 501);
  CHECK_THAT(client.Post("/v2/logging", "{}").body, Contains("this server has no log"));
  CHECK(client.Get("/v2/trace/setting").status == 200);
  CHECK_THAT(client.Post("/v2/trace/setting", R"({"trace_level": ["TIMESTAMPS"]})").body,
             Contains("requests are traced into a file: start the server with --trace-file"));
}

TEST_CASE("trace: as many requests as the settings say are written, with their times in order") {
  SettingsServer server;
  TestClient& client = server.client();
  const auto set = [&](const std::string& path, const std::string& changes) {
    const auto answer = client.Post(path, changes);
    INFO(answer.body);
    CHECK(answer.status == 200);
    return json::parse(answer.body);
  };
  (void)server.Infer();
  CHECK(server.Traced().empty());
  const json usual = json::parse(client.Get("/v2/trace/setting").body);
  CHECK(usual == json({{"trace_file", server.TraceFile()},
                       {"trace_level", {"OFF"}},
                       {"trace_rate", "1000"},
                       {"trace_count", "-1"},
                       {"log_frequency", "0"},
                       {"trace_mode", "triton"}}));
  const json set_to =
      set("/v2/trace/setting", R"({"trace_level": ["TIMESTAMPS"], "trace_rate": "3", "trace_count": 2})");
  CHECK(set_to["trace_level"][0] == "TIMESTAMPS");
  CHECK(set_to["trace_rate"] == "3");
  for (int i = 0; i < 3; ++i) (void)server.Infer();  // the first
  CHECK(json::parse(client.Get("/v2/models/double/trace/setting").body)["trace_count"] == "1");
  for (int i = 0; i < 9; ++i) (void)server.Infer();  // the fourth
  CHECK(json::parse(client.Get("/v2/models/double/trace/setting").body)["trace_count"] == "0");
  // The model's own settings count more, until they are cleared.
  set("/v2/models/double/trace/setting", R"({"trace_rate": "1", "trace_count": "3"})");
  for (int i = 0; i < 5; ++i) (void)server.Infer();
  set("/v2/models/double/trace/setting", R"({"trace_level": "OFF", "trace_count": null})");
  (void)server.Infer();
  const json cleared = set("/v2/models/double/trace/setting", R"({"trace_level": null, "trace_rate": []})");
  CHECK(cleared["trace_level"][0] == "TIMESTAMPS");
  CHECK(cleared["trace_rate"] == "3");
  set("/v2/trace/setting", R"({"trace_level": null, "trace_rate": null, "trace_count": null})");
  CHECK(json::parse(client.Get("/v2/trace/setting").body) == usual);
  server.End();
  const json traces = json::parse(server.Traced());
  REQUIRE(traces.size() == 5);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    CHECK(traces[i]["id"] == i + 1);
    CHECK(traces[i]["model_name"] == "double");
    CHECK(traces[i]["model_version"] == "1");
    CHECK(traces[i]["request_id"] == "7");
    std::vector<std::string> names;
    std::int64_t last = 0;
    for (const json& time : traces[i]["timestamps"]) {
      names.push_back(time["name"]);
      CHECK(time["ns"] >= last);
      last = time["ns"];
    }
    CHECK(names == std::vector<std::string>{"REQUEST_START", "QUEUE_START", "COMPUTE_START",
                                            "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
                                            "REQUEST_END"});
  }
}

TEST_CASE("trace: a file that cannot be opened is an error, and one that cannot be written ends the traces") {
  const char* const on = R"({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})";
  {
    SettingsServer server(true, "/nowhere/traces.json");
    const auto refused = server.client().Post("/v2/trace/setting", on);
    CHECK(refused.status == 500);
    CHECK_THAT(refused.body,
               Contains("'/nowhere/traces.json', which the server was given, cannot be opened"));
  }
  SettingsServer full(true, "/dev/full");
  CHECK(full.client().Post("/v2/trace/setting", on).status == 200);
  CHECK(full.Infer()["outputs"].size() == 1);
  full.End();
  CHECK_THAT(full.log.TakeText(), Contains("no longer traced: '/dev/full' cannot be written: No space left"));
}

TEST_CASE("trace: what is not traced is refused by name, and changes nothing") {
  SettingsServer server;
  TestClient& client = server.client();
  const json usual = json::parse(client.Get("/v2/trace/setting").body);
  struct Row {
    const char* changes;
    int status;
    const char* words;
  };
  for (const Row& row :
       {Row{R"({"trace_rate": "5", "trace_level": ["TENSORS"]})", 501, "'TENSORS' is not supported"},
        Row{R"({"trace_level": ["ALL"]})", 400, "there is no trace level 'ALL'"},
        Row{R"({"trace_rate": "0"})", 400, "'trace_rate' must be a whole number from 1"},
        Row{R"({"trace_rate": "1x"})", 400, "'trace_rate' must be a whole number from 1"},
        Row{R"({"trace_count": ["-2"]})", 400, "'trace_count' must be a whole number from -1"},
        Row{R"({"trace_file": "/tmp/a"})", 501, "'trace_file' cannot be changed by clients"},
        Row{R"({"log_frequency": "5"})", 501, "'log_frequency' has one value here, '0'"},
        Row{R"({"trace_mode": "opentelemetry"})", 501, "'trace_mode' has one value here, 'triton'"},
        Row{R"({"trace_rates": "1"})", 400, "there is no trace setting 'trace_rates'"},
        Row{R"({"trace_rate": {}})", 400, "must be a text, a list of texts or null"},
        Row{"1", 400, "the body must be a JSON object of settings"}}) {
    CAPTURE(row.changes);
    const auto refused = client.Post("/v2/trace/setting", row.changes);
    CHECK(refused.status == row.status);
    CHECK_THAT(refused.body, Contains(row.words));
    CHECK(json::parse(client.Get("/v2/trace/setting").body) == usual);
  }
  CHECK(client.Get("/v2/models/none/trace/setting").status == 404);
}

}  // namespace
}  // namespace rewire::serve::test
