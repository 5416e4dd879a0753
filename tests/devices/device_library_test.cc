// SPDX-License-Identifier: Apache-2.0
//
// Every library of devices must do this, called as the VM calls it.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/vm/devices.h"

namespace rewire::test {
namespace {

TEST_CASE("a device says what it is") {
  const TestDevice device;
  std::int32_t count = 0;
  REQUIRE(device.api.count(device.api.context, &count) == REWIRE_DEVICE_OK);
  CHECK(count >= 1);
  RewireDeviceProperties is{};
  is.struct_size = sizeof(is);
  REQUIRE(device.api.properties(device.api.context, 0, &is) == REWIRE_DEVICE_OK);
  CHECK(std::string(is.name) != "");
  CHECK(std::string(is.driver) != "");
  CHECK(std::string(is.architecture) != "");
  CHECK(is.memory_bytes > 1 << 20);
  CHECK(is.group_threads >= 64);
  CHECK(is.code_forms != 0);
  for (const std::int32_t none : {count, -1}) {
    CHECK(device.api.properties(device.api.context, none, &is) == REWIRE_DEVICE_FAILED);
    CHECK_THAT(device.api.error(device.api.context),
               Catch::Matches("there is no (CUDA|OpenCL) device " + std::to_string(none) + "; there are " +
                              std::to_string(count)));
  }
}

TEST_CASE("memory goes there and back, whole, in parts and filled") {
  const TestDevice device;
  const std::vector<float> values = Ramp(1000);
  DeviceMemory first(device, 4000);
  DeviceMemory second(device, 4000);
  REQUIRE(device.Copy(first.at(0), values.data(), 4000));
  REQUIRE(device.Within(second.at(400), first.at(800), 2000));
  std::vector<float> back(1000);
  REQUIRE(device.Back(back.data() + 100, second.at(400), 2000));
  REQUIRE(device.Wait());
  CHECK(back[100] == 201.0f);
  CHECK(back[599] == 700.0f);
  const std::uint32_t pattern = 0x3F800000;  // 1.0f
  REQUIRE(device.api.fill(device.api.context, device.id, first.at(4), 8, &pattern, 4, device.stream) ==
          REWIRE_DEVICE_OK);
  REQUIRE(device.Back(back.data(), first.at(0), 4000));
  REQUIRE(device.Wait());
  CHECK(std::vector<float>(back.begin(), back.begin() + 4) == std::vector<float>{1, 1, 1, 4});
}

TEST_CASE("live blocks never overlap, whatever was allocated and freed before") {
  const TestDevice device;
  std::mt19937 random(1);
  struct Live {
    std::unique_ptr<DeviceMemory> memory;
    std::uint64_t bytes = 0;
    std::uint32_t mark = 0;
  };
  std::vector<Live> blocks;
  for (std::uint32_t step = 1; step <= 120; ++step) {
    if (!blocks.empty() && random() % 3 == 0) {
      // The block that goes still has what was put into it.
      std::swap(blocks[random() % blocks.size()], blocks.back());
      std::vector<std::uint32_t> back(blocks.back().bytes / 4);
      REQUIRE(device.Back(back.data(), blocks.back().memory->at(0), blocks.back().bytes));
      REQUIRE(device.Wait());
      CHECK(std::count(back.begin(), back.end(), blocks.back().mark) == std::ssize(back));
      blocks.pop_back();
      continue;
    }
    Live made;
    made.bytes = 4 * (1 + random() % 3000);
    made.mark = step;
    made.memory = std::make_unique<DeviceMemory>(device, made.bytes);
    REQUIRE(device.api.fill(device.api.context, device.id, made.memory->at(0), made.bytes, &made.mark, 4,
                            device.stream) == REWIRE_DEVICE_OK);
    const auto begin = reinterpret_cast<std::uintptr_t>(made.memory->at(0));
    for (const Live& other : blocks) {
      const auto at = reinterpret_cast<std::uintptr_t>(other.memory->at(0));
      CHECK((begin + made.bytes <= at || at + other.bytes <= begin));
    }
    blocks.push_back(std::move(made));
  }
  CHECK(blocks.size() > 10);
}

TEST_CASE("the words of a failure stay while other threads call and fail") {
  const TestDevice device;
  RewireDeviceProperties is{};
  is.struct_size = sizeof(is);
  REQUIRE(device.api.properties(device.api.context, 4000, &is) != REWIRE_DEVICE_OK);
  const char* const words = device.api.error(device.api.context);
  const std::string before = words;
  CHECK(before != "");
  std::thread([&] {
    RewireDeviceProperties others{};
    others.struct_size = sizeof(others);
    void* module = nullptr;
    for (int i = 0; i < 20; ++i) {
      device.api.properties(device.api.context, 5000 + i, &others);
      device.Load("no kernel of any language", nullptr, &module);
    }
  }).join();
  CHECK(words == before);
  CHECK(device.api.error(device.api.context) == before);
}

TEST_CASE("pinned memory of the host is copied from and to") {
  const TestDevice device;
  void* pinned = nullptr;
  REQUIRE(device.api.allocate_host(device.api.context, device.id, 64, &pinned) == REWIRE_DEVICE_OK);
  std::memset(pinned, 7, 64);
  DeviceMemory memory(device, 64);
  REQUIRE(device.Copy(memory.at(0), pinned, 64));
  REQUIRE(device.Wait());
  std::memset(pinned, 0, 64);
  REQUIRE(device.Back(pinned, memory.at(0), 64));
  REQUIRE(device.Wait());
  CHECK(static_cast<unsigned char*>(pinned)[63] == 7);
  CHECK(device.api.deallocate_host(device.api.context, device.id, pinned) == REWIRE_DEVICE_OK);
}

TEST_CASE("kernels run in their stream's order, on whole blocks and on parts of them") {
  const TestDevice device;
  const DeviceModule module(device, kTestKernels);
  const std::vector<float> values = Ramp(256);
  const std::uint64_t part = std::max<std::uint64_t>(device.properties().part_alignment, 4);
  DeviceMemory x(device, 1024);
  DeviceMemory y(device, part + 1024);
  DeviceMemory sums(device, 16);
  REQUIRE(device.Copy(x.at(0), values.data(), 1024));
  REQUIRE(module.Launch("scale", 4, 64, x.at(0), y.at(part), 2.0f, 256));
  REQUIRE(module.Launch("group_sums", 4, 64, y.at(part), sums.at(0)));
  std::vector<float> back(4);
  REQUIRE(device.Back(back.data(), sums.at(0), 16));
  REQUIRE(device.Wait());
  CHECK(back == std::vector<float>{4160, 12352, 20544, 28736});
}

// Kernel objects are kept with their arguments.
TEST_CASE("launches with the same arguments find new memory that took an old block's address") {
  const TestDevice device;
  const DeviceModule module(device, kTestKernels);
  const std::vector<float> values = Ramp(256);
  DeviceMemory x(device, 1024);
  REQUIRE(device.Copy(x.at(0), values.data(), 1024));
  void* before = nullptr;
  int same = 0;
  for (int i = 0; i < 4; ++i) {
    DeviceMemory y(device, 1024);
    same += y.at(0) == before ? 1 : 0;
    before = y.at(0);
    std::vector<float> back(256);
    REQUIRE(module.Launch("scale", 4, 64, x.at(0), y.at(0), 3.0f, 256));
    REQUIRE(device.Back(back.data(), y.at(0), 1024));
    REQUIRE(device.Wait());
    CHECK(back[255] == 768.0f);
  }
  if (DeviceName() == "opencl") CHECK(same > 0);  // the case that is meant
}

TEST_CASE("an event lets another stream wait") {
  const TestDevice device;
  const TestDevice other;
  const DeviceModule module(device, kTestKernels);
  void* event = nullptr;
  REQUIRE(device.api.make_event(device.api.context, device.id, &event) == REWIRE_DEVICE_OK);
  DeviceMemory a(device, 1 << 20);
  DeviceMemory b(device, 1 << 20);
  std::vector<float> values(1 << 18, 1.0f);
  for (int round = 0; round < 8; ++round) {
    REQUIRE(device.Copy(a.at(0), values.data(), 1 << 20));
    for (int i = 0; i < 10; ++i) {
      REQUIRE(module.Launch("scale", 1 << 12, 64, a.at(0), b.at(0), 2.0f, 1 << 18));
      REQUIRE(module.Launch("scale", 1 << 12, 64, b.at(0), a.at(0), 0.5f, 1 << 18));
    }
    REQUIRE(module.Launch("scale", 1 << 12, 64, a.at(0), b.at(0), 3.0f + static_cast<float>(round), 1 << 18));
    REQUIRE(device.api.record_event(device.api.context, device.id, event, device.stream) == REWIRE_DEVICE_OK);
    REQUIRE(device.api.wait_event(device.api.context, device.id, other.stream, event) == REWIRE_DEVICE_OK);
    float last = 0;
    REQUIRE(other.Back(&last, b.at((1 << 20) - 4), 4));
    REQUIRE(other.Wait());
    CHECK(last == 3.0f + static_cast<float>(round));
    std::int32_t done = 0;
    REQUIRE(device.api.query_event(device.api.context, device.id, event, &done) == REWIRE_DEVICE_OK);
    CHECK(done == 1);
    REQUIRE(device.api.synchronize_event(device.api.context, device.id, event) == REWIRE_DEVICE_OK);
  }
  CHECK(device.api.destroy_event(device.api.context, device.id, event) == REWIRE_DEVICE_OK);
}

TEST_CASE("what is recorded is not done, and each replay does it with the memory's new contents") {
  const TestDevice device;
  if (device.properties().records == 0) return;  // an optional group
  const RewireDeviceApi& api = device.api;
  const DeviceModule module(device, kTestKernels);
  DeviceMemory x(device, 1024);
  DeviceMemory y(device, 1024);
  DeviceMemory sums(device, 32);
  std::vector<float> values(256, 1.0f);
  std::vector<float> back(8, -1.0f);
  // Kernels in order, a fill and a copy on the device, and copies from and to the host.
  const auto work = [&] {
    const float filled = 5.0f;
    return device.Copy(x.at(0), values.data(), 1024) &&
           module.Launch("scale", 4, 64, x.at(0), y.at(0), 3.0f, 256) &&
           module.Launch("group_sums", 4, 64, y.at(0), sums.at(0)) &&
           device.Within(sums.at(16), sums.at(0), 12) &&
           api.fill(api.context, device.id, sums.at(28), 4, &filled, 4, device.stream) == REWIRE_DEVICE_OK &&
           device.Back(back.data(), sums.at(0), 32);
  };
  REQUIRE(work());  // compiles what the kernels need
  REQUIRE(device.Wait());
  CHECK(back == std::vector<float>{192, 192, 192, 192, 192, 192, 192, 5});
  std::fill(back.begin(), back.end(), -1.0f);
  REQUIRE(api.begin_recording(api.context, device.id, device.stream) == REWIRE_DEVICE_OK);
  CHECK(api.begin_recording(api.context, device.id, device.stream) != REWIRE_DEVICE_OK);
  REQUIRE(work());
  void* recording = nullptr;
  REQUIRE(api.end_recording(api.context, device.id, device.stream, &recording) == REWIRE_DEVICE_OK);
  REQUIRE(device.Wait());
  CHECK(back == std::vector<float>(8, -1.0f));
  for (int i = 1; i <= 3; ++i) {
    std::fill(values.begin(), values.end(), static_cast<float>(i));
    REQUIRE(api.replay(api.context, device.id, recording, device.stream) == REWIRE_DEVICE_OK);
    REQUIRE(device.Wait());
    const float sum = 192.0f * static_cast<float>(i);
    CHECK(back == std::vector<float>{sum, sum, sum, sum, sum, sum, sum, 5});
  }
  // Replays need not wait for each other.
  for (int i = 0; i < 20; ++i) {
    REQUIRE(api.replay(api.context, device.id, recording, device.stream) == REWIRE_DEVICE_OK);
  }
  REQUIRE(device.Wait());
  CHECK(api.destroy_recording(api.context, device.id, recording) == REWIRE_DEVICE_OK);
}

TEST_CASE("the host is called after the stream's earlier work") {
  const TestDevice device;
  DeviceMemory memory(device, 4);
  float value = 0;
  const float five = 5;
  struct Call {
    float* value;
    std::atomic<float> seen{0};
  } call{&value};
  REQUIRE(device.Copy(memory.at(0), &five, 4));
  REQUIRE(device.Back(&value, memory.at(0), 4));
  REQUIRE(device.api.call_host(
              device.api.context, device.id, device.stream,
              [](void* data) { static_cast<Call*>(data)->seen = *static_cast<Call*>(data)->value; },
              &call) == REWIRE_DEVICE_OK);
  REQUIRE(device.Wait());
  for (int i = 0; i < 2000 && call.seen == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(call.seen == 5.0f);
}

TEST_CASE("what takes a stream returns at once, whatever the stream still has to do") {
  // OpenCL's host functions hold nothing up, and PoCL calls them at once.
  if (DeviceName() == "opencl") return;
  const TestDevice device;
  const RewireDeviceApi& api = device.api;
  const DeviceModule module(device, kTestKernels);
  DeviceMemory a(device, 64), b(device, 64);
  void* event = nullptr;
  REQUIRE(api.make_event(api.context, device.id, &event) == REWIRE_DEVICE_OK);
  struct Gate {
    std::atomic<bool> open{false}, waited_for_nothing{false};
    static void Wait(void* data) {
      auto* gate = static_cast<Gate*>(data);
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!gate->open && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      gate->waited_for_nothing = !gate->open;
    }
  } gate;
  REQUIRE(api.call_host(api.context, device.id, device.stream, &Gate::Wait, &gate) == REWIRE_DEVICE_OK);
  const float one = 1;
  REQUIRE(api.fill(api.context, device.id, a.at(0), 64, &one, 4, device.stream) == REWIRE_DEVICE_OK);
  REQUIRE(device.Within(b.at(0), a.at(0), 64));
  REQUIRE(module.Launch("scale", 1, 16, b.at(0), a.at(0), 2.0f, 16));
  REQUIRE(api.record_event(api.context, device.id, event, device.stream) == REWIRE_DEVICE_OK);
  REQUIRE(api.wait_event(api.context, device.id, device.stream, event) == REWIRE_DEVICE_OK);
  CHECK_FALSE(gate.waited_for_nothing);  // all of them came back before it was opened
  gate.open = true;
  std::vector<float> back(16);
  REQUIRE(device.Back(back.data(), a.at(0), 64));
  REQUIRE(device.Wait());
  CHECK(back == std::vector<float>(16, 2.0f));
  CHECK(api.destroy_event(api.context, device.id, event) == REWIRE_DEVICE_OK);
}

TEST_CASE("failures name the driver's function or what is wrong") {
  const TestDevice device;
  const auto words = [&] { return std::string(device.api.error(device.api.context)); };
  void* module = nullptr;
  const std::string broken = device.Source("KERNEL(a)(GLOBAL float* x) { x[0] = unknown_name; }");
  CHECK(device.Load(broken, nullptr, &module) != REWIRE_DEVICE_OK);
  CHECK(words().find("unknown_name") != std::string::npos);
  for (const std::uint32_t form : {0u, 30u, 40u, ~0u}) {
    CHECK(device.api.load_module(device.api.context, device.id, form, "x", 1, "", nullptr, &module) ==
          REWIRE_DEVICE_UNSUPPORTED);
  }
  const DeviceModule right(device, kTestKernels);
  void* kernel = nullptr;
  CHECK(device.api.find_kernel(device.api.context, device.id, right.module, "sclae", &kernel) !=
        REWIRE_DEVICE_OK);
  CHECK(words().find("sclae") != std::string::npos);
  void* block = nullptr;
  CHECK(device.api.allocate(device.api.context, device.id, std::uint64_t{1} << 50, 64, "", device.stream,
                            &block) == REWIRE_DEVICE_NO_MEMORY);
  CHECK(words() != "");
  CHECK(device.api.allocate(device.api.context, device.id, 64, 64, "no such scope", device.stream, &block) ==
        REWIRE_DEVICE_UNSUPPORTED);
  CHECK(words().find("no such scope") != std::string::npos);
}

TEST_CASE("several threads use one module, each with its stream") {
  const TestDevice device;
  const DeviceModule module(device, kTestKernels);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const TestDevice own;
      DeviceMemory x(own, 1024);
      DeviceMemory y(own, 1024);
      const std::vector<float> values = Ramp(256);
      std::vector<float> back(256);
      for (int i = 1; i <= 25; ++i) {
        const float factor = static_cast<float>(i * 10 + t);
        if (!own.Copy(x.at(0), values.data(), 1024) ||
            !module.LaunchOn(own.stream, "scale", 4, 64, x.at(0), y.at(0), factor, 256) ||
            !own.Back(back.data(), y.at(0), 1024) || !own.Wait() || back[255] != 256 * factor) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("compiled code is kept in a folder, and a damaged file does no harm") {
  const TestDevice device;
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("rewire_device_cache_" + std::to_string(getpid()));
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);
  const std::string source = device.Source(kTestKernels);
  const auto load_and_run = [&] {
    void* module = nullptr;
    REQUIRE(device.Load(source, folder.c_str(), &module) == REWIRE_DEVICE_OK);
    void* kernel = nullptr;
    CHECK(device.api.find_kernel(device.api.context, device.id, module, "scale", &kernel) ==
          REWIRE_DEVICE_OK);
    CHECK(device.api.unload_module(device.api.context, device.id, module) == REWIRE_DEVICE_OK);
  };
  load_and_run();
  REQUIRE(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  const fs::path file = fs::directory_iterator(folder)->path();
  const auto written = fs::last_write_time(file);
  load_and_run();
  CHECK(fs::last_write_time(file) == written);
  fs::resize_file(file, fs::file_size(file) / 2);
  load_and_run();
  std::ofstream(file) << "not a binary";
  load_and_run();
  CHECK(fs::file_size(file) > 1000);
  // A file that others can write is neither used nor replaced.
  std::ofstream(file) << "not a binary";
  fs::permissions(folder, fs::perms::others_write, fs::perm_options::add);
  load_and_run();
  CHECK(fs::file_size(file) < 1000);
  fs::remove_all(folder);
}

TEST_CASE("handles of the driver's have one address, which gives them back") {
  const TestDevice device;
  if ((device.api.flags & REWIRE_DEVICE_HANDLES) == 0) return;
  DeviceMemory memory(device, 256);
  void* handle = nullptr;
  std::uint64_t offset = 1;
  REQUIRE(device.api.find_handle(device.api.context, device.id, memory.at(128), &handle, &offset) ==
          REWIRE_DEVICE_OK);
  CHECK(offset == 128);
  void* imported = nullptr;
  void* again = nullptr;
  REQUIRE(device.api.import_handle(device.api.context, device.id, handle, 256, &imported) ==
          REWIRE_DEVICE_OK);
  REQUIRE(device.api.import_handle(device.api.context, device.id, handle, 16, &again) == REWIRE_DEVICE_OK);
  CHECK(imported == again);
  CHECK(device.api.import_handle(device.api.context, device.id, handle, 257, &again) != REWIRE_DEVICE_OK);
  const std::vector<float> values = Ramp(64);
  REQUIRE(device.Copy(imported, values.data(), 256));
  float last = 0;
  REQUIRE(device.Back(&last, memory.at(252), 4));
  REQUIRE(device.Wait());
  CHECK(last == 64.0f);
  CHECK(device.api.release_handle(device.api.context, device.id, imported) == REWIRE_DEVICE_OK);
  CHECK(device.api.release_handle(device.api.context, device.id, imported) == REWIRE_DEVICE_OK);
  CHECK(device.api.release_handle(device.api.context, device.id, imported) != REWIRE_DEVICE_OK);
}

}  // namespace
}  // namespace rewire::test
