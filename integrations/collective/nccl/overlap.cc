// SPDX-License-Identifier: Apache-2.0
// Exchanges that go on beside the run's own work, on devices.
#include <optional>

#include "rewire/integrations/collective/nccl/calls.h"
#include "rewire/integrations/collective/nccl/reduction.h"
#include "rewire/integrations/collective/nccl/registry.h"
#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::collective {
namespace {

using kernel::Status;
using kernel::TensorView;

struct BeginAllReduce : kernel::WithAttributes<contract::AllReduceAttributes> {
  static constexpr const char* kName = names::kBeginAllReduce;

  Status operator()(TensorView x, TensorView begun) const {
    return ReduceOnAll(*this, "begun", x, begun,
                       [&](const NcclCall& call, const Group& group, const auto& body) {
                         return call.DoBegin(group, kName, begun.raw_data(), body);
                       });
  }
};

struct WaitForExchange : kernel::WithAttributes<contract::WaitAttributes> {
  static constexpr const char* kName = names::kWaitForExchange;

  Status operator()(TensorView begun, std::optional<TensorView> /*x*/, TensorView out) const {
    CudaChecks checks;
    checks.On("begun", begun).Like("out", out, "begun", begun).Shape("out", out, begun.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    NcclCall call;
    if (Status s = NcclCall::Begin(begun, &call); !s.ok()) return s;
    if (call.ranks() > 1) {
      if (Status s = call.Join({static_cast<int>(channel)}, begun.raw_data()); !s.ok()) return s;
    }
    return call.CopyTo(out, begun);
  }
};

constexpr kernel::cpu::Kernel kOverlapRows[] = {
    kernel::cpu::Describe<BeginAllReduce>("x -> begun over x", contract::kReducedDTypes,
                                          "op = sum, max, min or mean, channel = 0",
                                          "begins an all_reduce; only `wait` may use begun, and nothing may "
                                          "write x before it",
                                          kernel::cpu::kImpure),
    kernel::cpu::Describe<WaitForExchange>(
        "begun, x? -> out over begun", contract::kMovedDTypes, "channel = 0",
        "begun when its exchange is done; x is not read, and stays until then", kernel::cpu::kImpure),
};

}  // namespace

std::span<const kernel::cpu::Kernel> NcclOverlapKernels() { return kOverlapRows; }

}  // namespace rewire::collective
