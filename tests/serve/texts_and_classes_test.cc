// SPDX-License-Identifier: Apache-2.0
// BYTES over HTTP: inputs of texts, and the largest elements in place of an output.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/run/classification.h"
#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

using Catch::Contains;
using nlohmann::json;

// Returns what it gets: positions in a list of texts, where each text ends, and their bytes.
constexpr char kTexts[] = R"w(
.metadata "input strings main.0" "{\"offsets\": 1, \"bytes\": 2}"
.func main(x: i64[?, 2], ends: i64[?], text: u8[?]) -> (y: i64[?, 2], ends: i64[?], text: u8[?])
  %result = alloc_adt tag=0 (%x, %ends, %text)
  ret %result
.end
)w";

std::string Wire(const std::vector<std::string>& texts) {
  std::string wire;
  for (const std::string& text : texts) AppendWireText(text, &wire);
  return wire;
}

TEST_CASE("texts are taken as JSON and as binary data, whatever their bytes") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "texts.rwx", kTexts)));
  TestClient client(server.port());
  const auto check = [](const TestClient::Response& response) {
    INFO(response.body);
    REQUIRE(response.status == 200);
    const json outputs = json::parse(response.body)["outputs"];
    CHECK(outputs[0]["data"] == json({0, 1, 2, 3}));
    CHECK(outputs[0]["shape"] == json({2, 2}));
    CHECK(outputs[1]["data"] == json({0, 1, 1, 7, 8}));
    CHECK(outputs[2]["data"] == json({97, 0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80, 0}));
  };
  const std::string input = R"({"inputs": [{"name": "x", "shape": [2, 2], "datatype": "BYTES", )";
  check(client.Post("/v2/models/texts/infer",
                    input + R"("data": [["a", ""], ["\u00e9\ud83d\ude00", "\u0000"]]}]})"));
  const std::string wire = Wire({"a", "", "\u00e9\U0001F600", std::string(1, '\0')});
  const auto binary = [&](const std::string& bytes) {
    const std::string text =
        input + R"("parameters": {"binary_data_size": )" + std::to_string(bytes.size()) + "}}]}";
    return client.Post("/v2/models/texts/infer", text + bytes,
                       "Inference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n");
  };
  check(binary(wire));
  // Every cut is refused, and the connection goes on.
  for (std::size_t size = 0; size < wire.size(); ++size) {
    const TestClient::Response cut = binary(wire.substr(0, size));
    CHECK(cut.status == 400);
    CHECK_THAT(cut.body, Contains("of BYTES is damaged") || Contains("texts are given"));
  }
  check(binary(wire));
  CHECK_THAT(client.Post("/v2/models/texts/infer", input + R"("data": [1, 2, 3, 4]}]})").body,
             Contains("an element of 'data' is no text"));
}

TEST_CASE("texts for an input that takes none are refused") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  const TestClient::Response response =
      client.Post("/v2/models/double/infer",
                  R"({"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"]}]})");
  CHECK(response.status == 400);
  CHECK_THAT(response.body, Contains("input 'x': the model takes no BYTES here, but FP32"));
}

TEST_CASE("classification gives each row's largest elements, as JSON and as binary data") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  const auto ask = [&](const std::string& parameters) {
    return client.Post("/v2/models/double/infer",
                       R"({"inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP32", "data": )"
                       R"([1, 4, 2.25, -1, 0, 0, -2, 0]}], "outputs": [{"name": "y", "parameters": {)" +
                           parameters + "}}]}");
  };
  const json two = json::parse(ask(R"("classification": 2)").body)["outputs"][0];
  CHECK(two["datatype"] == "BYTES");
  CHECK(two["shape"] == json({2, 2}));
  CHECK(two["data"] == json({"8:1", "4.5:2", "0:0", "0:1"}));
  const json all = json::parse(ask(R"("classification": 9)").body)["outputs"][0];
  CHECK(all["shape"] == json({2, 4}));
  CHECK(all["data"] == json({"8:1", "4.5:2", "2:0", "-2:3", "0:0", "0:1", "0:3", "-4:2"}));
  const TestClient::Response binary = ask(R"("classification": 1, "binary_data": true)");
  CHECK_THAT(binary.body, Contains(Wire({"8:1", "0:0"})));
  CHECK(ask(R"("classification": 0)").status == 200);
  CHECK_THAT(ask(R"("classification": -1)").body, Contains("'classification' has a wrong value"));
  CHECK_THAT(ask(R"("classification": 1, "shared_memory_region": "a", "shared_memory_byte_size": 4)").body,
             Contains("one of 'classification' and 'shared_memory_region' is expected"));
}

template <typename T>
std::string Classes(DLDataType dtype, const std::vector<T>& elements, std::uint32_t count, Status* status) {
  Arena memory;
  OutputTensor tensor;
  tensor.name = "y";
  tensor.dtype = dtype;
  tensor.shape = {static_cast<std::int64_t>(elements.size())};
  tensor.data = reinterpret_cast<const std::byte*>(elements.data());
  tensor.bytes = elements.size() * sizeof(T);
  *status = Classify(count, false, &memory, &tensor);
  std::string joined;
  std::string_view rest(reinterpret_cast<const char*>(tensor.data), *status ? tensor.bytes : 0);
  while (const auto text = TakeWireText(&rest)) joined += std::string(*text) + " ";
  return joined;
}

TEST_CASE("classification of rows without elements takes no time, however many there are") {
  Arena memory;
  OutputTensor tensor;
  tensor.name = "y";
  tensor.dtype = kFloat32;
  tensor.shape = {std::int64_t{1} << 62, 0};
  tensor.bytes = 0;
  REQUIRE(Classify(3, true, &memory, &tensor));
  CHECK(tensor.shape == std::vector<std::int64_t>{std::int64_t{1} << 62, 0});
  CHECK(tensor.bytes == 0);
}

TEST_CASE("a shape of texts whose product overflows is refused") {
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "texts.rwx", kTexts)));
  TestClient client(server.port());
  const json body = {{"inputs",
                      {{{"name", "x"},
                        {"datatype", "BYTES"},
                        {"shape", {std::int64_t{1} << 62, 4, 3}},
                        {"data", {"a", "b"}}}}}};
  const TestClient::Response response = client.Post("/v2/models/texts/infer", body.dump());
  CHECK(response.status == 400);
  CHECK_THAT(response.body, Contains("its shape has too many elements, and 2 texts are given"));
}

TEST_CASE("classification takes every type of elements that can be compared, and NaN comes last") {
  Status status;
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  CHECK(Classes<float>(kFloat32, {nan, 1, infinity, nan, -infinity}, 9, &status) ==
        "inf:2 1:1 -inf:4 nan:0 nan:3 ");
  CHECK(Classes<double>(kFloat64, {0.1, 1e300}, 1, &status) == "1e+300:1 ");
  CHECK(Classes<std::int64_t>(kInt64, {-5, 7}, 2, &status) == "7:1 -5:0 ");
  CHECK(Classes<std::int32_t>(kInt32, {-5, 7}, 2, &status) == "7:1 -5:0 ");
  CHECK(Classes<std::int16_t>(MakeDType(kInt, 16), {-5, 7}, 2, &status) == "7:1 -5:0 ");
  CHECK(Classes<std::int8_t>(kInt8, {-5, 7}, 2, &status) == "7:1 -5:0 ");
  CHECK(Classes<std::uint8_t>(kUInt8, {5, 250}, 2, &status) == "250:1 5:0 ");
  CHECK(Classes<std::uint16_t>(MakeDType(kUInt, 16), {5, 65000}, 2, &status) == "65000:1 5:0 ");
  CHECK(Classes<std::uint32_t>(MakeDType(kUInt, 32), {5, 4000000000U}, 2, &status) == "4000000000:1 5:0 ");
  CHECK(Classes<std::uint8_t>(kBool8, {0, 1, 1}, 3, &status) == "1:1 1:2 0:0 ");
  CHECK(Classes<float>(kFloat32, {}, 3, &status).empty());
  CHECK(status);
  CHECK(Classes<std::uint16_t>(MakeDType(kFloat, 16), {1, 2}, 1, &status).empty());
  CHECK_THAT(status.error().message(), Contains("elements of FP16, which 'classification' does not take"));
}

}  // namespace
}  // namespace rewire::serve::test
