// SPDX-License-Identifier: Apache-2.0
//
// A second device for tests, whose memory the host must not touch. Its pointers are addresses in a space of
// its own: reading one on the host would be a segmentation fault.
//
// Its work can be put off until somebody waits for it, as late as the interface allows. A program that relies
// on work that it has not waited for then gets wrong values. Memory that is freed too early is reported.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewire/vm/kernel/device_api.h"

namespace rewire::test {

class FakeDevice {
 public:
  explicit FakeDevice(DLDeviceType type = kDLExtDev, const char* name = "fake");
  ~FakeDevice();
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  struct Block {
    std::vector<unsigned char> bytes;
    std::string scope;
  };
  struct HostBlock {  // pinned
    std::unique_ptr<unsigned char, void (*)(void*)> memory{nullptr, nullptr};
    std::uint64_t bytes = 0;
  };
  struct Stream;
  struct Event {
    Stream* stream = nullptr;
    std::uint64_t position = 0;
  };
  // Work is done in order of its position.
  struct Stream {
    std::deque<std::function<bool()>> work;
    std::uint64_t given = 0;
    std::uint64_t done = 0;
    bool failed = false;
    bool recording = false;  // what is given goes to `recorded`
    std::vector<std::function<bool()>> recorded;
  };
  using Recording = std::vector<std::function<bool()>>;

  // The memory behind an address of this device, for the functions below and for kernels.
  unsigned char* Memory(const void* address, std::uint64_t bytes);
  // Gives work to a stream, as the driver would: now, or when somebody waits. `work` returns false to fail.
  int Give(void* stream, std::function<bool()> work);
  // From now on the device pins memory of the host.
  void PinHostMemory();
  bool RunTo(Stream* stream, std::uint64_t position);
  int Fail(const std::string& words, int code = REWIRE_DEVICE_FAILED);

  RewireDeviceApi api{};
  std::map<std::uintptr_t, Block> blocks;
  std::map<const void*, HostBlock> host_blocks;
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Event*, std::unique_ptr<Event>> events;
  std::map<Recording*, std::unique_ptr<Recording>> recordings;
  Stream default_stream;
  std::uintptr_t next = 4096;
  std::string words;
  int copies = 0;
  int waits = 0;
  int replays = 0;
  bool put_off = false;      // do work only when somebody waits
  bool full = false;         // no memory is left
  bool broken = false;       // copies fail when they are given
  bool breaks_late = false;  // copies fail when they are done
  bool lost = false;
  std::string misuse;  // the first access to memory that was not there
};

}  // namespace rewire::test
