// SPDX-License-Identifier: Apache-2.0
// One fiber runs thread after thread of a block, until one of them waits. Only then the next fiber goes on
// with the rest. So a kernel without barriers is a plain loop.
#include "rewire/tests/simulated_cuda/block_runner.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "rewire/tests/simulated_cuda/faults.h"
#include "rewire/tests/simulated_cuda/fiber.h"
#include "rewire/tests/simulated_cuda/simulator.h"

namespace rewire::simulated_cuda {
namespace {

// Fibers that no block uses, of all threads. Making one takes several calls to the machine.
class FiberPool {
 public:
  static FiberPool& The() {
    static auto* pool = new FiberPool;
    return *pool;
  }
  std::unique_ptr<Fiber> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Fiber> fiber = std::move(idle_.back());
        idle_.pop_back();
        return fiber;
      }
    }
    return std::make_unique<Fiber>();
  }
  void Give(std::unique_ptr<Fiber> fiber) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(fiber));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Fiber>> idle_;
};

enum class State : char { kNotBegun, kRunning, kReady, kAtBarrier, kAtExchange, kEnded };

struct CudaThread {
  State state = State::kNotBegun;
  Fiber* fiber = nullptr;
  SimulatedDim index = {};
  unsigned mask = 0;        // of an exchange
  std::uint64_t value = 0;  // of an exchange, or the predicate of a barrier
};

class BlockRunner {
 public:
  BlockRunner(const SimulatedImage& image, const SimulatedKernel& kernel, const LaunchShape& shape,
              void** arguments);
  KernelEnd RunBlock(SimulatedDim block);
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

 private:
  static thread_local BlockRunner* current_;

  // A thread of the kernel calls this.
  static int Barrier(int predicate);
  static void Exchange(unsigned mask, std::uint64_t value, std::uint64_t* lanes);
  static unsigned LiveLanes();
  static void Trap();
  static void Fault();
  static std::uint64_t AddressForHost(const void* pointer);
  static constexpr SimulatedServices kServices = {Barrier, Exchange, LiveLanes, Trap, AddressForHost};

  static void RunThreads(void* runner);
  void Suspend(State state);
  void EnterFiber(Fiber* fiber);
  bool Proceed();
  bool CompleteExchange(std::size_t warp);
  std::size_t LanesOf(std::size_t warp) const {
    return std::min<std::size_t>(kSimulatedWarp, threads_.size() - warp * kSimulatedWarp);
  }

  const SimulatedKernel& kernel_;
  void** arguments_;
  SimulatedThread* self_;
  std::vector<CudaThread> threads_;
  std::vector<std::uint64_t> results_;  // of exchanges, for each thread
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::byte> dynamic_shared_;
  std::size_t running_ = 0, begun_ = 0, ended_ = 0;
  Fiber* running_fiber_ = nullptr;
  bool fiber_is_free_ = false;
  int barrier_count_ = 0;
  KernelEnd end_ = KernelEnd::kDone;
};

thread_local BlockRunner* BlockRunner::current_ = nullptr;

BlockRunner::BlockRunner(const SimulatedImage& image, const SimulatedKernel& kernel, const LaunchShape& shape,
                         void** arguments)
    : kernel_(kernel),
      arguments_(arguments),
      self_(image.thread()),
      dynamic_shared_(shape.dynamic_shared + 128) {
  const std::size_t count = std::size_t{shape.block.x} * shape.block.y * shape.block.z;
  threads_.resize(count);
  results_.resize(count);
  std::size_t at = 0;
  for (unsigned z = 0; z < shape.block.z; ++z)
    for (unsigned y = 0; y < shape.block.y; ++y)
      for (unsigned x = 0; x < shape.block.x; ++x) threads_[at++].index = {x, y, z};
  self_->block_dim = shape.block;
  self_->grid_dim = shape.grid;
  const auto address = reinterpret_cast<std::uintptr_t>(dynamic_shared_.data());
  self_->dynamic_shared = dynamic_shared_.data() + (128 - address % 128) % 128;
  self_->services = &kServices;
  current_ = this;
  WatchFaults();
}

BlockRunner::~BlockRunner() {
  current_ = nullptr;
  CatchFaultsOnThisThread(nullptr);
  for (auto& fiber : fibers_) FiberPool::The().Give(std::move(fiber));
}

// The body of each fiber: threads that have not begun, one after another.
void BlockRunner::RunThreads(void* runner) {
  auto& block = *static_cast<BlockRunner*>(runner);
  for (;;) {
    while (block.begun_ < block.threads_.size()) {
      const std::size_t mine = block.begun_++;
      block.running_ = mine;
      CudaThread& thread = block.threads_[mine];
      thread.state = State::kRunning;
      thread.fiber = block.running_fiber_;
      block.self_->thread_index = thread.index;
      block.kernel_.call(block.arguments_);
      thread.state = State::kEnded;
      ++block.ended_;
    }
    block.fiber_is_free_ = true;
    block.running_fiber_->Leave();
  }
}

void BlockRunner::EnterFiber(Fiber* fiber) {
  running_fiber_ = fiber;
  fiber_is_free_ = false;
  fiber->Enter();
}

void BlockRunner::Suspend(State state) {
  const std::size_t mine = running_;
  threads_[mine].state = state;
  running_fiber_->Leave();
  // Somebody has entered this fiber again, for this thread.
}

int BlockRunner::Barrier(int predicate) {
  BlockRunner& block = *current_;
  block.threads_[block.running_].value = predicate != 0 ? 1 : 0;
  block.Suspend(State::kAtBarrier);
  return block.barrier_count_;
}

void BlockRunner::Exchange(unsigned mask, std::uint64_t value, std::uint64_t* lanes) {
  BlockRunner& block = *current_;
  const std::size_t mine = block.running_;
  block.threads_[mine].mask = mask;
  block.threads_[mine].value = value;
  block.Suspend(State::kAtExchange);
  const std::size_t warp = mine / kSimulatedWarp;
  std::fill_n(lanes, std::size_t{kSimulatedWarp}, 0);
  std::copy_n(block.results_.begin() + static_cast<std::ptrdiff_t>(warp * kSimulatedWarp),
              block.LanesOf(warp), lanes);
}

unsigned BlockRunner::LiveLanes() {
  const BlockRunner& block = *current_;
  const std::size_t warp = block.running_ / kSimulatedWarp;
  unsigned live = 0;
  for (std::size_t lane = 0; lane < block.LanesOf(warp); ++lane)
    if (block.threads_[warp * kSimulatedWarp + lane].state != State::kEnded) live |= 1U << lane;
  return live;
}

void BlockRunner::Trap() {
  current_->end_ = KernelEnd::kTrapped;
  current_->running_fiber_->Leave();
}

// In a signal's handler, on the fiber's stack, which nobody goes back to.
void BlockRunner::Fault() {
  current_->end_ = KernelEnd::kFaulted;
  current_->running_fiber_->Leave();
}

std::uint64_t BlockRunner::AddressForHost(const void* pointer) {
  for (const auto& device : Simulator::The().devices)
    if (const std::uint64_t seen = device->memory.Seen(pointer); seen != 0) return seen;
  return reinterpret_cast<std::uint64_t>(pointer);
}

// Makes the lanes of a warp ready that have all come to the same exchange.
bool BlockRunner::CompleteExchange(std::size_t warp) {
  CudaThread* const lanes = &threads_[warp * kSimulatedWarp];
  const std::size_t count = LanesOf(warp);
  bool any = false;
  for (std::size_t first = 0; first < count; ++first) {
    if (lanes[first].state != State::kAtExchange) continue;
    const unsigned mask = lanes[first].mask;
    bool all = true;
    for (std::size_t lane = 0; lane < count; ++lane) {
      if ((mask >> lane & 1) == 0 || lanes[lane].state == State::kEnded) continue;
      all = all && lanes[lane].state == State::kAtExchange && lanes[lane].mask == mask;
    }
    if (!all) continue;
    any = true;
    for (std::size_t lane = 0; lane < count; ++lane) {
      if (lanes[lane].state != State::kAtExchange || lanes[lane].mask != mask) continue;
      results_[warp * kSimulatedWarp + lane] = lanes[lane].value;
      lanes[lane].state = State::kReady;
    }
  }
  return any;
}

// After all threads have begun and wait: makes some of them ready. False if none can go on.
bool BlockRunner::Proceed() {
  bool any = false;
  for (std::size_t warp = 0; warp * kSimulatedWarp < threads_.size(); ++warp)
    any = CompleteExchange(warp) || any;
  if (any) return true;
  int count = 0;
  for (const CudaThread& thread : threads_) {
    if (thread.state == State::kAtExchange) return false;
    if (thread.state == State::kAtBarrier) count += static_cast<int>(thread.value);
  }
  barrier_count_ = count;
  for (CudaThread& thread : threads_)
    if (thread.state == State::kAtBarrier) thread.state = State::kReady;
  return true;
}

KernelEnd BlockRunner::RunBlock(SimulatedDim block) {
  self_->block_index = block;
  for (CudaThread& thread : threads_) {
    thread.state = State::kNotBegun;
    thread.fiber = nullptr;
  }
  begun_ = ended_ = 0;
  std::size_t used = 0;
  CatchFaultsOnThisThread(Fault);
  while (begun_ < threads_.size() && end_ == KernelEnd::kDone) {
    if (used == fibers_.size()) fibers_.push_back(FiberPool::The().Take());
    Fiber* fiber = fibers_[used++].get();
    fiber->Prepare(RunThreads, this);
    EnterFiber(fiber);
  }
  while (ended_ < threads_.size() && end_ == KernelEnd::kDone) {
    if (!Proceed()) {
      end_ = KernelEnd::kStuck;
      break;
    }
    for (std::size_t i = 0; i < threads_.size() && end_ == KernelEnd::kDone; ++i) {
      if (threads_[i].state != State::kReady) continue;
      threads_[i].state = State::kRunning;
      running_ = i;
      self_->thread_index = threads_[i].index;
      EnterFiber(threads_[i].fiber);
    }
  }
  CatchFaultsOnThisThread(nullptr);
  return end_;
}

}  // namespace

KernelEnd RunKernel(const SimulatedImage& image, const SimulatedKernel& kernel, const LaunchShape& shape,
                    void** arguments) {
  BlockRunner runner(image, kernel, shape, arguments);
  for (unsigned z = 0; z < shape.grid.z; ++z) {
    for (unsigned y = 0; y < shape.grid.y; ++y) {
      for (unsigned x = 0; x < shape.grid.x; ++x) {
        const KernelEnd end = runner.RunBlock({x, y, z});
        if (end != KernelEnd::kDone) return end;
      }
    }
  }
  return KernelEnd::kDone;
}

}  // namespace rewire::simulated_cuda
