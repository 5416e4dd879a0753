// SPDX-License-Identifier: Apache-2.0
// Sandboxes for what is no executable alone: models with files of parameters, and models of ONNX.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/serve/run/model_service.h"
#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/tests/serve/sandbox/library_path.h"
#include "rewire/tests/serve/serve_fixture.h"
#include "rewire/tests/support/paths.h"

namespace rewire::serve::test {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;
using nlohmann::json;

// y = x + w.
constexpr char kAddsWeights[] = R"(.param w: f32[4]
.kernel add = "rewire.add"
.func main(x: f32[1, 4]) -> y: f32[1, 4]
  %w = load_const w
  %place = alloc_storage _, alignment=64, f32[1, 4], cpu
  %y = alloc_tensor %place, _, f32[1, 4]
  invoke_packed add(%x, %w, %y), outputs=1
  ret %y
.end
)";

// A file of safetensors with f32 tensors of four elements, each `first` and the three numbers behind it.
std::string Safetensors(const std::vector<std::pair<std::string, float>>& tensors) {
  json header;
  std::string data;
  for (const auto& [name, first] : tensors) {
    const std::size_t begin = data.size();
    for (int i = 0; i < 4; ++i) {
      const float value = first + static_cast<float>(i);
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    header[name] = {{"dtype", "F32"}, {"shape", {4}}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
}

ServeSettings InSandbox(const std::string& path, const std::vector<std::string>& parameters = {}) {
  ServeSettings settings = SettingsOf(path);
  settings.defaults.sandbox.enabled = true;
  settings.defaults.parameters = parameters;
  return settings;
}

std::string ErrorOf(const ServeSettings& settings) {
  const Result<std::unique_ptr<Service>> service = MakeService(settings);
  return service ? "" : service.error().message();
}

TEST_CASE("sandbox: a process has the model's parameters, of several files, and ignores those of others") {
  const rewire::test::TempFolder folder;
  const std::string model = WriteModel(folder, "double.rwx", kAddsWeights);  // TestRequest's model
  const std::string others = folder.Write("others.safetensors", Safetensors({{"v", 1}}));
  const std::string weights = folder.Write("weights.safetensors", Safetensors({{"u", 3}, {"w", 10}}));
  ServeSettings settings = InSandbox(model, {others, weights});
  settings.defaults.instances = 2;
  const std::unique_ptr<Service> service = ServiceOf(settings);
  for (int turn = 0; turn < 4; ++turn) {
    TestRequest request(1, 5);
    service->Submit(&request, nullptr);
    request.Wait();
    REQUIRE(request.message() == "");
    CHECK(request.Floats() == std::vector<float>{15, 17, 19, 21});
  }
}

TEST_CASE("sandbox: files of parameters that cannot be used are refused with a reason") {
  const rewire::test::TempFolder folder;
  const std::string model = WriteModel(folder, "model.rwx", kAddsWeights);
  const std::string good = folder.Write("good.safetensors", Safetensors({{"v", 1}}));
  const std::string bad = folder.Write("bad.safetensors", "nothing at all");
  const std::string empty = folder.Write("empty.safetensors", "");
  CHECK_THAT(ErrorOf(InSandbox(model, {folder.path() / "none"})),
             Contains("cannot open '" + (folder.path() / "none").string()));
  CHECK_THAT(ErrorOf(InSandbox(model, {good, bad})), Contains("file 2 of 'parameters'"));
  CHECK_THAT(ErrorOf(InSandbox(model, {empty})), Contains("the file of parameters is empty"));
  CHECK_THAT(ErrorOf(InSandbox(model, {good})), Contains("w: no parameter of this name given"));
  CHECK_THAT(ErrorOf(InSandbox(model)), Contains("w: no parameter of this name given"));
}

#if REWIRE_SERVE_COMPILES
// Asks the model "digits" for a picture whose pixels differ.
std::string DigitsAnswer(const ServeSettings& settings) {
  TestServer server(settings);
  TestClient client(server.port());
  const json model = json::parse(client.Get("/v2/models/digits").body);
  CHECK(model["platform"] == "rewire_onnx");
  json input = {{"name", model["inputs"][0]["name"]}, {"datatype", "FP32"}};
  std::int64_t count = 1;
  for (const std::int64_t size : model["inputs"][0]["shape"]) {
    input["shape"].push_back(size < 0 ? 2 : size);
    count *= size < 0 ? 2 : size;
  }
  for (std::int64_t i = 0; i < count; ++i) input["data"].push_back(static_cast<double>(i % 17) / 16);
  const TestClient::Response answer =
      client.Post("/v2/models/digits/infer", json{{"inputs", {input}}}.dump());
  INFO(answer.body);
  REQUIRE(answer.status == 200);
  return json::parse(answer.body)["outputs"].dump();
}

TEST_CASE("sandbox: a model of ONNX is compiled in a process of its own, and gives what it gives without") {
  const std::string model = rewire::test::SourceDir() + std::string("/examples/digits/digits.onnx");
  CHECK(DigitsAnswer(InSandbox(model)) == DigitsAnswer(SettingsOf(model)));
}

TEST_CASE("sandbox: a model of ONNX that cannot be compiled is refused with the compiler's reason") {
  const rewire::test::TempFolder folder;
  const std::string damaged = folder.Write("damaged.onnx", "nothing");
  const std::string empty = folder.Write("empty.onnx", "");
  for (const ServeSettings& settings : {InSandbox(damaged), SettingsOf(damaged)})
    CHECK_THAT(ErrorOf(settings), Contains("damaged.onnx: not an ONNX model, or a truncated one"));
  CHECK_THAT(ErrorOf(InSandbox(empty)), Contains("the model is empty"));
}

// In place of the compiler: it says that the executable has a size, and leaves the memory as it is.
constexpr char kLiar[] = R"(#!/usr/bin/python3
import pathlib, socket, sys
server = socket.socket(fileno=3)
server.send((pathlib.Path(sys.argv[0]).parent / "compiled").read_bytes())
server.recv(1 << 17)
server.send((pathlib.Path(sys.argv[0]).parent / "done").read_bytes())
)";

TEST_CASE("sandbox: a compiler that lies fails the load of its model alone") {
  const rewire::test::TempFolder folder;
  fs::permissions(folder.Write("rewire-sandbox-compiler", kLiar), fs::perms::owner_all);
  const std::string model = folder.Write("model.onnx", "anything");
  const LibraryPath path(folder.path().string());
  const auto error = [&](const std::string& compiled, const std::string& done) {
    folder.Write("compiled", compiled);
    folder.Write("done", done);
    return ErrorOf(InSandbox(model));
  };
  CHECK_THAT(error(EncodeCompiled(std::uint64_t{1} << 60), EncodeDone({})),
             Contains("the sandbox says that it has compiled 1152921504606846976 bytes"));
  CHECK_THAT(error(EncodeDone({}), ""), Contains("the message is of another kind"));
  CHECK_THAT(error(EncodeCompiled(100), EncodeCompiled(100)), Contains("the message is of another kind"));
  CHECK_THAT(error(EncodeCompiled(0), EncodeDone({})), Contains("the file is empty"));
}
#endif

}  // namespace
}  // namespace rewire::serve::test
