// SPDX-License-Identifier: Apache-2.0
// Tensors that go from rank to rank as they are, on devices.
#include <optional>

#include "rewire/integrations/collective/axis_parts.h"
#include "rewire/integrations/collective/message_checks.h"
#include "rewire/integrations/collective/nccl/calls.h"
#include "rewire/integrations/collective/nccl/registry.h"
#include "rewire/integrations/collective/rows.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/call/scratch.h"

namespace rewire::collective {
namespace {

using kernel::Status;
using kernel::TensorView;

// Elements of any dtype go as bytes.
std::size_t CountOf(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

struct AllGather : kernel::WithAttributes<contract::AllGatherAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kAllGather>;

  Status operator()(TensorView x, TensorView out) const {
    CudaChecks checks;
    checks.On("x", x).Like("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(out, &call); !s.ok()) return s;
    AxisParts parts;
    if (Status s = CheckParts(*this, "x", x, "out", out, call.rank(), call.ranks(), 0, &parts); !s.ok())
      return s;
    if (call.ranks() == 1 || out.size() == 0) return call.CopyTo(out, x);
    // Parts of several rows arrive one after another, and are then put where they belong.
    kernel::device::Scratch arrived;
    if (parts.outer != 1) {
      if (Status s = arrived.Make(out, out.dtype(), out.size()); !s.ok()) return s;
    }
    char* const to = static_cast<char*>(parts.outer != 1 ? arrived.view().raw_data() : out.raw_data());
    return call.Do({static_cast<int>(channel)}, kName, [&](Communicator& communicator) {
      Status given =
          sizes.empty() ? GatherEqual(communicator, x, to) : GatherParts(communicator, parts, call, x, to);
      if (!given.ok() || parts.outer == 1) return given;
      return PutRows(call, parts, to, out, communicator.stream());
    });
  }

 private:
  static Status GatherEqual(Communicator& communicator, TensorView x, char* to) {
    return communicator.Call("ncclAllGather", [&](const NcclFunctions& nccl, void* comm) {
      return nccl.ncclAllGather(x.raw_data(), to, CountOf(BytesOf(x)), kNcclInt8, comm,
                                communicator.stream());
    });
  }

  // NCCL gathers equal parts alone. So each rank broadcasts its own, all at once.
  static Status GatherParts(Communicator& communicator, const AxisParts& parts, const NcclCall& call,
                            TensorView x, char* to) {
    const std::int64_t width = x.element_bytes();
    return communicator.Call("ncclBroadcast", [&](const NcclFunctions& nccl, void* comm) {
      int result = nccl.ncclGroupStart();
      for (int rank = 0; rank < call.ranks() && result == kNcclSuccess; ++rank) {
        const std::int64_t bytes = (parts.Before(rank + 1) - parts.Before(rank)) * width;
        char* const part = to + parts.Before(rank) * width;
        if (bytes == 0) continue;
        result = nccl.ncclBroadcast(rank == call.rank() ? x.raw_data() : part, part, CountOf(bytes),
                                    kNcclInt8, rank, comm, communicator.stream());
        if (result == kNcclInProgress) result = kNcclSuccess;
      }
      const int ended = nccl.ncclGroupEnd();
      return result == kNcclSuccess ? ended : result;
    });
  }

  static Status PutRows(const NcclCall& call, const AxisParts& parts, const char* arrived, TensorView out,
                        void* stream) {
    Status copied;
    const auto copy = [&](std::int64_t in_rows, std::int64_t in_parts, std::int64_t bytes) {
      if (!copied.ok()) return;
      copied = call.run.Copy(static_cast<char*>(out.raw_data()) + in_rows, arrived + in_parts, bytes, stream);
    };
    for (int rank = 0; rank < call.ranks() && copied.ok(); ++rank) {
      if (Status s = ForStretches(parts, rank, out.element_bytes(), copy); !s.ok()) return s;
    }
    return copied;
  }
};

struct Broadcast : kernel::WithAttributes<contract::BroadcastAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kBroadcast>;

  Status operator()(TensorView x, TensorView out) const {
    CudaChecks checks;
    if (Status s = checks.On("x", x).Like("out", out, "x", x).Shape("out", out, x.dims()).Take(); !s.ok())
      return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(x, &call); !s.ok()) return s;
    if (root >= call.ranks()) {
      return kernel::ValueError("attribute 'root' is ", root, ", expected a rank; there are ", call.ranks());
    }
    if (call.ranks() == 1 || x.size() == 0) return call.CopyTo(out, x);
    return call.Do({static_cast<int>(channel)}, kName, [&](Communicator& communicator) {
      return communicator.Call("ncclBroadcast", [&](const NcclFunctions& nccl, void* comm) {
        return nccl.ncclBroadcast(x.raw_data(), out.raw_data(), CountOf(BytesOf(x)), kNcclInt8,
                                  static_cast<int>(root), comm, communicator.stream());
      });
    });
  }
};

// Send and receive.
struct WithPeer : kernel::WithAttributes<contract::PeerAttributes> {
  // Calls give(nccl, comm, peer, stream), in which the peer's number is that of the pair.
  template <typename Give>
  Status Do(const NcclCall& call, const char* name, const char* function, const Give& give) const {
    if (Status s = CheckPeer(peer, call.rank(), call.ranks()); !s.ok()) return s;
    const int other = call.rank() < peer ? 1 : 0;
    return call.Do({static_cast<int>(tag), static_cast<int>(peer)}, name, [&](Communicator& communicator) {
      return communicator.Call(function, [&](const NcclFunctions& nccl, void* comm) {
        return give(nccl, comm, other, communicator.stream());
      });
    });
  }
};

struct Send : WithPeer {
  static constexpr const char* kName = names::kOnDevice<names::kSend>;

  Status operator()(TensorView x, TensorView sent) const {
    CudaChecks checks;
    if (Status s = checks.On("x", x).On("sent", sent).NoOverlap("sent", sent, "x", x).Take(); !s.ok())
      return s;
    if (Status s = CheckSent(sent); !s.ok()) return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(x, &call); !s.ok()) return s;
    if (Status s = WriteCount(call.run, sent.raw_data(), x.size()); !s.ok()) return s;
    if (x.size() == 0) return Status();  // the VM makes no call of a receive without elements
    return Do(call, kName, "ncclSend", [&](const NcclFunctions& nccl, void* comm, int to, void* stream) {
      return nccl.ncclSend(x.raw_data(), CountOf(BytesOf(x)), kNcclInt8, to, comm, stream);
    });
  }

 private:
  static Status WriteCount(const DeviceStream& run, void* to, std::int64_t count) {
    const std::uint32_t words[] = {static_cast<std::uint32_t>(count),
                                   static_cast<std::uint32_t>(count >> 32)};
    for (std::size_t i = 0; i < 2; ++i) {
      void* const word = static_cast<char*>(to) + i * sizeof(std::uint32_t);
      Status s = run.Check(run.api->fill(run.api->context, run.device, word, sizeof(std::uint32_t), &words[i],
                                         sizeof(std::uint32_t), run.stream));
      if (!s.ok()) return s;
    }
    return Status();
  }
};

struct Receive : WithPeer {
  static constexpr const char* kName = names::kOnDevice<names::kReceive>;

  Status operator()(std::optional<TensorView> /*after*/, TensorView out) const {
    if (Status s = CudaChecks().On("out", out).Take(); !s.ok()) return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(out, &call); !s.ok()) return s;
    return Do(call, kName, "ncclRecv", [&](const NcclFunctions& nccl, void* comm, int from, void* stream) {
      return nccl.ncclRecv(out.raw_data(), CountOf(BytesOf(out)), kNcclInt8, from, comm, stream);
    });
  }
};

}  // namespace

std::span<const kernel::cpu::Kernel> NcclMoveKernels() {
  return kMoveRows<AllGather, Broadcast, Send, Receive>;
}

}  // namespace rewire::collective
