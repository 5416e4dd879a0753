// SPDX-License-Identifier: Apache-2.0
// Tensors are used and made where they lie: the kernel itself tells its addresses.
#include <catch2/catch.hpp>
#include <cstring>

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
