// SPDX-License-Identifier: Apache-2.0
//
// Objects of OpenCL stand for the addresses of a launch. Skipped without a driver of OpenCL.
#include "rewire/devices/opencl/launch_memory.h"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

namespace rewire::opencl {
namespace {

State& Drivers() {
  static auto* const kState = new State();
  return *kState;
}

struct Argument {
  void* address;
  std::uint64_t bytes;  // 0: not told
};

// A region of a buffer: the beginning and the size of the object that stands for an argument.
struct Region {
  cl_mem object = nullptr;
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

class OneBuffer {
 public:
  explicit OneBuffer(std::uint64_t bytes) {
    AddMemory(&api_);
    void* block = nullptr;
    REQUIRE(api_.allocate(&Drivers(), device_, bytes, 64, "", nullptr, &block) == REWIRE_DEVICE_OK);
    block_ = static_cast<char*>(block);
  }
  ~OneBuffer() { api_.deallocate(&Drivers(), device_, block_, nullptr); }
  OneBuffer(const OneBuffer&) = delete;
  OneBuffer& operator=(const OneBuffer&) = delete;

  char* at(std::uint64_t offset) const { return block_ + offset; }

 private:
  RewireDeviceApi api_{};
  DLDevice device_{kDLOpenCL, 0};
  char* block_ = nullptr;
};

int Find(LaunchMemory* memory, std::initializer_list<Argument> arguments) {
  std::vector<RewireLaunchArgument> given;
  for (const Argument& argument : arguments) {
    RewireLaunchArgument& one = given.emplace_back();
    one.kind = REWIRE_LAUNCH_ADDRESS;
    one.bytes = static_cast<std::uint32_t>(argument.bytes);
    one.u.address = argument.address;
  }
  RewireLaunch launch{};
  launch.argument_count = static_cast<std::uint32_t>(given.size());
  launch.arguments = given.data();
  return memory->Find(Drivers().devices[0], launch);
}

std::vector<Region> RegionsOf(std::initializer_list<Argument> arguments) {
  LaunchMemory memory(Drivers());
  const int code = Find(&memory, arguments);
  INFO(LastWords());
  REQUIRE(code == REWIRE_DEVICE_OK);
  CHECK_FALSE(memory.temporary());
  std::vector<Region> regions;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Region& region = regions.emplace_back();
    region.object = memory.memory(i);
    const auto ask = [&](cl_mem_info what, std::size_t* size) {
      REQUIRE(Drivers().driver.clGetMemObjectInfo(region.object, what, sizeof(*size), size, nullptr) ==
              CL_SUCCESS);
    };
    ask(CL_MEM_OFFSET, &region.begin);
    ask(CL_MEM_SIZE, &region.bytes);
  }
  return regions;
}

std::string FailureOf(std::initializer_list<Argument> arguments) {
  LaunchMemory memory(Drivers());
  return Find(&memory, arguments) == REWIRE_DEVICE_OK ? "" : LastWords();
}

TEST_CASE("tensors of one buffer end where their bytes end, so that none overlaps another") {
  const std::uint64_t part = Drivers().devices[0].properties.part_alignment;
  const OneBuffer arena(16 * part);
  const std::vector<Region> regions =
      RegionsOf({{arena.at(0), 100}, {arena.at(2 * part), 2 * part}, {arena.at(4 * part), 4}});
  CHECK(regions[0].begin == 0);
  CHECK(regions[0].bytes == 100);
  CHECK(regions[1].begin == 2 * part);
  CHECK(regions[1].bytes == 2 * part);
  CHECK(regions[2].begin == 4 * part);
  CHECK(regions[2].bytes == 4);
  // The same ones again are the same objects; another size is another object.
  const std::vector<Region> again = RegionsOf({{arena.at(0), 100}, {arena.at(4 * part), 8}});
  CHECK(again[0].object == regions[0].object);
  CHECK(again[1].object != regions[2].object);
  CHECK(again[1].bytes == 8);
}

TEST_CASE("arguments that begin at one place share the object of the longest") {
  const std::uint64_t part = Drivers().devices[0].properties.part_alignment;
  const OneBuffer arena(16 * part);
  const std::vector<Region> regions = RegionsOf({{arena.at(part), 64}, {arena.at(part), 128}});
  CHECK(regions[0].object == regions[1].object);
  CHECK(regions[0].bytes == 128);
}

TEST_CASE("a buffer with one argument at its beginning, and of untold size, is taken whole") {
  const std::uint64_t part = Drivers().devices[0].properties.part_alignment;
  const OneBuffer arena(16 * part);
  const OneBuffer other(1024);
  const std::vector<Region> regions = RegionsOf({{arena.at(0), 64}, {other.at(0), 0}});
  CHECK(regions[0].begin == 0);
  CHECK(regions[0].bytes == 16 * part);
  CHECK(regions[1].bytes == 1024);
  CHECK(RegionsOf({{arena.at(part), 0}})[0].bytes == 15 * part);
  CHECK(RegionsOf({{arena.at(part), 64}})[0].bytes == 64);
}

TEST_CASE("an argument that reaches beyond its buffer, or begins at no part of it, is refused") {
  const std::uint64_t part = Drivers().devices[0].properties.part_alignment;
  const OneBuffer arena(4 * part);
  CHECK(FailureOf({{arena.at(3 * part), part + 1}}) ==
        "an argument of " + std::to_string(part + 1) + " bytes lies " + std::to_string(3 * part) +
            " bytes into its buffer of " + std::to_string(4 * part));
  CHECK(FailureOf({{arena.at(0), 4 * part + 1}}) != "");
  CHECK(FailureOf({{arena.at(4 * part), 0}}) != "");
  if (part > 1) CHECK(FailureOf({{arena.at(part + 1), 1}}) != "");
}

TEST_CASE("a buffer keeps 4,096 parts; further ones are of their launch alone") {
  const std::uint64_t part = Drivers().devices[0].properties.part_alignment;
  const OneBuffer arena(4200 * part);
  for (std::uint64_t i = 1; i <= 4097; ++i) {
    LaunchMemory memory(Drivers());
    REQUIRE(Find(&memory, {{arena.at(i * part), 4}}) == REWIRE_DEVICE_OK);
    CHECK(memory.temporary() == (i == 4097));
  }
}

}  // namespace
}  // namespace rewire::opencl

int main(int argc, char** argv) {
  std::string reason;
  if (!rewire::opencl::Drivers().Open(&reason)) {
    std::printf("skipped: %s\n", reason.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
