// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/world.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "rewire/integrations/collective/exchange.h"
#include "rewire/integrations/collective/patience.h"
#include "rewire/integrations/collective/timeout.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

namespace {

constexpr int kNoticeTag = 1;
constexpr int kGoodbyeTag = 2;
constexpr std::size_t kMostNotice = 512;

std::atomic<World*> g_world{nullptr};
std::mutex g_mutex;

bool IsFinalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

}  // namespace

std::string World::Text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

Status World::Get(World** world) {
  World* known = g_world.load(std::memory_order_acquire);
  if (known == nullptr) {
    const std::lock_guard lock(g_mutex);
    known = g_world.load(std::memory_order_relaxed);
    if (known == nullptr) {
      // It is never freed: MPI may read from it until the process ends.
      known = new World;
      if (Status s = known->Open(); !s.ok()) {
        known->left_ = s.message();
        known->is_left_ = true;
      }
      g_world.store(known, std::memory_order_release);
    }
  }
  *world = known;
  return known->Usable();
}

Status World::Usable() {
  if (is_left_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    return RuntimeError(left_, "; collectives of this process work again after a new start of all ranks");
  }
  if (IsFinalized()) return RuntimeError("MPI has been finalized; call no collective after MPI_Finalize");
  if (MayBeAsked()) return Status();
  return RuntimeError(
      "the host has initialized MPI for one thread, and this is another one; initialize it by "
      "MPI_Init_thread "
      "with MPI_THREAD_MULTIPLE, or run the program on the thread that has initialized it");
}

Status World::Open() {
  if (IsFinalized()) return RuntimeError("MPI has been finalized; run programs with collectives before that");
  if (Status s = ReadTimeout(&timeout_); !s.ok()) return s;
  // Modules that MPI loads look for its symbols among those of the whole process.
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&MPI_Init_thread), &info) != 0 && info.dli_fname != nullptr)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);

  int initialized = 0;
  int level = MPI_THREAD_SINGLE;
  MPI_Initialized(&initialized);
  if (initialized != 0) {
    MPI_Query_thread(&level);
  } else if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
             code != MPI_SUCCESS) {
    return RuntimeError("MPI_Init_thread failed: ", Text(code));
  }
  ours_ = initialized == 0;
  multiple_ = level == MPI_THREAD_MULTIPLE;
  one_thread_ = level == MPI_THREAD_SINGLE || level == MPI_THREAD_FUNNELED;
  if (ours_) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::atexit([] { g_world.load()->Close(); });
  }
  Status status = Connect();
  if (!status.ok()) return std::move(status).WithContext("MPI's ranks could not be connected");
  return status;
}

Status World::CopyWorld(MPI_Comm* result) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code;
  {
    const auto lock = Lock();
    code = MPI_Comm_idup(MPI_COMM_WORLD, &unfinished_, &request);
  }
  Patience patience(*this);
  for (int done = 0; code == MPI_SUCCESS;) {
    {
      const auto lock = Lock();
      code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (code != MPI_SUCCESS || done != 0) break;
    if (Status s = patience.Pause(); !s.ok()) return s;
  }
  if (code != MPI_SUCCESS) return RuntimeError("MPI_Comm_idup failed: ", Text(code));
  MPI_Comm_set_errhandler(unfinished_, MPI_ERRORS_RETURN);
  *result = unfinished_;
  return Status();
}

// Makes the communicators, and tells all ranks which process each one is.
Status World::Connect() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  std::vector<Identity> identities(static_cast<std::size_t>(ranks_));
  identities[static_cast<std::size_t>(rank_)] = OwnIdentity();
  if (ranks_ > 1) {
    for (MPI_Comm* each : {&notices_, &messages_, &collectives_}) {
      if (Status s = CopyWorld(each); !s.ok()) return s;
    }
    for (int step = 1; step < ranks_; ++step) {
      const int to = (rank_ + step) % ranks_;
      const int from = (rank_ - step + ranks_) % ranks_;
      Exchange exchange(*this, messages_, 0);
      exchange.Receive(from, &identities[static_cast<std::size_t>(from)], sizeof(Identity));
      exchange.Send(to, &identities[static_cast<std::size_t>(rank_)], sizeof(Identity));
      if (Status s = exchange.Wait(); !s.ok()) return s;
    }
  }
  one_machine_ = AreOnOneMachine(identities);
  const std::lock_guard lock(mutex_);
  peers_.Watch(std::move(identities), rank_);
  return Status();
}

bool World::MayBeAsked() const {
  if (IsFinalized()) return false;
  int is_main = 1;
  if (one_thread_) MPI_Is_thread_main(&is_main);
  return is_main != 0;
}

int World::FirstEnded() {
  const std::lock_guard lock(mutex_);
  return peers_.FirstEnded();
}

Status World::Notice() {
  if (notices_ == MPI_COMM_NULL) return Status();
  int found = 0;
  MPI_Status status{};
  const auto lock = Lock();
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, notices_, &found, &status);
  if (code != MPI_SUCCESS || found == 0) return Status();
  char text[kMostNotice] = {};
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (bytes < static_cast<int>(kMostNotice))
    MPI_Recv(text, bytes, MPI_BYTE, status.MPI_SOURCE, kNoticeTag, notices_, MPI_STATUS_IGNORE);
  return RuntimeError(Name(status.MPI_SOURCE), " has left: ", text);
}

void World::Leave(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!left_.empty()) return;
    left_ = reason;
    notice_ = reason.substr(0, kMostNotice - 1);
    is_left_.store(true, std::memory_order_release);
  }
  if (notices_ == MPI_COMM_NULL) return;
  const auto lock = Lock();
  for (int peer = 0; peer < ranks_; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (peer == rank_) continue;
    // Short messages are on their way when the call returns, whether or not the peer still runs.
    const int code = MPI_Isend(notice_.data(), static_cast<int>(notice_.size()), MPI_BYTE, peer, kNoticeTag,
                               notices_, &request);
    if (code == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

// MPI_Finalize waits for all ranks, without end if one has died. So every rank first says that it has come
// here. If one does not, MPI is not finalized, and mpirun ends the job.
void World::Close() {
  if (is_left_.load(std::memory_order_acquire) || IsFinalized()) return;
  closing_ = true;
  Status status;
  for (int step = 1; step < ranks_ && status.ok(); ++step) {
    Exchange exchange(*this, notices_, kGoodbyeTag);
    exchange.Receive((rank_ - step + ranks_) % ranks_, nullptr, 0);
    exchange.Send((rank_ + step) % ranks_, nullptr, 0);
    status = exchange.Wait();
  }
  if (status.ok()) MPI_Finalize();
}

ChannelUse::ChannelUse(World& world, std::int64_t channel)
    : used_(world.channels_[static_cast<std::size_t>(channel)]), channel_(channel) {
  taken_ = !used_.exchange(true, std::memory_order_acquire);
}

ChannelUse::~ChannelUse() {
  if (taken_) used_.store(false, std::memory_order_release);
}

Status ChannelUse::status() const {
  if (taken_) return Status();
  return RuntimeError("channel ", channel_,
                      " is in use by another run of this process; programs that run at once need channels of "
                      "their own");
}

}  // namespace rewire::collective
