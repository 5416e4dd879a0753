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
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::collective {

// A call on a channel.
struct Call {
  World& world;
  int tag;

  int rank() const { return world.rank(); }
  int ranks() const { return world.ranks(); }
  MPI_Comm communicator() const { return world.communicator(World::Lane::kCollectives); }
};

// Up to so many bytes, a reduction takes few messages rather than short ones. Open MPI sends messages below
// 4 KiB, with its header, at once. Between machines a message costs as much as some 60 KB of it.
inline constexpr std::int64_t kFewBytes = 4000;
inline constexpr std::int64_t kFewBytesBetweenMachines = 65536;

template <typename T>
bool IsFew(const Call& call, std::int64_t count) {
  const std::int64_t bytes = call.world.is_one_machine() ? kFewBytes : kFewBytesBetweenMachines;
  return count <= bytes / static_cast<std::int64_t>(sizeof(T));
}

// One message to `peer` and one from it; none of no bytes.
inline kernel::Status Swap(const Call& call, int peer, const void* sent, std::int64_t sent_bytes,
                           void* received, std::int64_t received_bytes) {
  Exchange exchange(call.world, call.communicator(), call.tag);
  if (received_bytes > 0) exchange.Receive(peer, received, received_bytes);
  if (sent_bytes > 0) exchange.Send(peer, sent, sent_bytes);
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

// Combine, which asks from time to time whether to go on.
template <typename T>
kernel::Status CombineAll(CollectiveOp op, const T* a, const T* b, T* into, std::int64_t count) {
  return kernel::cpu::SerialFor(count, 1, [=](std::int64_t begin, std::int64_t end) {
    Combine(op, a + begin, b + begin, into + begin, end - begin);
  });
}

// out = op over the x of all ranks, by recursive doubling: pairs of ranks, then pairs of pairs, exchange
// everything. Ranks beyond a power of two lend their elements to a neighbor. x may be `out`; `received` is
// scratch memory of `count` elements.
template <typename T>
kernel::Status ReduceByDoubling(const Call& call, CollectiveOp op, const T* x, T* out, std::int64_t count,
                                T* received) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
  const int rank = call.rank();
  int power = 1;
  while (power * 2 <= call.ranks()) power *= 2;
  const int rest = call.ranks() - power;
  const bool has_neighbor = rank < 2 * rest;
  if (has_neighbor && rank % 2 == 0) {
    if (kernel::Status s = SendTo(call, rank + 1, x, bytes); !s.ok()) return s;
    return ReceiveFrom(call, rank + 1, out, bytes);
  }
  const T* reduced = x;
  if (has_neighbor) {
    if (kernel::Status s = ReceiveFrom(call, rank - 1, received, bytes); !s.ok()) return s;
    if (kernel::Status s = CombineAll<T>(op, received, reduced, out, count); !s.ok()) return s;
    reduced = out;
  }
  const int place = has_neighbor ? rank / 2 : rank - rest;
  for (int distance = 1; distance < power; distance *= 2) {
    const int other = place ^ distance;
    const int peer = other < rest ? 2 * other + 1 : other + rest;
    if (kernel::Status s = Swap(call, peer, reduced, bytes, received, bytes); !s.ok()) return s;
    const T* const first = other < place ? received : reduced;
    const T* const second = other < place ? reduced : received;
    if (kernel::Status s = CombineAll<T>(op, first, second, out, count); !s.ok()) return s;
    reduced = out;
  }
  return has_neighbor ? SendTo(call, rank - 1, out, bytes) : kernel::Status();
}

// The same for 2, 4, 8... ranks with half the bytes of each exchange that follows: halves, quarters and so
// on, until each rank has reduced a part, and the same way back (Rabenseifner's algorithm). `received` is
// scratch memory of half the elements, rounded up.
template <typename T>
kernel::Status ReduceByHalving(const Call& call, CollectiveOp op, const T* x, T* out, std::int64_t count,
                               T* received) {
  constexpr std::int64_t kBytes = sizeof(T);
  const int rank = call.rank(), ranks = call.ranks();
  // Part i of 2^k parts has the elements [begin(i), begin(i + 1)).
  const auto begin = [&](int i) { return count / ranks * i + std::min<std::int64_t>(count % ranks, i); };
  const T* reduced = x;
  for (int distance = ranks / 2; distance > 0; distance /= 2) {
    const int peer = rank ^ distance;
    const int own = rank & -distance, others = peer & -distance;  // the first parts of both halves
    const std::int64_t kept = begin(own + distance) - begin(own);
    const std::int64_t given = begin(others + distance) - begin(others);
    kernel::Status swapped =
        Swap(call, peer, reduced + begin(others), given * kBytes, received, kept * kBytes);
    if (!swapped.ok()) return swapped;
    const T* const mine = reduced + begin(own);
    const T* const first = peer < rank ? received : mine;
    const T* const second = peer < rank ? mine : received;
    if (kernel::Status s = CombineAll<T>(op, first, second, out + begin(own), kept); !s.ok()) return s;
    reduced = out;
  }
  if (kernel::Status s = FinishReduction(op, out + begin(rank), begin(rank + 1) - begin(rank), ranks);
      !s.ok())
    return s;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int peer = rank ^ distance;
    const int own = rank & -distance, others = peer & -distance;
    const std::int64_t sent = begin(own + distance) - begin(own);
    const std::int64_t arriving = begin(others + distance) - begin(others);
    kernel::Status swapped =
        Swap(call, peer, out + begin(own), sent * kBytes, out + begin(others), arriving * kBytes);
    if (!swapped.ok()) return swapped;
  }
  return kernel::Status();
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
    if (kernel::Status s = CombineAll<T>(op, reduced, received, own, count); !s.ok()) return s;
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

// The elements of scratch memory that ReduceAll takes.
template <typename T>
std::int64_t ScratchOf(const Call& call, std::int64_t count) {
  return IsFew<T>(call, count) ? count : count / 2 + 1;
}

// out = op over the x of all ranks; a mean is finished. x may be `out`.
template <typename T>
kernel::Status ReduceAll(const Call& call, CollectiveOp op, const T* x, T* out, std::int64_t count,
                         T* received) {
  const int rank = call.rank(), ranks = call.ranks();
  if (IsFew<T>(call, count)) {
    if (kernel::Status s = ReduceByDoubling(call, op, x, out, count, received); !s.ok()) return s;
    return FinishReduction(op, out, count, ranks);
  }
  if ((ranks & (ranks - 1)) == 0) return ReduceByHalving(call, op, x, out, count, received);
  const auto begin = [&](int i) { return count / ranks * i + std::min<std::int64_t>(count % ranks, i); };
  T* const own = out + begin(rank);
  if (kernel::Status s = ReduceParts(call, op, x, begin, own, received); !s.ok()) return s;
  if (kernel::Status s = FinishReduction(op, own, begin(rank + 1) - begin(rank), ranks); !s.ok()) return s;
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
