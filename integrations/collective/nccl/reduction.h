// SPDX-License-Identifier: Apache-2.0
//
// Reductions as NCCL knows them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/integrations/collective/nccl/calls.h"
#include "rewire/kernels/contract/collective.h"

namespace rewire::collective {

struct Reduction {
  int type = 0;
  int op = 0;
};

inline kernel::Status ReductionOf(contract::CollectiveOp op, kernel::TensorView x, Reduction* reduction) {
  using contract::CollectiveOp;
  if (kernel::Status s = NcclTypeOf("x", x, &reduction->type); !s.ok()) return s;
  switch (op) {
    case CollectiveOp::kSum:
      reduction->op = kNcclSum;
      break;
    case CollectiveOp::kMax:
      reduction->op = kNcclMax;
      break;
    case CollectiveOp::kMin:
      reduction->op = kNcclMin;
      break;
    case CollectiveOp::kMean:
      reduction->op = kNcclMean;
      if (x.dtype().code == kDLFloat || x.dtype().code == kDLBfloat) break;
      return kernel::TypeError("op mean takes floats, and x has dtype ", kernel::DTypeName(x.dtype()),
                               "; take sum, and divide it");
  }
  return kernel::Status();
}

inline kernel::Status GiveAllReduce(Communicator& communicator, const Reduction& reduction, const void* x,
                                    void* out, std::int64_t count) {
  return communicator.Call("ncclAllReduce", [&](const NcclFunctions& nccl, void* comm) {
    return nccl.ncclAllReduce(x, out, static_cast<std::size_t>(count), reduction.type, reduction.op, comm,
                              communicator.stream());
  });
}

// A call of all_reduce, whose output is named `out_name`: checks it, and gives the work by
// run(call, group, body), where body(communicator) gives it to the communicator's stream.
template <typename Run>
kernel::Status ReduceOnAll(const contract::AllReduceAttributes& attributes, const char* out_name,
                           kernel::TensorView x, kernel::TensorView out, const Run& run) {
  CudaChecks checks;
  checks.On("x", x).Like(out_name, out, "x", x).Shape(out_name, out, x.dims());
  if (kernel::Status s = checks.Take(); !s.ok()) return s;
  Reduction reduction;
  if (kernel::Status s = ReductionOf(attributes.op, x, &reduction); !s.ok()) return s;
  NcclCall call;
  if (kernel::Status s = NcclCall::Begin(x, &call); !s.ok()) return s;
  if (call.ranks() == 1 || x.size() == 0) return call.CopyTo(out, x);
  return run(call, Group{static_cast<int>(attributes.channel)}, [&](Communicator& communicator) {
    return GiveAllReduce(communicator, reduction, x.raw_data(), out.raw_data(), x.size());
  });
}

}  // namespace rewire::collective
