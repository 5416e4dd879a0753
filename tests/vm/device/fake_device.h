// SPDX-License-Identifier: Apache-2.0
//
// A second device for tests, whose memory the host must not touch. Its pointers are addresses in a space of
// its own: reading one on the host would be a segmentation fault.
//
// Its work can be put off until somebody waits for it, as late as the interface allows. A program that relies
// on work that it has not waited for then gets wrong values. Memory that is freed too early is reported. Any
// call and any piece of work can be made to fail.
#pragma once

#include <array>
#include <cstddef>
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

  // The kind of a call, or of a piece of work.
  enum Kind : std::uint8_t { kCopies, kKernels, kAllocations, kFrees, kWaits, kEvents, kRecords, kReplays };
  static constexpr std::size_t kKinds = 8;
  struct Work {
    Kind kind = kKernels;
    std::function<bool()> run;
  };
  struct Block {
    unsigned char* data = nullptr;
    std::uint64_t bytes = 0;
    std::string scope;
    std::unique_ptr<unsigned char, void (*)(void*)> memory{nullptr, nullptr};
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
    std::deque<Work> work;
    std::uint64_t given = 0;
    std::uint64_t done = 0;
    bool failed = false;
    bool recording = false;  // what is given goes to `recorded`
    std::vector<Work> recorded;
  };
  using Recording = std::vector<Work>;

  // The memory behind an address of this device, for the functions below and for kernels.
  unsigned char* Memory(const void* address, std::uint64_t bytes);
  // Gives work to a stream, as the driver would: now, or when somebody waits. `work` returns false to fail.
  int Give(void* stream, std::function<bool()> work, Kind kind = kKernels);
  // The k-th call of this kind from now on fails at once, k from 1. 0: none does. Frees free all the same.
  void FailCall(Kind kind, std::uint64_t k) { call_fails_[kind] = k; }
  // The k-th piece of work of this kind fails when it is done.
  void FailWork(Kind kind, std::uint64_t k) { work_fails_[kind] = k; }
  // No call and no work fails any more.
  void FailNothing();
  // Pieces of work that are not done yet, and whether any of it uses memory.
  std::size_t Pending() const;
  bool Works() const;
  // Does all of it.
  void Finish();
  // From now on its memory is the host's, and each side may use it.
  void ShareMemory();
  void Enqueue(Stream* stream, Work work);
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
  int records = 0;             // recordings that were begun
  std::uint64_t failures = 0;  // that FailCall and FailWork have made
  bool put_off = false;        // do work only when somebody waits
  bool full = false;           // no memory is left
  bool broken = false;         // copies fail when they are given
  bool breaks_late = false;    // copies fail when they are done
  bool lost = false;
  std::function<void()> at_call;  // called by each call that may fail
  std::function<void()> at_wait;  // called while somebody waits
  std::string misuse;             // the first access to memory that was not there

  // Whether the call that is being made is to fail.
  bool Fails(Kind kind) {
    if (at_call) at_call();
    return Hits(&call_fails_[kind]);
  }

 private:
  bool Hits(std::uint64_t* left) {
    if (*left == 0 || --*left != 0) return false;
    ++failures;
    return true;
  }

  std::array<std::uint64_t, kKinds> call_fails_{};
  std::array<std::uint64_t, kKinds> work_fails_{};
};

}  // namespace rewire::test
