// SPDX-License-Identifier: Apache-2.0
// A simulation of NCCL on the simulated CUDA driver. Its work is copies and functions of the host on the
// streams that it is given, so the driver sees which memory it uses, and when. Ranks exchange bytes by files
// in the folder REWIRE_SIMULATED_NCCL_FOLDER.
//
// As with NCCL, a communicator that does not block answers kNcclInProgress at first, and what was given to a
// stream waits for the other ranks without end, until ncclCommAbort. With REWIRE_SIMULATED_NCCL_ERROR=N the
// N-th call of a communicator meets an error of the network, and hangs.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "rewire/integrations/collective/nccl/nccl_abi.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/simulated_cuda/opened_driver.h"

#define REWIRE_SIMULATED_EXPORT extern "C" __attribute__((visibility("default")))

namespace rewire::collective {
namespace {

using namespace rewire::cuda;  // NOLINT(google-build-using-namespace)
using Bytes = std::vector<char>;

constexpr int kUnhandledCudaError = 1, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;

void PauseShortly() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

struct Comm {
  std::string prefix;  // of the files of its messages
  int rank = 0, ranks = 1;
  std::uint64_t calls = 0;
  std::atomic<int> error{0};
  std::atomic<int> under_way{0};  // calls that answer kNcclInProgress
  std::atomic<int> at_work{0};    // functions of the host that run
  std::atomic<bool> aborted{false};

  std::string FileOf(std::uint64_t call, int from, int to) const {
    return prefix + "." + std::to_string(call) + "." + std::to_string(from) + "-" + std::to_string(to);
  }
  void Post(std::uint64_t call, int to, const Bytes& bytes) const {
    const std::string file = FileOf(call, rank, to);
    std::FILE* const out = std::fopen((file + ".unfinished").c_str(), "wb");
    if (out == nullptr) return;
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
    std::rename((file + ".unfinished").c_str(), file.c_str());
  }
  // False if the communicator was aborted meanwhile, or the message has another size.
  bool Take(std::uint64_t call, int from, Bytes* bytes) {
    const std::string file = FileOf(call, from, rank);
    std::FILE* in = nullptr;
    while ((in = std::fopen(file.c_str(), "rb")) == nullptr) {
      if (aborted) return false;
      PauseShortly();
    }
    const bool whole =
        std::fread(bytes->data(), 1, bytes->size(), in) == bytes->size() && std::fgetc(in) == EOF;
    std::fclose(in);
    unlink(file.c_str());
    if (!whole) error = kRemoteError;
    return whole;
  }
};

std::atomic<std::uint64_t> g_live{0};

Comm& CommOf(void* comm) { return *static_cast<Comm*>(comm); }

// One call. Its staging memory stays until the process ends.
struct Work {
  Comm* comm = nullptr;
  std::uint64_t number = 0;
  Bytes own;                    // as the others get it
  std::size_t from_others = 0;  // bytes of each of their messages
  bool is_hanging = false;
  std::vector<int> to, from;  // ranks
  // Makes the result of the messages, by rank; this rank's are its own.
  std::function<void(const std::vector<Bytes>& messages, Bytes* result)> finish;
  void* staged_in = nullptr;
  void* staged_out = nullptr;
  std::size_t result_bytes = 0;

  void Run() {
    ++comm->at_work;
    Exchange();
    --comm->at_work;
  }

 private:
  void Exchange() {
    if (is_hanging) comm->error = kRemoteError;
    while (is_hanging && !comm->aborted) PauseShortly();
    if (comm->aborted) return;
    if (!own.empty()) std::memcpy(own.data(), staged_in, own.size());
    for (const int each : to) comm->Post(number, each, own);
    std::vector<Bytes> messages(static_cast<std::size_t>(comm->ranks), Bytes(from_others));
    for (const int each : from) {
      if (!comm->Take(number, each, &messages[static_cast<std::size_t>(each)])) {
        while (!comm->aborted) PauseShortly();
        return;
      }
    }
    if (result_bytes == 0) return;
    messages[static_cast<std::size_t>(comm->rank)] = own;
    Bytes result(result_bytes);
    finish(messages, &result);
    std::memcpy(staged_out, result.data(), result_bytes);
  }
};

void* Staging(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes != 0 && test::OpenedDriver().cuMemHostAlloc(&memory, bytes, 0) != CUDA_SUCCESS) return nullptr;
  return memory;
}

bool Enqueue(Work* work, const void* x, void* out, void* stream) {
  const CudaDriver& driver = test::OpenedDriver();
  const auto on = static_cast<CUstream>(stream);
  const auto address = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  work->staged_in = Staging(work->own.size());
  work->staged_out = Staging(work->result_bytes);
  bool given = true;
  if (!work->own.empty())
    given = driver.cuMemcpyDtoHAsync(work->staged_in, address(x), work->own.size(), on) == CUDA_SUCCESS;
  given = given && driver.cuLaunchHostFunc(
                       on, [](void* of) { static_cast<Work*>(of)->Run(); }, work) == CUDA_SUCCESS;
  if (work->result_bytes != 0 && given)
    given = driver.cuMemcpyHtoDAsync(address(out), work->staged_out, work->result_bytes, on) == CUDA_SUCCESS;
  return given;
}

struct Given {
  Work* work;
  const void* x;
  void* out;
  void* stream;
};
thread_local int t_groups = 0;
thread_local std::vector<Given> t_given;

// Gives the streams the work, somewhat later and on another thread.
int Start(std::vector<Given> given) {
  if (given.empty()) return kNcclSuccess;
  CUcontext context = nullptr;
  if (test::OpenedDriver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr)
    return kUnhandledCudaError;
  Comm& comm = *given[0].work->comm;
  ++comm.under_way;
  std::thread([given = std::move(given), context, &comm] {
    PauseShortly();
    test::OpenedDriver().cuCtxSetCurrent(context);
    for (const Given& each : given) {
      if (!Enqueue(each.work, each.x, each.out, each.stream)) comm.error = kUnhandledCudaError;
    }
    --comm.under_way;
  }).detach();
  return kNcclInProgress;
}

int Give(Work* work, const void* x, void* out, void* stream) {
  Comm& comm = *work->comm;
  work->number = ++comm.calls;
  const char* const failing = std::getenv("REWIRE_SIMULATED_NCCL_ERROR");
  if (failing != nullptr && work->number == static_cast<std::uint64_t>(std::atoll(failing))) {
    work->is_hanging = true;
  }
  t_given.push_back({work, x, out, stream});
  if (t_groups > 0) return kNcclSuccess;
  return Start(std::exchange(t_given, {}));
}

std::vector<int> Others(const Comm& comm) {
  std::vector<int> others;
  for (int rank = 0; rank < comm.ranks; ++rank) {
    if (rank != comm.rank) others.push_back(rank);
  }
  return others;
}

Work* NewWork(Comm& comm, std::size_t own, std::size_t from_others) {
  auto* work = new Work();
  work->comm = &comm;
  work->own.resize(own);
  work->from_others = from_others;
  work->to = work->from = Others(comm);
  return work;
}

template <typename T>
T Reduced(int op, const std::vector<Bytes>& messages, std::size_t i) {
  using C = kernel::cpu::Computed<T>;
  const auto at = [&](const Bytes& message) {
    T value;
    std::memcpy(&value, message.data() + i * sizeof(T), sizeof(T));
    return static_cast<C>(value);
  };
  C reduced = at(messages[0]);
  for (std::size_t rank = 1; rank < messages.size(); ++rank) {
    const C other = at(messages[rank]);
    if constexpr (std::is_integral_v<C>) {
      using Wide = std::uint64_t;
      if (op == kNcclSum) reduced = static_cast<C>(static_cast<Wide>(reduced) + static_cast<Wide>(other));
    } else if (op == kNcclSum || op == kNcclMean) {
      reduced = reduced + other;
    }
    if (op == kNcclMax) reduced = std::max(reduced, other);
    if (op == kNcclMin) reduced = std::min(reduced, other);
  }
  if constexpr (std::is_floating_point_v<C>) {
    if (op == kNcclMean) reduced = reduced / static_cast<C>(messages.size());
  }
  return static_cast<T>(reduced);
}

// Calls visit(element) with a value of the type; kInvalidArgument for one that is not simulated.
template <typename Visit>
int ForType(int type, const Visit& visit) {
  switch (type) {
    case kNcclUint8:
      return visit(std::uint8_t{});
    case kNcclInt32:
      return visit(std::int32_t{});
    case kNcclInt64:
      return visit(std::int64_t{});
    case kNcclFloat16:
      return visit(kernel::cpu::Float16{});
    case kNcclBfloat16:
      return visit(kernel::cpu::BFloat16{});
    case kNcclFloat32:
      return visit(float{});
    case kNcclFloat64:
      return visit(double{});
    default:
      return kInvalidArgument;
  }
}

// A reduction of `count` elements, of which this rank gets those from `begin`.
int GiveReduction(void* comm, const void* x, void* out, std::size_t count, std::size_t begin,
                  std::size_t kept, int type, int op, void* stream) {
  return ForType(type, [&]<typename T>(T) {
    Work* work = NewWork(CommOf(comm), count * sizeof(T), count * sizeof(T));
    work->result_bytes = kept * sizeof(T);
    work->finish = [=](const std::vector<Bytes>& messages, Bytes* result) {
      for (std::size_t i = 0; i < kept; ++i) {
        const T value = Reduced<T>(op, messages, begin + i);
        std::memcpy(result->data() + i * sizeof(T), &value, sizeof(T));
      }
    };
    return Give(work, x, out, stream);
  });
}

}  // namespace
}  // namespace rewire::collective

// NOLINTBEGIN(readability-identifier-naming): NCCL's names
using namespace rewire::collective;  // NOLINT(google-build-using-namespace)

REWIRE_SIMULATED_EXPORT int ncclGetVersion(int* version) {
  const char* given = std::getenv("REWIRE_SIMULATED_NCCL_VERSION");
  *version = given != nullptr ? std::atoi(given) : 22809;
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT int ncclGetUniqueId(NcclId* id) {
  const char* folder = std::getenv("REWIRE_SIMULATED_NCCL_FOLDER");
  if (folder == nullptr) return kInvalidUsage;
  std::random_device random;
  const std::string text = std::string(folder) + "/" + std::to_string(random()) + std::to_string(random());
  *id = NcclId{};
  if (text.size() >= sizeof(id->bytes)) return kInvalidUsage;
  std::memcpy(id->bytes, text.c_str(), text.size());
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT int ncclCommInitRankConfig(void** made, int ranks, NcclId id, int rank,
                                                   NcclConfig* config) {
  const bool is_known = config != nullptr && config->size >= sizeof(NcclConfig) &&
                        config->magic == 0xcafebeef && config->version >= 21400;
  if (!is_known || config->blocking != 0 || rank < 0 || rank >= ranks) return kInvalidArgument;
  auto* comm = new Comm();
  ++g_live;
  comm->prefix = id.bytes;
  comm->rank = rank;
  comm->ranks = ranks;
  ++comm->under_way;
  std::thread([comm] {
    for (const int peer : Others(*comm)) comm->Post(0, peer, Bytes(1));
    Bytes hello(1);
    for (const int peer : Others(*comm)) comm->Take(0, peer, &hello);
    --comm->under_way;
  }).detach();
  *made = comm;
  return kNcclInProgress;
}

// Communicators stay, since threads of the streams may look at them.
REWIRE_SIMULATED_EXPORT int ncclCommDestroy(void*) {
  --g_live;
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT int ncclCommAbort(void* given) {
  Comm& comm = CommOf(given);
  comm.aborted = true;
  while (comm.at_work != 0 || comm.under_way != 0) PauseShortly();
  --g_live;
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT int ncclCommGetAsyncError(void* given, int* error) {
  const Comm& comm = CommOf(given);
  *error = comm.error != 0 ? comm.error.load() : comm.under_way != 0 ? kNcclInProgress : kNcclSuccess;
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT const char* ncclGetErrorString(int result) {
  return result == kRemoteError          ? "remote process exited or there was a network error"
         : result == kInvalidArgument    ? "invalid argument"
         : result == kUnhandledCudaError ? "unhandled cuda error"
                                         : "simulated error";
}

REWIRE_SIMULATED_EXPORT const char* ncclGetLastError(void* comm) {
  return CommOf(comm).error == kRemoteError ? "simulated: the peer has closed its connection" : "";
}

REWIRE_SIMULATED_EXPORT int ncclAllReduce(const void* x, void* out, std::size_t count, int type, int op,
                                          void* comm, void* stream) {
  return GiveReduction(comm, x, out, count, 0, count, type, op, stream);
}

REWIRE_SIMULATED_EXPORT int ncclReduceScatter(const void* x, void* out, std::size_t count, int type, int op,
                                              void* comm, void* stream) {
  const auto ranks = static_cast<std::size_t>(CommOf(comm).ranks),
             rank = static_cast<std::size_t>(CommOf(comm).rank);
  return GiveReduction(comm, x, out, count * ranks, count * rank, count, type, op, stream);
}

REWIRE_SIMULATED_EXPORT int ncclAllGather(const void* x, void* out, std::size_t count, int type, void* comm,
                                          void* stream) {
  if (type != kNcclInt8) return kInvalidArgument;
  Work* work = NewWork(CommOf(comm), count, count);
  work->result_bytes = count * static_cast<std::size_t>(work->comm->ranks);
  work->finish = [](const std::vector<Bytes>& messages, Bytes* result) {
    result->clear();
    for (const Bytes& each : messages) result->insert(result->end(), each.begin(), each.end());
  };
  return Give(work, x, out, stream);
}

REWIRE_SIMULATED_EXPORT int ncclBroadcast(const void* x, void* out, std::size_t count, int type, int root,
                                          void* comm, void* stream) {
  if (type != kNcclInt8) return kInvalidArgument;
  const bool is_root = CommOf(comm).rank == root;
  Work* work = NewWork(CommOf(comm), is_root ? count : 0, count);
  if (is_root) {
    work->from.clear();
  } else {
    work->to.clear();
    work->from = {root};
  }
  work->result_bytes = count;
  work->finish = [root](const std::vector<Bytes>& messages, Bytes* result) {
    *result = messages[static_cast<std::size_t>(root)];
  };
  return Give(work, x, out, stream);
}

REWIRE_SIMULATED_EXPORT int ncclSend(const void* x, std::size_t count, int type, int peer, void* comm,
                                     void* stream) {
  if (type != kNcclInt8) return kInvalidArgument;
  Work* work = NewWork(CommOf(comm), count, 0);
  work->to = {peer};
  work->from.clear();
  return Give(work, x, nullptr, stream);
}

REWIRE_SIMULATED_EXPORT int ncclRecv(void* out, std::size_t count, int type, int peer, void* comm,
                                     void* stream) {
  if (type != kNcclInt8) return kInvalidArgument;
  Work* work = NewWork(CommOf(comm), 0, count);
  work->to.clear();
  work->from = {peer};
  work->result_bytes = count;
  work->finish = [peer](const std::vector<Bytes>& messages, Bytes* result) {
    *result = messages[static_cast<std::size_t>(peer)];
  };
  return Give(work, nullptr, out, stream);
}

REWIRE_SIMULATED_EXPORT int ncclGroupStart() {
  ++t_groups;
  return kNcclSuccess;
}

REWIRE_SIMULATED_EXPORT int ncclGroupEnd() {
  if (t_groups == 0) return kInvalidUsage;
  return --t_groups > 0 ? kNcclSuccess : Start(std::exchange(t_given, {}));
}
// NOLINTEND(readability-identifier-naming)
