// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "rewire/base/array.h"
#include "rewire/base/worker_thread.h"

namespace rewire {
namespace {

// More chunks than threads, to balance ranges that take unequal time.
constexpr std::int64_t kChunksPerThread = 4;
constexpr std::int32_t kMostThreads = 1024;
// How long a thread looks for work before it sleeps. Waking it takes the other thread about ten microseconds
// in a virtual machine, and a run often has serial parts of some ten between two parallel loops.
constexpr std::chrono::microseconds kSpinTime(100);
constexpr int kLockSpins = 1600;

thread_local bool t_inside_body = false;

// Runs one range with nested calls held to this thread.
void RunBody(ThreadPool::Body body, void* data, std::int64_t begin, std::int64_t end) {
  const bool nested = t_inside_body;
  t_inside_body = true;
  body(data, begin, end);
  t_inside_body = nested;
}

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns when the count has become 0, or is 0 no more, or after kSpinTime.
void SpinWhile(const std::atomic<std::int32_t>& count, bool zero) {
  constexpr int kSpins = 64;  // a microsecond or two
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  for (int i = 1; (count.load(std::memory_order_acquire) == 0) == zero; ++i) {
    Pause();
    if (i % kSpins == 0 && std::chrono::steady_clock::now() >= end) return;
  }
}

class SerialPool : public ThreadPool {
 public:
  std::int32_t thread_count() const override { return 1; }
  void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t /*grain*/, Body body,
                   void* data) override {
    if (begin < end) RunBody(body, data, begin, end);
  }
};

// One ParallelFor. It lives on its caller's stack, and is in the pool's list while it has chunks to hand out.
//
// The caller takes chunks from the front, and workers take them from the back. So if the same work is done
// again, most of it goes to the thread whose caches have its data: of two threads, each gets its half.
struct Job {
  ThreadPool::Body body;
  void* data;
  std::int64_t begin;
  std::uint64_t chunk_size;  // each chunk has this many elements,
  std::uint64_t longer;      // the first `longer` ones have one more
  std::uint64_t chunk_count;
  std::atomic<std::uint64_t> taken{0};   // chunks, from the front; in the upper half those from the back
  std::atomic<std::int32_t> helpers{0};  // workers inside; goes up under the pool's mutex only
  Job* next = nullptr;

  void RunChunks(bool from_front) {
    constexpr std::uint64_t kOneFromBack = std::uint64_t{1} << 32;  // there are fewer chunks and threads
    for (;;) {
      const std::uint64_t before = taken.fetch_add(from_front ? 1 : kOneFromBack, std::memory_order_relaxed);
      const std::uint64_t front = before % kOneFromBack, back = before / kOneFromBack;
      if (front + back >= chunk_count) return;
      const std::uint64_t chunk = from_front ? front : chunk_count - 1 - back;
      // Unsigned: a range may be wider than an int64 can say.
      const std::uint64_t first =
          static_cast<std::uint64_t>(begin) + chunk * chunk_size + std::min(chunk, longer);
      const std::uint64_t last = first + chunk_size + (chunk < longer ? 1 : 0);
      RunBody(body, data, static_cast<std::int64_t>(first), static_cast<std::int64_t>(last));
    }
  }
};

class WorkerPool : public ThreadPool {
 public:
  // Fewer threads when the system gives no more.
  explicit WorkerPool(std::int32_t threads) {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    while (static_cast<std::int32_t>(workers_.size()) < threads - 1) {
      WorkerThread worker;
      if (!worker.Start(&WorkerMain, this)) break;
      workers_.push_back(worker);
    }
  }
  ~WorkerPool() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    for (const WorkerThread& worker : workers_) worker.Join();
  }

  // False in a forked child. There is no worker there, and nothing but this may be asked of the pool: at the
  // fork a worker may have held the mutex, and waited at a condition for which the destructor waits in turn.
  bool IsInThisProcess() const { return workers_.empty() || workers_[0].IsInThisProcess(); }

  std::int32_t thread_count() const override { return static_cast<std::int32_t>(workers_.size()) + 1; }

  void ParallelFor(std::int64_t begin, std::int64_t end, std::int64_t grain, Body body, void* data) override {
    if (begin >= end) return;
    const std::uint64_t size = static_cast<std::uint64_t>(end) - static_cast<std::uint64_t>(begin);
    const auto threads = static_cast<std::uint64_t>(thread_count());
    std::uint64_t chunks = std::min(size / static_cast<std::uint64_t>(std::max<std::int64_t>(grain, 1)),
                                    static_cast<std::uint64_t>(kChunksPerThread) * threads);
    // One of two threads would get two of three chunks.
    if (chunks > threads) chunks -= chunks % threads;
    // Waking a thread takes as long as much work does. A grain of one may be any work.
    const bool waits = sleeping_.load(std::memory_order_relaxed) == workers_.size();
    const bool is_worth_it = !waits || grain <= 1 || chunks == kChunksPerThread * threads;
    if (chunks <= 1 || t_inside_body || !is_worth_it || !IsInThisProcess()) {
      RunBody(body, data, begin, end);
      return;
    }
    Job job{body, data, begin, size / chunks, size % chunks, chunks};
    Open(&job);
    job.RunChunks(true);
    Close(&job);
  }

 private:
  static void* WorkerMain(void* pool) {
    static_cast<WorkerPool*>(pool)->Work();
    return nullptr;
  }

  void Open(Job* job) {
    std::uint64_t wanted = job->chunk_count - 1;
    {
      const std::unique_lock<std::mutex> lock = Lock();
      // Placed behind the jobs of other callers, so that each gets its turn.
      Job** place = &jobs_;
      while (*place != nullptr) place = &(*place)->next;
      *place = job;
      wanted = std::min<std::uint64_t>(wanted, sleeping_.load(std::memory_order_relaxed));
    }
    open_jobs_.fetch_add(1, std::memory_order_relaxed);  // who sees it takes the mutex: not while it is held
    for (; wanted != 0; --wanted) work_.notify_one();
  }

  // Removes the job from the list, unless a worker has done so, and waits for the workers inside it.
  void Close(Job* job) {
    {
      const std::unique_lock<std::mutex> lock = Lock();
      Unlink(job);
    }
    SpinWhile(job->helpers, false);
    std::unique_lock<std::mutex> lock = Lock();  // also when none is left: the last one may still hold it
    done_.wait(lock, [job] { return job->helpers.load(std::memory_order_acquire) == 0; });
  }

  // The lock is held only for a few instructions. A thread that slept meanwhile would wake up much later.
  std::unique_lock<std::mutex> Lock() {
    for (int i = 0; i < kLockSpins; ++i) {
      if (mutex_.try_lock()) return std::unique_lock<std::mutex>(mutex_, std::adopt_lock);
      Pause();
    }
    return std::unique_lock<std::mutex>(mutex_);
  }

  void Unlink(Job* job) {
    for (Job** place = &jobs_; *place != nullptr; place = &(*place)->next) {
      if (*place != job) continue;
      *place = job->next;
      open_jobs_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }

  void Work() {
    for (;;) {
      SpinWhile(open_jobs_, true);
      std::unique_lock<std::mutex> lock = Lock();
      sleeping_.fetch_add(1, std::memory_order_relaxed);
      work_.wait(lock, [this] { return stopping_ || jobs_ != nullptr; });
      sleeping_.fetch_sub(1, std::memory_order_relaxed);
      if (jobs_ == nullptr) return;
      Job* job = jobs_;
      job->helpers.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      job->RunChunks(false);
      lock = Lock();
      // Nothing is left to hand out, so the next worker must not find the job.
      Unlink(job);
      job->helpers.fetch_sub(1, std::memory_order_release);
      lock.unlock();
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;            // a job is open, or the pool stops
  std::condition_variable done_;            // a worker has left a job
  Job* jobs_ = nullptr;                     // oldest first
  std::atomic<std::int32_t> open_jobs_{0};  // may lag behind the list
  std::atomic<std::size_t> sleeping_{0};    // changed under the mutex only
  bool stopping_ = false;
  Array<WorkerThread> workers_;
};

}  // namespace

std::shared_ptr<ThreadPool> ThreadPool::Serial() { return std::make_shared<SerialPool>(); }

std::shared_ptr<ThreadPool> ThreadPool::Make(std::int32_t threads) {
  if (threads <= 1) return Serial();
  // A forked child leaves the pool as it is: its memory goes with the process.
  return std::shared_ptr<ThreadPool>(new WorkerPool(std::min(threads, kMostThreads)), [](WorkerPool* pool) {
    if (pool->IsInThisProcess()) delete pool;
  });
}

}  // namespace rewire
