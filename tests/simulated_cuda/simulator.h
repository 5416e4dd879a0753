// SPDX-License-Identifier: Apache-2.0
// The state of the simulated CUDA driver: devices, timelines that run work on threads, handles. One mutex
// guards all of it but the work itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "rewire/devices/cuda/driver_functions.h"
#include "rewire/tests/simulated_cuda/control.h"
#include "rewire/tests/simulated_cuda/device_memory.h"
#include "rewire/tests/simulated_cuda/order.h"

namespace rewire::simulated_cuda {

using namespace rewire::cuda;  // NOLINT(google-build-using-namespace): the driver's types, which this
                               // implements

struct Device;

// The work that a stream is asked to do, before it has a place in an order. Graphs keep it, streams run it.
struct Work {
  char kind = 0;  // as in LogEntry; 0 for what takes no time
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<MemoryUse> uses;
  // Work of other streams that the host forgot to wait for. The simulator reports that and waits by itself:
  // a program that uses it wrongly makes no data race in the simulator.
  std::vector<Moment> missed;
  std::function<CUresult()> run;  // may be empty
  CUfunction function = nullptr;  // of a launch
};

// Work that waits on a timeline.
struct Queued {
  std::uint64_t number = 0;
  std::vector<Moment> after;
  Device* device = nullptr;
  std::function<CUresult()> run;
  char kind = 0;
  std::uint64_t duration = 0;
  Clock clock;
};

// A queue of work and the thread that runs it. A stream has one; it is used again once the stream is gone.
struct Timeline {
  std::uint32_t index = 0;
  std::deque<Queued> queue;
  std::uint64_t last = 0;  // number of the last work that was enqueued
  std::uint64_t done = 0;  // and of the last that has run
  Clock clock;             // what comes before the next work
  std::uint64_t end = 0;   // virtual time at which the last work ends
  std::condition_variable wake;
  std::thread thread;

  Moment now() const { return {index, last}; }
};

struct Graph {
  struct Node {
    Work work;
    std::vector<std::size_t> after;
  };
  std::deque<Node> nodes;  // addresses are the handles, so they stay
  int device = 0;
  std::vector<std::uint64_t> allocations;  // made in the capture; live as long as the graph
};

struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  bool invalid = false;
};

struct Stream {
  Device* device = nullptr;
  Timeline* timeline = nullptr;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> capture_last;  // nodes that the next captured one comes after
  bool is_blocking() const { return (flags & kStreamNonBlocking) == 0; }
};

struct Event {
  unsigned flags = 0;
  Device* device = nullptr;
  bool recorded = false;
  Moment moment;
  Clock clock;
  std::uint64_t time = 0;
  std::shared_ptr<Capture> capture;  // when it was last recorded in one
  std::vector<std::size_t> capture_last;
};

struct Context {
  Device* device = nullptr;
};

struct Device {
  explicit Device(int ordinal, std::size_t capacity) : index(ordinal), memory(ordinal, capacity) {}
  int index;
  DeviceMemory memory;
  int major = 9, minor = 0;
  unsigned retained = 0;
  Context context;
  std::set<int> peers;           // devices whose memory its kernels may use
  CUresult lost = CUDA_SUCCESS;  // sticky
  std::uint64_t pool_threshold = 0;
  std::uint64_t busy_until[3] = {0, 0, 0};  // virtual time: kernels, copies in, copies out
  Stream legacy;
  std::map<std::thread::id, Stream> per_thread;
};

struct HostRange {
  std::size_t bytes = 0;
  bool allocated = false;  // by cuMemHostAlloc; else registered
};

struct Costs {
  std::uint64_t launch = 2000, copy = 1000;
  double copy_per_byte = 0.04, real_time = 0;
  std::uint64_t delay_seed = 0, most_delay = 0;
};

struct Module;

class Simulator {
 public:
  // Made by the first call, never destroyed: threads of streams may outlive main().
  static Simulator& The();

  std::mutex mutex;

  bool initialized = false;
  std::vector<std::unique_ptr<Device>> devices;
  std::unordered_map<CUstream, std::unique_ptr<Stream>> streams;
  std::unordered_map<CUevent, std::unique_ptr<Event>> events;
  std::unordered_map<CUmodule, std::shared_ptr<Module>> modules;
  std::unordered_map<CUfunction, Module*> functions;
  std::unordered_map<CUgraph, std::shared_ptr<Graph>> graphs;
  std::unordered_map<CUgraphExec, std::shared_ptr<Graph>> graph_execs;
  std::map<std::uint64_t, HostRange> host_ranges;
  std::map<std::uint64_t, std::size_t> module_globals;  // addresses of variables of modules
  std::uint64_t executables_made = 0;
  std::set<Capture*> captures;

  Costs costs;
  Counters since;  // its counters "since the last Reset"
  std::map<std::string, std::uint64_t, std::less<>> calls;
  bool log_on = false;
  std::vector<LogEntry> log;
  std::deque<std::string> violations;
  struct Failure {
    std::string function;
    std::uint64_t left;
    CUresult code;
  };
  std::list<Failure> call_failures, work_failures;

  // The functions below expect the mutex to be held.

  void Violation(std::string text);
  // The failure that a test wants of this call or work, or success.
  static CUresult Injected(std::list<Failure>* failures, std::string_view what);

  // Null if the handle is none. The default streams are those of `device`, or of the calling thread on it.
  Stream* FindStream(CUstream handle, Device* device);
  Timeline* NewTimeline();
  void EndTimeline(Timeline* timeline);

  // Puts work behind what the stream has, or into its capture.
  CUresult Enqueue(Stream* stream, Work work);
  CUresult LaunchGraph(Stream* stream, const std::shared_ptr<Graph>& graph);
  // Orders the stream's next work behind a moment.
  void OrderAfter(Stream* stream, Moment moment, const Clock& clock, std::uint64_t time);
  void RecordEvent(Event* event, Stream* stream);

  bool IsDone(Moment moment) const { return timelines_[moment.timeline]->done >= moment.number; }
  // The host waits for a moment, and then knows all that comes before it.
  void Wait(std::unique_lock<std::mutex>* lock, Moment moment, const Clock& clock, std::uint64_t time);
  void WaitForStream(std::unique_lock<std::mutex>* lock, const Stream& stream);
  void WaitForDevice(std::unique_lock<std::mutex>* lock, Device* device);
  void HostKnows(const Clock& clock, std::uint64_t time);
  const Clock& host_clock() const { return host_clock_; }
  std::uint64_t host_time() const { return host_time_; }

  // The device whose memory an address is in, or null; whether it is in pinned host memory.
  Device* DeviceOf(std::uint64_t address);
  bool IsPinned(std::uint64_t address, std::size_t bytes) const;
  // Whether an address is of a variable of a module: such lie in host memory, and host code can read them.
  bool IsModuleGlobal(std::uint64_t address) const;
  // The address at which the bytes can be touched: device memory is elsewhere, host memory is itself.
  void* Touchable(std::uint64_t address);

  void Reset();

 private:
  Simulator();
  void Run(Timeline* timeline);
  CUresult RunOne(const Queued& work);
  CUresult CheckUses(Work* work, Moment moment, const Clock& clock);
  std::uint64_t Place(Device& device, const Work& work, std::uint64_t ready, std::uint32_t stream);
  std::uint64_t Duration(const Work& work) const;
  std::uint64_t Delay(Moment moment) const;

  std::vector<std::unique_ptr<Timeline>> timelines_;
  std::vector<Timeline*> idle_timelines_;
  std::condition_variable progress_;  // some work has run
  Clock host_clock_;
  std::uint64_t host_time_ = 0;
};

// The stack of contexts of the calling thread, and whether it runs a host function.
// The contexts that a thread has made current, the last one first. It needs no destructor: calls from the
// destructors of global objects come after a thread's own objects have ended.
class ContextStack {
 public:
  CUcontext top() const { return count_ == 0 ? nullptr : contexts_[count_ - 1]; }
  bool empty() const { return count_ == 0; }
  void Pop() { --count_; }
  // False if there is no room.
  bool Push(CUcontext context) {
    if (count_ == kMost) return false;
    contexts_[count_++] = context;
    return true;
  }

 private:
  static constexpr std::size_t kMost = 256;
  CUcontext contexts_[kMost] = {};
  std::size_t count_ = 0;
};

struct ThreadState {
  ContextStack contexts;
  bool in_host_function = false;
};
ThreadState& CurrentThread();

// One call of a driver function: takes the mutex, counts, and says why the call cannot go on.
class Call {
 public:
  enum Kind { kUsual, kWithoutContext, kRelease };
  explicit Call(std::string_view function, Kind kind = kUsual);

  // A release goes on although it fails: what it releases is released.
  bool Fails() const { return result_ != CUDA_SUCCESS && kind_ != kRelease; }
  CUresult result() const { return result_; }
  // The result that the function returns: a failure known from the start, else this.
  CUresult Returns(CUresult result) const { return result_ != CUDA_SUCCESS ? result_ : result; }
  Device* device() const { return device_; }
  Simulator& simulator() const { return simulator_; }
  std::unique_lock<std::mutex>* lock() { return &lock_; }
  Stream* FindStream(CUstream handle) const { return simulator_.FindStream(handle, device_); }
  // Functions that a capture does not allow, of this thread or in the global mode: invalidates it.
  bool ForbiddenByCapture() const;

 private:
  Simulator& simulator_;
  std::unique_lock<std::mutex> lock_;
  Kind kind_;
  Device* device_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace rewire::simulated_cuda

#define REWIRE_SIMULATED_EXPORT extern "C" __attribute__((visibility("default")))
