// SPDX-License-Identifier: Apache-2.0
//
// Messages between ranks, several at once, in a wait that ends.
//
// MPI's own collectives are no way to this. A blocking one waits for a dead rank for ever. One that has been
// begun cannot be cancelled, so it may write its buffer after the call. Receives can be cancelled.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "rewire/integrations/collective/world.h"
#include "rewire/vm/kernel/status.h"

namespace rewire::collective {

class Exchange {
 public:
  Exchange(World& world, MPI_Comm communicator, int tag)
      : world_(world), communicator_(communicator), tag_(tag) {}
  // Waits if nobody has.
  ~Exchange() { (void)Wait(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Begin a message of so many bytes, also of none. The memory must stay until Wait returns. Both keep the
  // first failure, which Wait gives.
  void Send(int peer, const void* data, std::int64_t bytes);
  void Receive(int peer, void* data, std::int64_t bytes);

  // Returns when all messages have arrived, and those sent may be overwritten. After a failure, which names
  // its rank, this process has left (World::Leave), and no receive writes any more.
  [[nodiscard]] kernel::Status Wait();

 private:
  static constexpr int kMostRequests = 32;
  // MPI counts in int.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

  struct Message {
    int peer;
    int bytes;
    bool is_receive;
  };

  void Begin(int peer, void* data, std::int64_t bytes, bool is_receive);
  kernel::Status Finish();
  kernel::Status CheckReceived() const;
  kernel::Status Failed(int code) const;
  kernel::Status Abandon(kernel::Status status);

  World& world_;
  MPI_Comm communicator_;
  int tag_;
  int count_ = 0;
  MPI_Request requests_[kMostRequests];
  MPI_Status statuses_[kMostRequests];
  Message messages_[kMostRequests];
  kernel::Status failure_;
};

}  // namespace rewire::collective
