// SPDX-License-Identifier: Apache-2.0
//
// Steps that all kernels of this folder take around their work.
#pragma once

#include <cstdint>

#include "rewire/integrations/collective/nccl/communicator.h"
#include "rewire/integrations/collective/nccl/device_checks.h"

namespace rewire::collective {

inline std::int64_t BytesOf(kernel::TensorView tensor) { return tensor.size() * tensor.element_bytes(); }

// A call of this process as a rank of its job.
struct NcclCall {
  Job* job = nullptr;
  DeviceStream run;

  // Begins the call of a kernel with this tensor.
  static kernel::Status Begin(kernel::TensorView tensor, NcclCall* call) {
    if (kernel::Status s = Job::Get(&call->job); !s.ok()) return s;
    return DeviceStream::Of(tensor, &call->run);
  }
  int rank() const { return job->rank(); }
  int ranks() const { return job->ranks(); }

  kernel::Status CopyTo(kernel::TensorView out, kernel::TensorView x) const {
    return run.Copy(out.raw_data(), x.raw_data(), BytesOf(x), run.stream);
  }
  // Communicator::Do, DoBegin and Join on that of the group.
  template <typename Body>
  kernel::Status Do(const Group& group, const char* name, const Body& body) const {
    Communicator* communicator = nullptr;
    if (kernel::Status s = Communicator::Get(*job, group, run, &communicator); !s.ok()) return s;
    return communicator->Do(run, name, body);
  }
  template <typename Body>
  kernel::Status DoBegin(const Group& group, const char* name, const void* memory, const Body& body) const {
    Communicator* communicator = nullptr;
    if (kernel::Status s = Communicator::Get(*job, group, run, &communicator); !s.ok()) return s;
    return communicator->DoBegin(run, name, memory, body);
  }
  kernel::Status Join(const Group& group, const void* memory) const {
    Communicator* communicator = nullptr;
    if (kernel::Status s = Communicator::Get(*job, group, run, &communicator); !s.ok()) return s;
    return communicator->Join(run, memory);
  }
};

}  // namespace rewire::collective
