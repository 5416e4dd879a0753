// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/collective/exchange.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "rewire/integrations/collective/patience.h"

namespace rewire::collective {

using kernel::RuntimeError;
using kernel::Status;

void Exchange::Send(int peer, const void* data, std::int64_t bytes) {
  Begin(peer, const_cast<void*>(data), bytes, false);
}

void Exchange::Receive(int peer, void* data, std::int64_t bytes) { Begin(peer, data, bytes, true); }

void Exchange::Begin(int peer, void* data, std::int64_t bytes, bool is_receive) {
  std::int64_t begun = 0;
  do {
    if (count_ == kMostRequests && failure_.ok()) failure_ = Finish();
    if (!failure_.ok()) return;
    const int part = static_cast<int>(std::min(bytes - begun, kMostBytes));
    char* const from = data == nullptr ? nullptr : static_cast<char*>(data) + begun;
    MPI_Request* const request = &requests_[count_];
    int code;
    {
      const auto lock = world_.Lock();
      code = is_receive ? MPI_Irecv(from, part, MPI_BYTE, peer, tag_, communicator_, request)
                        : MPI_Isend(from, part, MPI_BYTE, peer, tag_, communicator_, request);
    }
    if (code != MPI_SUCCESS) {
      failure_ = Abandon(RuntimeError("a message with ", world_.Name(peer), ": ", World::Text(code)));
      return;
    }
    messages_[count_++] = {peer, part, is_receive};
    begun += part;
  } while (begun < bytes);
}

Status Exchange::Wait() {
  if (failure_.ok()) failure_ = Finish();
  return std::move(failure_);
}

Status Exchange::Finish() {
  Patience patience(world_);
  while (count_ > 0) {
    int done = 0, code;
    {
      const auto lock = world_.Lock();
      code = MPI_Testall(count_, requests_, &done, statuses_);
    }
    if (code != MPI_SUCCESS) return Abandon(Failed(code));
    if (done != 0) {
      Status status = CheckReceived();
      count_ = 0;
      return status.ok() ? Status() : Abandon(std::move(status));
    }
    if (Status s = patience.Pause(); !s.ok()) return Abandon(std::move(s));
  }
  return Status();
}

Status Exchange::CheckReceived() const {
  for (int i = 0; i < count_; ++i) {
    int bytes = 0;
    if (!messages_[i].is_receive) continue;
    MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes);
    if (bytes == messages_[i].bytes) continue;
    return RuntimeError(world_.Name(messages_[i].peer), " sent ", bytes, " bytes, expected ",
                        messages_[i].bytes, "; all ranks must make the same calls in the same order");
  }
  return Status();
}

Status Exchange::Failed(int code) const {
  for (int i = 0; code == MPI_ERR_IN_STATUS && i < count_; ++i) {
    const int own = statuses_[i].MPI_ERROR;
    if (own == MPI_SUCCESS || own == MPI_ERR_PENDING) continue;
    int what = MPI_ERR_UNKNOWN;
    MPI_Error_class(own, &what);
    if (what == MPI_ERR_TRUNCATE) {
      return RuntimeError(world_.Name(messages_[i].peer), " sent more than ", messages_[i].bytes,
                          " bytes; all ranks must make the same calls in the same order");
    }
    return RuntimeError("a message with ", world_.Name(messages_[i].peer), ": ", World::Text(own));
  }
  return RuntimeError("messages: ", World::Text(code));
}

// A receive that has its sender already cannot be cancelled. It is waited for, unless the sender has ended,
// in which case nothing more arrives.
Status Exchange::Abandon(Status status) {
  {
    const auto lock = world_.Lock();
    for (int i = 0; i < count_; ++i) {
      if (messages_[i].is_receive && requests_[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests_[i]);
    }
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (count_ > 0 && std::chrono::steady_clock::now() < until) {
    int done = 1;
    {
      const auto lock = world_.Lock();
      for (int i = 0; i < count_; ++i) {
        int received = 1;
        if (messages_[i].is_receive && requests_[i] != MPI_REQUEST_NULL)
          MPI_Test(&requests_[i], &received, MPI_STATUS_IGNORE);
        done = done & received;
      }
    }
    if (done != 0) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  count_ = 0;
  world_.Leave(status.message());
  return status;
}

}  // namespace rewire::collective
