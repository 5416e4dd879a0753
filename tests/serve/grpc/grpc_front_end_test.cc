// SPDX-License-Identifier: Apache-2.0
// The front end of gRPC, by a client that sends what no library would.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/serve/grpc/http2_connection.h"
#include "rewire/serve/grpc/protobuf_wire.h"
#include "rewire/tests/serve/grpc/grpc_client.h"

namespace rewire::test {
namespace {

using Catch::Contains;
using serve::WireWriter;

const std::vector<float> kX = {1, -2, 3.5F, 4};
const std::vector<float> kY = {2, -4, 7, 8};

// The server still answers, on a connection of its own.
void CheckAlive(const GrpcServer& server) {
  GrpcClient client(server.port());
  const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", Framed(InferMessage("double", kX))));
  CHECK(answer.status() == 0);
  REQUIRE(answer.messages().size() == 1);
  CHECK(OutputOf(answer.messages()[0]) == kY);
}

std::string Named(const std::string& name) {
  std::string message;
  WireWriter(&message).Text(1, name);
  return message;
}

TEST_CASE("gRPC: a model is asked, and the answer has its id") {
  GrpcServer server;
  GrpcClient client(server.port());
  const GrpcAnswer& answer =
      client.Wait(client.Call("ModelInfer", Framed(InferMessage("double", kX, "request 7"))));
  CHECK(answer.headers.at(":status") == "200");
  CHECK(answer.headers.at("content-type") == "application/grpc");
  CHECK(answer.status() == 0);
  REQUIRE(answer.messages().size() == 1);
  CHECK(OutputOf(answer.messages()[0]) == kY);
  CHECK_THAT(answer.messages()[0], Contains("request 7"));
}

TEST_CASE("gRPC: a model reads its input where it lies in the message, and it is aligned there") {
  GrpcServer server;
  GrpcClient client(server.port());
  // Texts of each length in front of the elements.
  for (std::size_t length = 0; length < 70; ++length) {
    const std::string message = Framed(InferMessage("double", kX, std::string(length, 'i')));
    CHECK(client.Wait(client.Call("ModelInfer", message)).status() == 0);
    std::uintptr_t address = 0;
    server.On([&] { address = reinterpret_cast<std::uintptr_t>(server.service().last_input().data()); });
    INFO(length);
    CHECK(address % 64 == 0);
  }
}

TEST_CASE("gRPC: all methods of the service answer") {
  GrpcServer server;
  GrpcClient client(server.port());
  struct Row {
    const char* method;
    std::string message;
    int status;
  };
  std::string region;
  WireWriter(&region).Text(1, "region").Text(2, "/rewire_no_such_object").Number(4, 16);
  std::string load;
  WireWriter(&load).Text(2, "double");
  std::string load_other;
  WireWriter(&load_other).Text(2, "other");
  std::string load_with_config = load;
  WireWriter(&load_with_config).Entry(3, "config", [](WireWriter* value) { value->Text(3, "{}"); });
  const std::vector<Row> rows = {
      {"ServerLive", "", 0},
      {"ServerReady", "", 0},
      {"ModelReady", Named("double"), 0},
      {"ModelReady", Named("other"), 0},
      {"ServerMetadata", "", 0},
      {"ModelMetadata", Named("double"), 0},
      {"ModelMetadata", Named("other"), 5},
      {"ModelInfer", InferMessage("double", kX), 0},
      {"ModelInfer", InferMessage("other", kX), 5},
      {"ModelStreamInfer", InferMessage("double", kX), 0},
      {"ModelConfig", Named("double"), 0},
      {"ModelConfig", Named("other"), 5},
      {"ModelStatistics", Named("double"), 0},
      {"ModelStatistics", "", 0},
      {"ModelStatistics", Named("other"), 5},
      {"RepositoryIndex", "", 0},
      {"RepositoryModelLoad", load, 0},
      {"RepositoryModelLoad", load_other, 5},
      {"RepositoryModelLoad", load_with_config, 12},
      {"RepositoryModelUnload", load, 0},
      {"RepositoryModelUnload", load_other, 5},
      {"SystemSharedMemoryStatus", "", 0},
      {"SystemSharedMemoryStatus", Named("other"), 5},
      {"SystemSharedMemoryRegister", region, 5},
      {"SystemSharedMemoryUnregister", Named("other"), 0},
      {"SystemSharedMemoryUnregister", "", 0},
      {"CudaSharedMemoryStatus", "", 0},
      {"CudaSharedMemoryStatus", Named("other"), 5},
      {"CudaSharedMemoryRegister", Named("other"), 12},
      {"CudaSharedMemoryUnregister", Named("other"), 0},
      {"TraceSetting", "", 0},
      {"LogSettings", "", 12},
      {"NoSuchMethod", "", 12},
  };
  for (const Row& row : rows) {
    INFO(row.method);
    const GrpcAnswer& answer = client.Wait(client.Call(row.method, Framed(row.message)));
    CHECK(answer.status() == row.status);
    CHECK(answer.messages().size() == (row.status == 0 ? 1 : 0));
    CHECK((row.status == 0) == (answer.headers.count("grpc-message") == 0));
  }
  // A message that is none of the method's.
  for (const Row& row : rows) {
    INFO(row.method);
    const GrpcAnswer& answer = client.Wait(client.Call(row.method, Framed("\xff\xff\xff")));
    const bool reads = row.message != "" || answer.status() == 3;
    if (reads && row.status != 12 && std::string(row.method) != "ModelStreamInfer")
      CHECK(answer.status() == 3);
  }
  CHECK(server.connections() == 1);
}

TEST_CASE("gRPC: an error has its code, and its message as gRPC encodes it") {
  GrpcServer server;
  GrpcClient client(server.port());
  const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", Framed(InferMessage("fail", kX))));
  CHECK(answer.status() == 13);
  CHECK(answer.headers.at("grpc-message") == "a kernel failed: 100 %25 %C3%A9%0A");
  CHECK(answer.body.empty());
}

TEST_CASE("gRPC: calls that are not as they should be get an answer each, and hurt no other") {
  serve::FrontEndLimits limits;
  limits.body_bytes = 4096;
  limits.header_bytes = 2048;
  limits.header_count = 20;
  GrpcServer server(limits);
  GrpcClient client(server.port());
  const std::string good = Framed(InferMessage("double", kX));
  struct Row {
    const char* what;
    std::string body;
    GrpcClient::Headers headers;
    int status;
    const char* message;
  };
  std::string compressed = good;
  compressed[0] = 1;
  std::string long_one("\0\0\0\x20\0", 5);
  GrpcClient::Headers many;
  for (int i = 0; i < 30; ++i) many.push_back({"h" + std::to_string(i), "v"});
  const std::vector<Row> rows = {
      {"no message", "", {}, 3, "the call has no message"},
      {"half a prefix", good.substr(0, 3), {}, 3, "ends within a message"},
      {"a prefix alone", good.substr(0, 5), {}, 3, "ends within a message"},
      {"half a message", good.substr(0, good.size() - 1), {}, 3, "ends within a message"},
      {"two messages", good + good, {}, 3, "second message"},
      {"compressed", compressed, {}, 12, "compressed"},
      {"an encoding", good, {{"grpc-encoding", "gzip"}}, 12, "'gzip'"},
      {"too large", long_one, {}, 8, "a message has 8192 bytes, and 4096 are allowed"},
      {"a time that is none", good, {{"grpc-timeout", "soon"}}, 3, "grpc-timeout"},
      {"a time without unit", good, {{"grpc-timeout", "55"}}, 3, "grpc-timeout"},
      {"a time that is over", good, {{"grpc-timeout", "0n"}}, 4, "too late"},
      {"many headers", good, many, 8, "headers"},
      {"long headers", good, {{"h", std::string(3000, 'v')}}, 8, "headers"},
      {"another service", good, {{":path", "/other.Service/ModelInfer"}}, 12, "there is no method"},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const GrpcAnswer& answer = client.Wait(client.Call("ModelInfer", row.body, true, row.headers));
    CHECK(answer.status() == row.status);
    CHECK_THAT(answer.headers.count("grpc-message") ? answer.headers.at("grpc-message") : "",
               Contains(row.message));
  }
  CHECK(client.Wait(client.Call("ModelInfer", good, true, {{":method", "GET"}})).headers.at(":status") ==
        "405");
  CHECK(client.Wait(client.Call("ModelInfer", good, true, {{"content-type", "text/html"}}))
            .headers.at(":status") == "415");
  // The server does not wait for the rest of what it has refused.
  CHECK(client.Wait(client.Call("ModelInfer", long_one, false)).status() == 8);
  CHECK(client.Wait(client.Call("ModelInfer", good)).status() == 0);
  CheckAlive(server);
}

TEST_CASE("gRPC: a message that comes byte by byte is the same message") {
  GrpcServer server;
  GrpcClient client(server.port());
  const std::string body = Framed(InferMessage("double", kX));
  const std::int32_t id = client.Call("ModelInfer", "", false);
  for (const char byte : body) client.Send(id, std::string(1, byte), false);
  client.Send(id, "", true);
  const GrpcAnswer& answer = client.Wait(id);
  REQUIRE(answer.messages().size() == 1);
  CHECK(OutputOf(answer.messages()[0]) == kY);
}

TEST_CASE("gRPC: tensors larger than all windows go through, and many calls at a time") {
  GrpcServer server;
  GrpcClient client(server.port());
  std::vector<float> x(6 << 20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1001);
  const std::int32_t large = client.Call("ModelInfer", Framed(InferMessage("double", x)));
  std::vector<std::int32_t> small;
  for (int i = 0; i < 50; ++i)
    small.push_back(client.Call("ModelInfer", Framed(InferMessage("double", {static_cast<float>(i)}))));
  for (int i = 0; i < 50; ++i) {
    const GrpcAnswer& answer = client.Wait(small[static_cast<std::size_t>(i)]);
    REQUIRE(answer.messages().size() == 1);
    CHECK(OutputOf(answer.messages()[0]) == std::vector<float>{2.0F * static_cast<float>(i)});
  }
  const GrpcAnswer& answer = client.Wait(large);
  REQUIRE(answer.messages().size() == 1);
  const std::vector<float> y = OutputOf(answer.messages()[0]);
  REQUIRE(y.size() == x.size());
  bool equal = true;
  for (std::size_t i = 0; i < x.size(); ++i) equal &= y[i] == 2 * x[i];
  CHECK(equal);
}

TEST_CASE("gRPC: a stream answers its requests in order, and an error is one request's own") {
  GrpcServer server;
  GrpcClient client(server.port());
  const std::int32_t id = client.Call("ModelStreamInfer", Framed(InferMessage("double", {1})), false);
  CHECK(client.WaitForMessages(id, 1).messages().size() == 1);
  client.Send(id, Framed(InferMessage("other", {1}, "wrong one")) + Framed(InferMessage("double", {3})),
              false);
  CHECK(client.WaitForMessages(id, 3).messages().size() == 3);
  CHECK_FALSE(client.WaitForMessages(id, 3).closed);
  client.Send(id, "", true);
  const GrpcAnswer& answer = client.Wait(id);
  CHECK(answer.status() == 0);
  REQUIRE(answer.messages().size() == 3);
  // A response is field 2; an error is a text, field 1.
  std::vector<std::string> errors, responses;
  for (const std::string& message : answer.messages()) {
    serve::WireReader reader(message);
    errors.emplace_back();
    responses.emplace_back();
    while (reader.Next()) (reader.field() == 1 ? errors : responses).back() = std::string(reader.bytes());
  }
  CHECK(OutputOf(responses[0]) == std::vector<float>{2});
  CHECK(errors[1] == "there is no model 'other'");
  CHECK_THAT(responses[1], Contains("wrong one"));
  CHECK(OutputOf(responses[2]) == std::vector<float>{6});
}

TEST_CASE("gRPC: at most 64 messages of a stream wait") {
  GrpcServer server;
  GrpcClient client(server.port());
  const std::string message = Framed(InferMessage("hold", kX));
  const std::int32_t id = client.Call("ModelStreamInfer", message, false);
  for (int i = 0; i < 62; ++i) client.Send(id, message, false);
  // The answer comes behind what was sent before.
  CHECK(client.Wait(client.Call("ServerLive", Framed(""))).status() == 0);
  CHECK_FALSE(client.WaitForMessages(id, 0).closed);
  for (int i = 0; i < 4; ++i) client.Send(id, message, false);
  CHECK(client.Wait(id).status() == 8);
}

TEST_CASE("gRPC: a client that ends its call, or goes, stops what it has asked for") {
  GrpcServer server;
  const auto held = [&] {
    std::size_t count = 0;
    server.On([&] { count = server.service().held(); });
    return count;
  };
  const auto wait_for = [&](std::size_t count) {
    while (held() != count) std::this_thread::yield();
  };
  {
    GrpcClient client(server.port());
    const std::int32_t first = client.Call("ModelInfer", Framed(InferMessage("hold", kX)));
    const std::int32_t second = client.Call("ModelInfer", Framed(InferMessage("hold", kX)));
    client.Call("ModelStreamInfer", Framed(InferMessage("hold", kX)), false);
    wait_for(3);
    client.Reset(first);
    wait_for(2);
    CHECK(client.Wait(client.Call("ServerLive", Framed(""))).status() == 0);
    // The other two go on.
    server.On([&] { server.service().Release(); });
    CHECK(client.Wait(second).status() == 0);
    client.Call("ModelInfer", Framed(InferMessage("hold", kX)));
    wait_for(1);
  }
  wait_for(0);
  std::uint64_t cancelled = 0;
  server.On([&] { cancelled = server.service().cancelled; });
  CHECK(cancelled == 2);
}

TEST_CASE("gRPC: a client that ends its calls over and over is sent away") {
  GrpcServer server;
  GrpcClient client(server.port());
  for (std::uint64_t i = 0; i <= serve::Http2Connection::kMostResets; ++i)
    client.Reset(client.Call("ModelInfer", Framed(InferMessage("hold", kX)), false));
  client.WaitForEnd();
  CHECK(client.going_away());
  CHECK(client.goaway_error() == 11);  // ENHANCE_YOUR_CALM
  CheckAlive(server);
}

TEST_CASE("gRPC: a server that drains answers what it has, and then closes") {
  GrpcServer server;
  GrpcClient client(server.port()), idle(server.port());
  const std::int32_t id = client.Call("ModelInfer", Framed(InferMessage("hold", kX)));
  std::size_t held = 0;
  while (held == 0) server.On([&] { held = server.service().held(); });
  server.Drain();
  idle.WaitForEnd();
  CHECK(idle.going_away());
  while (server.connections() != 1) std::this_thread::yield();  // the client may know of the end first
  server.On([&] { server.service().Release(); });
  CHECK(client.Wait(id).status() == 0);
  client.WaitForEnd();
  CHECK(client.goaway_error() == 0);
}

TEST_CASE("gRPC: bytes that are no HTTP/2 end the connection alone") {
  GrpcServer server;
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    GrpcClient client(server.port());
    std::string noise;
    // A frame's head whose type and flags are random, then noise of that length.
    const std::size_t size = random() % 200;
    noise +=
        {'\0', '\0', static_cast<char>(size), static_cast<char>(random() % 12), static_cast<char>(random())};
    for (std::size_t n = 0; n < 4 + size; ++n)
      noise.push_back(static_cast<char>(random() % (i % 2 == 0 ? 256 : 4)));
    client.SendRaw(noise);
    client.SendRaw(std::string(300, '\xff'));  // a frame that is larger than any may be
    client.WaitForEnd();
  }
  CheckAlive(server);
}

// A conversation as a client of nghttp2 sends it: preface, settings, and a call.
std::string Conversation() {
  std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  bytes += std::string("\0\0\0\4\0\0\0\0\0", 9);
  const auto literal = [](const std::string& name, const std::string& value) {
    return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) +
           value;
  };
  const std::string head = literal(":method", "POST") + literal(":scheme", "http") +
                           literal(":path", "/inference.GRPCInferenceService/ModelInfer") +
                           literal(":authority", "test") + literal("te", "trailers") +
                           literal("content-type", "application/grpc");
  const std::string body = Framed(InferMessage("double", kX));
  const auto frame = [&](const std::string& payload, char type, char flags) {
    bytes += {'\0', '\0', static_cast<char>(payload.size()), type, flags, '\0', '\0', '\0', '\1'};
    bytes += payload;
  };
  frame(head, 1, 4);
  frame(body, 0, 1);
  return bytes;
}

TEST_CASE("gRPC: no change of a conversation's bytes hurts the server") {
  GrpcServer server;
  const std::string good = Conversation();
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    std::string changed = good;
    // Behind the preface, which nothing comes after if it is wrong.
    for (std::uint32_t n = random() % 4 + 1; n > 0; --n) {
      const std::size_t at = 24 + random() % (changed.size() - 24);
      const std::uint32_t kind = random() % 3;
      if (kind == 0) changed[at] = static_cast<char>(random());
      if (kind == 1) changed.erase(at, random() % 8);
      if (kind == 2) changed.insert(at, changed.substr(24 + random() % (at - 23), random() % 40));
    }
    GrpcClient client(server.port());
    client.SendAlone(changed);
  }
  CheckAlive(server);
}

}  // namespace
}  // namespace rewire::test
