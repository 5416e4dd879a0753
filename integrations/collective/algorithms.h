// SPDX-License-Identifier: Apache-2.0
//
// How messages between pairs of ranks become collectives.
//
// Every rank gets the same bits: each element is reduced on one rank alone, or by all ranks in the same
// order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "rewire/integrations/collective/exchange.h"
#include "rewire/integrations/collective/reduce.h"

namespace rewire::collective {

// A call on a channel.
struct Call {
  World& world;
  int tag;

  int rank() const { return world.rank(); }
  int ranks() const { return world.ranks(); }
  MPI_Comm communicator() const { return world.communicator(World::Lane::kCollectives); }
};

// Up to so many bytes, a reduction of everything takes few messages rather than short ones.
inline constexpr std::int64_t kFewMessages = 8192;

// One message to `peer` and one from it.
inline kernel::Status Swap(const Call& call, int peer, const void* sent, void* received, std::int64_t bytes) {
  Exchange exchange(call.world, call.communicator(), call.tag);
  exchange.Receive(peer, received, bytes);
  exchange.Send(peer, sent, bytes);
  return exchange.Wait();
}

inline kernel::Status SendTo(const Call& call, int peer, const void* data, std::int64_t bytes) {
  Exchange exchange(call.world, call.communicator(), call.tag);
  exchange.Send(peer, data, bytes);
  return exchange.Wait();
}

inline kernel::Status ReceiveFrom(const Call& call, int peer, void* data, std::int64_t bytes) {
  Exchange exchange(call.world, call.communicator(), call.tag);
  exchange.Receive(peer, data, bytes);
  return exchange.Wait();
}

// Recursive doubling: pairs of ranks, then pairs of pairs, exchange everything. Ranks beyond a power of two
// lend their elements to a neighbor. `received` is scratch memory of `count` elements.
template <typename T>
kernel::Status ReduceByDoubling(const Call& call, CollectiveOp op, T* data, std::int64_t count, T* received) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
  const int rank = call.rank();
  int power = 1;
  while (power * 2 <= call.ranks()) power *= 2;
  const int rest = call.ranks() - power;
  const bool has_neighbor = rank < 2 * rest;
  if (has_neighbor && rank % 2 == 0) {
    if (kernel::Status s = SendTo(call, rank + 1, data, bytes); !s.ok()) return s;
    return ReceiveFrom(call, rank + 1, data, bytes);
  }
  if (has_neighbor) {
    if (kernel::Status s = ReceiveFrom(call, rank - 1, received, bytes); !s.ok()) return s;
    Combine(op, received, data, data, count);
  }
  const int place = has_neighbor ? rank / 2 : rank - rest;
  for (int distance = 1; distance < power; distance *= 2) {
    const int other = place ^ distance;
    const int peer = other < rest ? 2 * other + 1 : other + rest;
    if (kernel::Status s = Swap(call, peer, data, received, bytes); !s.ok()) return s;
    if (other < place) {
      Combine(op, received, data, data, count);
    } else {
      Combine(op, data, received, data, count);
    }
  }
  return has_neighbor ? SendTo(call, rank - 1, data, bytes) : kernel::Status();
}

// Each rank reduces its own part. Rank i has the elements [begin(i), begin(i + 1)) of x. `own` may be where
// this rank's part of x lies; `received` is scratch memory of as many elements.
template <typename T, typename Begin>
kernel::Status ReduceParts(const Call& call, CollectiveOp op, const T* x, const Begin& begin, T* own,
                           T* received) {
  constexpr std::int64_t kBytes = sizeof(T);
  const int rank = call.rank(), ranks = call.ranks();
  const std::int64_t count = begin(rank + 1) - begin(rank);
  const T* reduced = x + begin(rank);
  for (int step = 1; step < ranks; ++step) {
    const int to = (rank + step) % ranks;
    const int from = (rank - step + ranks) % ranks;
    const std::int64_t sent = begin(to + 1) - begin(to);
    Exchange exchange(call.world, call.communicator(), call.tag);
    if (count > 0) exchange.Receive(from, received, count * kBytes);
    if (sent > 0) exchange.Send(to, x + begin(to), sent * kBytes);
    if (kernel::Status s = exchange.Wait(); !s.ok()) return s;
    Combine(op, reduced, received, own, count);
    reduced = own;
  }
  return kernel::Status();
}

// All ranks get all parts. Rank i has the bytes [begin(i), begin(i + 1)) of `out`; this rank's are there.
template <typename Begin>
kernel::Status GatherParts(const Call& call, char* out, const Begin& begin) {
  const int rank = call.rank(), ranks = call.ranks();
  const std::int64_t own = begin(rank + 1) - begin(rank);
  Exchange exchange(call.world, call.communicator(), call.tag);
  for (int step = 1; step < ranks; ++step) {
    const int to = (rank + step) % ranks;
    const int from = (rank - step + ranks) % ranks;
    const std::int64_t bytes = begin(from + 1) - begin(from);
    if (bytes > 0) exchange.Receive(from, out + begin(from), bytes);
    if (own > 0) exchange.Send(to, out + begin(rank), own);
  }
  return exchange.Wait();
}

// `data` = op over the data of all ranks; a mean is finished. `received` is scratch memory of ScratchOf(...)
// elements.
template <typename T>
std::int64_t ScratchOf(std::int64_t count, int ranks) {
  const bool few = count * static_cast<std::int64_t>(sizeof(T)) <= kFewMessages;
  return few ? count : count / ranks + 1;
}

// From x, which may be `out`.
template <typename T>
kernel::Status ReduceAll(const Call& call, CollectiveOp op, const T* x, T* out, std::int64_t count,
                         T* received) {
  const int rank = call.rank(), ranks = call.ranks();
  if (count * static_cast<std::int64_t>(sizeof(T)) <= kFewMessages) {
    if (x != out) std::copy_n(x, count, out);
    if (kernel::Status s = ReduceByDoubling(call, op, out, count, received); !s.ok()) return s;
    FinishReduction(op, out, count, ranks);
    return kernel::Status();
  }
  const auto begin = [&](int i) { return count / ranks * i + std::min<std::int64_t>(count % ranks, i); };
  T* const own = out + begin(rank);
  if (kernel::Status s = ReduceParts(call, op, x, begin, own, received); !s.ok()) return s;
  FinishReduction(op, own, begin(rank + 1) - begin(rank), ranks);
  return GatherParts(call, reinterpret_cast<char*>(out),
                     [&](int i) { return begin(i) * static_cast<std::int64_t>(sizeof(T)); });
}

// A tree of messages from `root`: who has the data gives it to half of those left.
inline kernel::Status SpreadFrom(const Call& call, int root, void* data, std::int64_t bytes) {
  const int ranks = call.ranks();
  const int place = (call.rank() - root + ranks) % ranks;
  int distance = 1;
  while (distance < ranks && (place & distance) == 0) distance *= 2;
  if (place != 0) {
    const int from = (place - distance + root) % ranks;
    if (kernel::Status s = ReceiveFrom(call, from, data, bytes); !s.ok()) return s;
  }
  Exchange exchange(call.world, call.communicator(), call.tag);
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance < ranks) exchange.Send((place + distance + root) % ranks, data, bytes);
  }
  return exchange.Wait();
}

}  // namespace rewire::collective
