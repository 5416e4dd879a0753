// SPDX-License-Identifier: Apache-2.0
// Reductions over ranks, on devices.
#include "rewire/integrations/collective/axis_parts.h"
#include "rewire/integrations/collective/nccl/calls.h"
#include "rewire/integrations/collective/nccl/reduction.h"
#include "rewire/integrations/collective/nccl/registry.h"
#include "rewire/integrations/collective/rows.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/with_attributes.h"
#include "rewire/kernels/device/call/scratch.h"

namespace rewire::collective {
namespace {

using kernel::Status;
using kernel::TensorView;

struct AllReduce : kernel::WithAttributes<contract::AllReduceAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kAllReduce>;

  Status operator()(TensorView x, TensorView out) const {
    return ReduceOnAll(*this, "out", x, out, [](const NcclCall& call, const Group& group, const auto& body) {
      return call.Do(group, kName, body);
    });
  }
};

struct ReduceScatter : kernel::WithAttributes<contract::ReduceScatterAttributes> {
  static constexpr const char* kName = names::kOnDevice<names::kReduceScatter>;

  Status operator()(TensorView x, TensorView out) const {
    CudaChecks checks;
    checks.On("x", x).Like("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    Reduction reduction;
    if (Status s = ReductionOf(op, x, &reduction); !s.ok()) return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(x, &call); !s.ok()) return s;
    AxisParts parts;
    if (Status s = CheckParts(*this, "out", out, "x", x, call.rank(), call.ranks(), 1, &parts); !s.ok())
      return s;
    if (call.ranks() == 1 || x.size() == 0) return call.CopyTo(out, x);
    const Group group{static_cast<int>(channel)};
    if (sizes.empty() && parts.outer == 1) {
      return call.Do(group, kName, [&](Communicator& communicator) {
        return communicator.Call("ncclReduceScatter", [&](const NcclFunctions& nccl, void* comm) {
          return nccl.ncclReduceScatter(x.raw_data(), out.raw_data(), static_cast<std::size_t>(out.size()),
                                        reduction.type, reduction.op, comm, communicator.stream());
        });
      });
    }
    // NCCL scatters equal parts that lie one after another. Others are taken from a whole reduction.
    kernel::device::Scratch whole;
    if (Status s = whole.Make(x, x.dtype(), x.size()); !s.ok()) return s;
    return call.Do(group, kName, [&](Communicator& communicator) {
      Status given = GiveAllReduce(communicator, reduction, x.raw_data(), whole.view().raw_data(), x.size());
      if (!given.ok()) return given;
      return TakePart(call, parts, whole.view(), out, communicator.stream());
    });
  }

 private:
  static Status TakePart(const NcclCall& call, const AxisParts& parts, TensorView whole, TensorView out,
                         void* stream) {
    const std::int64_t before = parts.Before(call.rank()) * out.element_bytes();
    Status copied;
    const auto copy = [&](std::int64_t in_rows, std::int64_t in_parts, std::int64_t bytes) {
      if (!copied.ok()) return;
      copied = call.run.Copy(static_cast<char*>(out.raw_data()) + (in_parts - before),
                             static_cast<const char*>(whole.raw_data()) + in_rows, bytes, stream);
    };
    Status done = ForStretches(parts, call.rank(), out.element_bytes(), copy);
    return done.ok() ? std::move(copied) : std::move(done);
  }
};

}  // namespace

std::span<const kernel::cpu::Kernel> NcclReduceKernels() { return kReduceRows<AllReduce, ReduceScatter>; }

}  // namespace rewire::collective
