// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/core/shared_regions.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "rewire/tests/serve/serve_fixture.h"

namespace rewire::serve::test {
namespace {

// An object of shared memory, of 8,192 bytes.
class SharedObject {
 public:
  SharedObject() : name("/rewire-test-" + std::to_string(getpid())) {
    file_ = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(file_ >= 0);
    Resize(8192);
    data = static_cast<std::byte*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~SharedObject() {
    munmap(data, 8192);
    close(file_);
    shm_unlink(name.c_str());
  }
  void Resize(off_t bytes) { REQUIRE(ftruncate(file_, bytes) == 0); }

  const std::string name;
  std::byte* data = nullptr;

 private:
  int file_ = -1;
};

std::string MessageOf(const Status& status) { return status ? std::string() : status.error().message(); }

TEST_CASE("a region is the client's own memory, until nobody uses it") {
  const SharedObject object;
  SharedRegions regions;
  CHECK(regions.Register("r", object.name, 100, 1000));
  const Result<RegionPart> part = regions.Find("r", 4, 16);
  REQUIRE(part);
  regions.UnregisterAll();
  part->data[0] = std::byte{42};
  CHECK(object.data[104] == std::byte{42});
  CHECK(regions.List()->empty());
}

TEST_CASE("regions that cannot be are refused") {
  SharedObject object;
  SharedRegions regions;
  CHECK(regions.Register("r", object.name, 0, 8192));
  CHECK((*regions.List("r"))[0].bytes == 8192);
  CHECK_THAT(MessageOf(regions.Register("r", object.name, 0, 10)),
             Catch::Contains("'r' is registered already"));
  CHECK_THAT(MessageOf(regions.Register("s", object.name, 1, 8192)),
             Catch::Contains("is shorter than 8192 bytes"));
  CHECK_THAT(MessageOf(regions.Register("s", "/rewire-nothing", 0, 1)), Catch::Contains("cannot open"));
  CHECK_THAT(MessageOf(regions.Register("s", "/../etc/passwd", 0, 1)),
             Catch::Contains("is no name of shared memory"));
  CHECK_THAT(MessageOf(regions.Register("s", object.name, 0, 0)), Catch::Contains("a size above 0"));
  CHECK_THAT(MessageOf(regions.Register("s", object.name, ~std::uint64_t{0}, 2)),
             Catch::Contains("a size above 0"));
  CHECK(regions.Find("s", 0, 1).error().code() == StatusCode::kNotFound);
  CHECK_THAT(regions.Find("r", 8192, 1).error().message(), Catch::Contains("has 8192 bytes"));
  CHECK_THAT(regions.Find("r", ~std::uint64_t{0}, 2).error().message(), Catch::Contains("has 8192 bytes"));
  CHECK(regions.List("s").error().code() == StatusCode::kNotFound);
  object.Resize(4096);
  CHECK_THAT(regions.Find("r", 0, 16).error().message(), Catch::Contains("has been made shorter"));
}

TEST_CASE("over HTTP, tensors are read from regions and written into them") {
  const SharedObject object;
  const rewire::test::TempFolder folder;
  const TestServer server(SettingsOf(WriteModel(folder, "double.rwx", DoubleProgram())));
  TestClient client(server.port());
  const TestClient::Response registered = client.Post(
      "/v2/systemsharedmemory/region/r/register", R"({"key": ")" + object.name + R"(", "byte_size": 8192})");
  CHECK(registered.status == 200);
  CHECK_THAT(client.Get("/v2/systemsharedmemory/status").body, Catch::Contains("\"byte_size\":8192"));
  const float given[] = {1, 2, 3, 4};
  std::memcpy(object.data + 64, given, sizeof given);
  const auto ask = [&](int room) {
    return client.Post(
        "/v2/models/double/infer",
        R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters":)"
        R"({"shared_memory_region": "r", "shared_memory_offset": 64, "shared_memory_byte_size": 16}}],)"
        R"("outputs": [{"name": "y", "parameters": {"shared_memory_region": "r",)"
        R"("shared_memory_offset": 4096, "shared_memory_byte_size": )" +
            std::to_string(room) + "}}]}");
  };
  const TestClient::Response response = ask(16);
  CHECK(response.status == 200);
  CHECK_THAT(response.body, Catch::Contains("\"shared_memory_region\":\"r\""));
  float written[4];
  std::memcpy(written, object.data + 4096, sizeof written);
  CHECK(std::vector<float>(written, written + 4) == std::vector<float>{2, 4, 6, 8});
  CHECK_THAT(ask(15).body, Catch::Contains("output 'y' has 16 bytes, and its place in shared memory 15"));
  CHECK(client.Post("/v2/systemsharedmemory/region/r/unregister", "").status == 200);
  CHECK(ask(16).status == 404);
  for (const char* body :
       {"", "[]", "{}", R"({"key": 1, "byte_size": 1})", R"({"key": "a", "byte_size": -1})"}) {
    CHECK(client.Post("/v2/systemsharedmemory/region/r/register", body).status == 400);
  }
}

}  // namespace
}  // namespace rewire::serve::test
