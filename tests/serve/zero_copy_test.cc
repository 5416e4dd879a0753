// SPDX-License-Identifier: Apache-2.0
// Tensors are used and made where they lie: the kernel itself tells its addresses.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

class Served {
 public:
  Served() {
    service =
        ServiceOf(SettingsOf(WriteModel(folder_, "double.rwx", DoubleProgram("test.gate"))), gate.Kernels());
  }
  Gate gate;
  std::unique_ptr<Service> service;

 private:
  rewire::test::TempFolder folder_;
};

TEST_CASE("the kernel reads the receive buffer and writes the response") {
  Served served;
  for (int i = 0; i < 3; ++i) {
    TestRequest request(3, 1);
    served.service->Submit(&request, nullptr);
    request.Wait();
    CHECK(request.Floats() == request.Doubled());
    CHECK(served.gate.last_input() == request.inputs[0].data.data());
    CHECK(served.gate.last_output() == request.results[0].data);
  }
}

TEST_CASE("the kernel writes the client's region") {
  Served served;
  const auto region = std::make_shared<std::vector<float>>(8);
  TestRequest request(1, 1);
  request.wanted.push_back({"y", 0, {reinterpret_cast<std::byte*>(region->data()), 32}, region});
  served.service->Submit(&request, nullptr);
  request.Wait();
  CHECK(request.message().empty());
  CHECK(served.gate.last_output() == region->data());
  CHECK((*region)[0] == 2);
  CHECK((*region)[4] == 0);
}

// Doubles x as `y`, and `z` is x times 3.
constexpr char kTwoOutputs[] = R"(
.kernel add = "rewire.add"
.func main(x: f32[N, 4]) -> (y: f32[N, 4], z: f32[N, 4])
  %shape = shape_of %x
  %bytes = load_consti 65536
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %storage, _, %shape, f32
  invoke_packed add(%x, %x, %y), outputs=1
  %more = alloc_storage %bytes, alignment=64, f32, cpu
  %z = alloc_tensor_reg %more, _, %shape, f32
  invoke_packed add(%x, %y, %z), outputs=1
  %result = alloc_adt tag=0 (%y, %z)
  ret %result
.end
)";

TEST_CASE("a run writes to no memory of the request before it, whichever outputs that has asked for") {
  const rewire::test::TempFolder folder;
  const auto service = ServiceOf(SettingsOf(WriteModel(folder, "double.rwx", kTwoOutputs)));
  constexpr float kUntouched = -7;
  const std::vector<std::vector<std::string>> asked = {{"y", "z"}, {"z"}, {"z", "y"}, {}, {"y"}, {"y", "z"}};
  std::vector<std::pair<std::string, std::shared_ptr<std::vector<float>>>> regions;
  for (int round = 0; round < 3; ++round) {
    for (const std::vector<std::string>& names : asked) {
      for (const auto& [name, region] : regions) region->assign(4, kUntouched);
      const std::size_t before = regions.size();
      // Other values for each.
      TestRequest request(1, static_cast<float>(before) + 1);
      for (const std::string& name : names) {
        const auto& region = regions.emplace_back(name, std::make_shared<std::vector<float>>(4)).second;
        request.wanted.push_back({name, 0, {reinterpret_cast<std::byte*>(region->data()), 16}, region});
      }
      service->Submit(&request, nullptr);
      request.Wait();
      REQUIRE(request.message().empty());
      const float x = static_cast<float>(before) + 1;
      for (std::size_t i = 0; i < regions.size(); ++i) {
        const float expected = i < before ? kUntouched : x * (regions[i].first == "y" ? 2.0F : 3.0F);
        CHECK(regions[i].second->front() == expected);
      }
      if (names.empty()) {
        CHECK(request.Floats(0).front() == 2 * x);
        CHECK(request.Floats(1).front() == 3 * x);
      }
    }
  }
}

TEST_CASE("an input that is not aligned to its elements is copied, and right") {
  Served served;
  TestRequest request(1, 1);
  std::byte moved[17];
  std::memcpy(moved + 1, request.inputs[0].data.data(), 16);
  request.inputs[0].data = {moved + 1, 16};
  served.service->Submit(&request, nullptr);
  request.Wait();
  CHECK(request.Floats() == request.Doubled());
}

TEST_CASE("over HTTP, bytes behind the JSON are the kernel's input, aligned, whatever the JSON's length") {
  const rewire::test::TempFolder folder;
  Gate gate;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram("test.gate"))), {},
                          gate.Kernels());
  TestClient client(server.port());
  for (int length = 0; length < 70; ++length) {
    const std::string text =
        R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}]})" +
        std::string(static_cast<std::size_t>(length), ' ');
    CHECK(client
              .Post("/v2/models/double/infer", text + std::string(16, '\0'),
                    "Inference-Header-Content-Length: " + std::to_string(text.size()) + "\r\n")
              .status == 200);
    CHECK(reinterpret_cast<std::uintptr_t>(gate.last_input()) % 64 == 0);
  }
}

}  // namespace
}  // namespace rewire::serve::test
