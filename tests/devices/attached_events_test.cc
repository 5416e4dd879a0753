// SPDX-License-Identifier: Apache-2.0
//
// Work on another stream that a stream's end includes (vm/kernel/stream_work.h).
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "rewire/tests/devices/test_device.h"
#include "rewire/vm/kernel/stream_work.h"

namespace rewire::test {
namespace {

// Work of another stream that is not done before Release, and the event behind it.
class HeldWork {
 public:
  explicit HeldWork(const TestDevice& device) : device_(device), api_(device.api) {
    REQUIRE(api_.make_stream(api_.context, device_.id, &stream_) == REWIRE_DEVICE_OK);
    REQUIRE(api_.make_event(api_.context, device_.id, &event_) == REWIRE_DEVICE_OK);
    REQUIRE(api_.call_host(api_.context, device_.id, stream_, Hold, this) == REWIRE_DEVICE_OK);
    REQUIRE(api_.record_event(api_.context, device_.id, event_, stream_) == REWIRE_DEVICE_OK);
  }
  ~HeldWork() {
    Release();
    api_.destroy_stream(api_.context, device_.id, stream_);
    api_.destroy_event(api_.context, device_.id, event_);
  }
  void Release() { released_ = true; }
  bool done() const { return done_; }
  void* event() const { return event_; }

 private:
  static void Hold(void* data) {
    auto* work = static_cast<HeldWork*>(data);
    while (!work->released_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work->done_ = true;
  }

  const TestDevice& device_;
  const RewireDeviceApi& api_;
  void* stream_ = nullptr;
  void* event_ = nullptr;
  std::atomic<bool> released_{false}, done_{false};
};

const RewireStreamWorkApi* WorkOf(const TestDevice& device) {
  const RewireStreamWorkApi* work = RewireStreamWorkOf(&device.api);
  if (work == nullptr) WARN("skipped: events cannot be attached to streams of " << device.api.name);
  return work;
}

bool IsDone(const TestDevice& device, void* event) {
  std::int32_t done = 0;
  REQUIRE(device.api.query_event(device.api.context, device.id, event, &done) == REWIRE_DEVICE_OK);
  return done != 0;
}

TEST_CASE("a stream's end includes the events that are attached to it, and its other work does not wait") {
  const TestDevice device;
  const RewireStreamWorkApi* work = WorkOf(device);
  if (work == nullptr) return;
  const RewireDeviceApi& api = device.api;
  HeldWork held(device);
  REQUIRE(work->attach_event(api.context, device.id, device.stream, held.event()) == REWIRE_DEVICE_OK);
  std::atomic<bool> own{false};
  const auto set = [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; };
  REQUIRE(api.call_host(api.context, device.id, device.stream, set, &own) == REWIRE_DEVICE_OK);
  while (!own) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(!held.done());

  void* end = nullptr;
  REQUIRE(api.make_event(api.context, device.id, &end) == REWIRE_DEVICE_OK);
  REQUIRE(api.record_event(api.context, device.id, end, device.stream) == REWIRE_DEVICE_OK);
  CHECK(!IsDone(device, end));
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.Release();
  });
  CHECK(api.synchronize(api.context, device.id, device.stream) == REWIRE_DEVICE_OK);
  CHECK(held.done());
  CHECK(IsDone(device, end));
  releases.join();
  CHECK(work->detach_event(api.context, device.id, device.stream, held.event()) == REWIRE_DEVICE_OK);
  CHECK(api.destroy_event(api.context, device.id, end) == REWIRE_DEVICE_OK);
}

TEST_CASE("a stream does not wait for an event that was detached, and ends with those that were not") {
  const TestDevice device;
  const RewireStreamWorkApi* work = WorkOf(device);
  if (work == nullptr) return;
  const RewireDeviceApi& api = device.api;
  HeldWork held(device), other(device);
  REQUIRE(work->attach_event(api.context, device.id, device.stream, held.event()) == REWIRE_DEVICE_OK);
  REQUIRE(work->detach_event(api.context, device.id, device.stream, held.event()) == REWIRE_DEVICE_OK);
  REQUIRE(work->detach_event(api.context, device.id, device.stream, other.event()) == REWIRE_DEVICE_OK);
  CHECK(api.synchronize(api.context, device.id, device.stream) == REWIRE_DEVICE_OK);
  CHECK(!held.done());

  void* stream = nullptr;
  REQUIRE(api.make_stream(api.context, device.id, &stream) == REWIRE_DEVICE_OK);
  REQUIRE(work->attach_event(api.context, device.id, stream, other.event()) == REWIRE_DEVICE_OK);
  std::thread releases([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    other.Release();
  });
  CHECK(api.destroy_stream(api.context, device.id, stream) == REWIRE_DEVICE_OK);
  CHECK(other.done());
  releases.join();
  CHECK(work->attach_event(api.context, device.id, stream, held.event()) == REWIRE_DEVICE_UNSUPPORTED);
  CHECK(work->detach_event(api.context, device.id, stream, other.event()) == REWIRE_DEVICE_OK);
}

}  // namespace
}  // namespace rewire::test
