// SPDX-License-Identifier: Apache-2.0
//
// Collectives: kernels by which the processes of a job, its ranks, exchange tensors. Their names, attributes,
// dtypes and the shapes of their outputs, for the libraries that have them and for the compiler.
//
// No argument says who a rank is or how many there are: the library knows that when it runs. Every rank makes
// the same calls in the same order on each channel. So a pass may neither drop such a call nor move it past
// another one, though its result may be unused: IsCollective tells them. Their rows call them impure.
//
// The VM makes no call whose only output has no elements. So nothing is sent of a tensor without elements,
// and parts of a reduce_scatter have at least one, or none has any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rewire/kernels/contract/names.h"

namespace rewire::names {

// x -> out over x: op over the x of all ranks, element by element.
inline constexpr char kAllReduce[] = "rewire.collective.all_reduce";
// x -> out: the x of all ranks, in the order of ranks, one after another along the axis.
inline constexpr char kAllGather[] = "rewire.collective.all_gather";
// x -> out: this rank's part along the axis of op over the x of all ranks.
inline constexpr char kReduceScatter[] = "rewire.collective.reduce_scatter";
// x -> out over x: the x of the rank `root`.
inline constexpr char kBroadcast[] = "rewire.collective.broadcast";
// x -> sent: x goes to the rank `peer`; sent, one i64, is the number of its elements.
inline constexpr char kSend[] = "rewire.collective.send";
// after? -> out: what the rank `peer` sends, with the dtype and shape of out. `after` is not read: an edge of
// a graph by which the call comes after another one.
inline constexpr char kReceive[] = "rewire.collective.receive";

// Devices alone have the two that follow. x -> begun over x: what all_reduce gives, once `wait` has been
// called. Work that comes between the two calls runs at the same time, if it uses neither x nor `begun`.
inline constexpr char kBeginAllReduce[] = "rewire.device.collective.begin_all_reduce";
// begun, x? -> out over begun: `begun` when the exchange is done that gives it. `x` is not read: an argument
// of the call that began, whose memory must stay until then.
inline constexpr char kWaitForExchange[] = "rewire.device.collective.wait";

constexpr bool IsCollective(std::string_view name) {
  return IsStock(name) && StartsWith(Stem(name), "collective.");
}

}  // namespace rewire::names

namespace rewire::contract {

// Reductions take numbers of these dtypes. f16 and bf16 are sent and reduced as f32 and rounded once, at the
// end. Integers wrap.
inline constexpr char kReducedDTypes[] = "f32 f64 f16 bf16 i32 i64 u8";
// The other kernels move elements of 1, 2, 4, 8 or 16 bytes.
inline constexpr char kMovedDTypes[] = "any";

// The largest channel and the largest tag: what MPI promises of tags.
inline constexpr std::int64_t kMostChannel = 32767;
inline constexpr std::int64_t kMostTag = 32767;

// A maximum or minimum of which a part is NaN is NaN. A mean is the sum divided by the number of ranks, and
// is one of floats: integers are refused.
enum class CollectiveOp { kSum, kMax, kMin, kMean };

// `Given` reads attributes by Int, Ints, Choice and Require, as kernel::Attributes does.

template <typename Given>
CollectiveOp ReadCollectiveOp(Given& given) {
  return static_cast<CollectiveOp>(given.Choice("op", {"sum", "max", "min", "mean"}, 0));
}
// Programs that one process runs at the same time have channels of their own. Calls of several channels are
// in no order. Send and receive have tags in place of it.
template <typename Given>
std::int64_t ReadChannel(Given& given) {
  return given.Int("channel", 0, 0, kMostChannel);
}

struct WaitAttributes {
  std::int64_t channel = 0;  // of the call that began

  template <typename Given>
  void Read(Given& given) {
    channel = ReadChannel(given);
  }
};

// begin_all_reduce has these, too.
struct AllReduceAttributes {
  CollectiveOp op = CollectiveOp::kSum;
  std::int64_t channel = 0;

  template <typename Given>
  void Read(Given& given) {
    op = ReadCollectiveOp(given);
    channel = ReadChannel(given);
  }
};

// An axis that is cut into one part for each rank.
struct AxisPartsAttributes {
  std::int64_t axis = 0;            // a negative one counts from the end
  std::vector<std::int64_t> sizes;  // of each rank's part along the axis; empty: all are equal
  std::int64_t channel = 0;

  template <typename Given>
  void Read(Given& given) {
    axis = given.Int("axis", 0);
    sizes = given.Ints("sizes", {});
    channel = ReadChannel(given);
  }
};

using AllGatherAttributes = AxisPartsAttributes;

struct ReduceScatterAttributes : AxisPartsAttributes {
  CollectiveOp op = CollectiveOp::kSum;

  template <typename Given>
  void Read(Given& given) {
    AxisPartsAttributes::Read(given);
    op = ReadCollectiveOp(given);
  }
};

struct BroadcastAttributes {
  std::int64_t root = 0;
  std::int64_t channel = 0;

  template <typename Given>
  void Read(Given& given) {
    root = given.Int("root", 0, 0);
    channel = ReadChannel(given);
  }
};

// Send and receive have these. The peer is another rank. Messages of one tag between two ranks arrive in the
// order in which they were sent.
struct PeerAttributes {
  std::int64_t peer = 0;
  std::int64_t tag = 0;

  template <typename Given>
  void Read(Given& given) {
    given.Require("peer");
    peer = given.Int("peer", 0, 0);
    tag = given.Int("tag", 0, 0, kMostTag);
  }
};

// The elements along the axis of the part of `rank`. `whole` is the size of the whole axis, which `ranks`
// divides where `sizes` is empty.
inline std::int64_t PartSize(const std::vector<std::int64_t>& sizes, std::int64_t whole, std::int64_t ranks,
                             std::int64_t rank) {
  return sizes.empty() ? whole / ranks : sizes[static_cast<std::size_t>(rank)];
}

// The size along the axis of all parts together, of which this rank's is `part`.
inline std::int64_t WholeSize(const std::vector<std::int64_t>& sizes, std::int64_t part, std::int64_t ranks) {
  if (sizes.empty()) return part * ranks;
  std::int64_t whole = 0;
  for (const std::int64_t size : sizes) whole += size;
  return whole;
}

// Returns where the part of `rank` begins along the axis.
inline std::int64_t PartBegin(const std::vector<std::int64_t>& sizes, std::int64_t whole, std::int64_t ranks,
                              std::int64_t rank) {
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < rank; ++i) begin += PartSize(sizes, whole, ranks, i);
  return begin;
}

}  // namespace rewire::contract
