// SPDX-License-Identifier: Apache-2.0
// Tensors that go from rank to rank as they are.
#include <cstring>
#include <optional>

#include "rewire/integrations/collective/algorithms.h"
#include "rewire/integrations/collective/axis_parts.h"
#include "rewire/integrations/collective/calls.h"
#include "rewire/integrations/collective/message_checks.h"
#include "rewire/integrations/collective/registry.h"
#include "rewire/integrations/collective/rows.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::collective {
namespace {

using kernel::Status;
using kernel::TensorView;
using kernel::cpu::Checks;

struct AllGather : kernel::WithAttributes<contract::AllGatherAttributes> {
  static constexpr const char* kName = names::kAllGather;

  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    return AsRank(channel, [&](World& world) {
      AxisParts parts;
      if (Status s = CheckParts(*this, "x", x, "out", out, world.rank(), world.ranks(), 0, &parts); !s.ok())
        return s;
      if (world.ranks() == 1 || out.size() == 0) return CopyTo(out, x);
      return Left(world, Gather(Call{world, static_cast<int>(channel)}, parts, x, out));
    });
  }

 private:
  static Status Gather(const Call& call, const AxisParts& parts, TensorView x, TensorView out) {
    const std::int64_t width = x.element_bytes();
    // Parts of several rows arrive one after another, and are then put where they belong.
    char* arrived = static_cast<char*>(out.raw_data());
    if (parts.outer != 1) {
      if (Status s = kernel::cpu::Workspace(kernel::cpu::Times(parts.all(), width), &arrived); !s.ok())
        return s;
    }
    char* const own = arrived + parts.Before(call.rank()) * width;
    if (Status s = kernel::cpu::CopyAll(own, x.raw_data(), BytesOf(x)); !s.ok()) return s;
    const auto begin = [&](int rank) { return parts.Before(rank) * width; };
    if (Status s = GatherParts(call, arrived, begin); !s.ok()) return s;
    for (int rank = 0; rank < call.ranks() && parts.outer != 1; ++rank) {
      const auto copy = [&](std::int64_t in_rows, std::int64_t in_parts, std::int64_t bytes) {
        std::memcpy(static_cast<char*>(out.raw_data()) + in_rows, arrived + in_parts,
                    static_cast<std::size_t>(bytes));
      };
      if (Status s = ForStretches(parts, rank, width, copy); !s.ok()) return s;
    }
    return Status();
  }
};

struct Broadcast : kernel::WithAttributes<contract::BroadcastAttributes> {
  static constexpr const char* kName = names::kBroadcast;

  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).Shape("out", out, x.dims()).SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    return AsRank(channel, [&](World& world) {
      if (root >= world.ranks()) {
        return kernel::ValueError("attribute 'root' is ", root, ", expected a rank; there are ",
                                  world.ranks());
      }
      if (x.size() == 0) return Status();
      if (world.rank() == root) {
        if (Status s = CopyTo(out, x); !s.ok()) return Left(world, std::move(s));
      }
      const Call call{world, static_cast<int>(channel)};
      return Left(world, SpreadFrom(call, static_cast<int>(root), out.raw_data(), BytesOf(out)));
    });
  }
};

// Send and receive.
struct WithPeer : kernel::WithAttributes<contract::PeerAttributes> {
  // Calls message(exchange, peer).
  template <typename Message>
  Status Do(const Message& message) const {
    return AsRank(-1, [&](World& world) {
      if (Status s = CheckPeer(peer, world.rank(), world.ranks()); !s.ok()) return s;
      Exchange exchange(world, world.communicator(World::Lane::kMessages), static_cast<int>(tag));
      message(exchange, static_cast<int>(peer));
      return Left(world, exchange.Wait());
    });
  }
};

struct Send : WithPeer {
  static constexpr const char* kName = names::kSend;

  Status operator()(TensorView x, TensorView sent) const {
    Checks checks;
    checks.Dense("x", x).Dense("sent", sent).NoOverlap("sent", sent, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (Status s = CheckSent(sent); !s.ok()) return s;
    *sent.data<std::int64_t>() = x.size();
    if (x.size() == 0) return Status();  // the VM makes no call of a receive without elements
    return Do([&](Exchange& exchange, int to) { exchange.Send(to, x.raw_data(), BytesOf(x)); });
  }
};

struct Receive : WithPeer {
  static constexpr const char* kName = names::kReceive;

  Status operator()(std::optional<TensorView> /*after*/, TensorView out) const {
    if (Status s = kernel::cpu::CheckDense("out", out); !s.ok()) return s;
    return Do([&](Exchange& exchange, int from) { exchange.Receive(from, out.raw_data(), BytesOf(out)); });
  }
};

}  // namespace

std::span<const kernel::cpu::Kernel> MoveKernels() { return kMoveRows<AllGather, Broadcast, Send, Receive>; }

}  // namespace rewire::collective
