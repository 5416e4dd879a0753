// SPDX-License-Identifier: Apache-2.0
//
// The checks of send and receive, whatever carries the bytes.
#pragma once

#include <cstdint>

#include "rewire/vm/kernel/status.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::collective {

// Refuses a peer that is no other rank.
inline kernel::Status CheckPeer(std::int64_t peer, int rank, int ranks) {
  if (peer < ranks && peer != rank) return kernel::Status();
  return kernel::ValueError("attribute 'peer' is ", peer, ", expected another rank; this is rank ", rank,
                            " of ", ranks);
}

// Refuses a tensor that cannot hold the number of elements that were sent.
inline kernel::Status CheckSent(kernel::TensorView sent) {
  if (sent.Is<std::int64_t>() && sent.size() == 1) return kernel::Status();
  return kernel::ValueError("sent has dtype ", kernel::DTypeName(sent.dtype()), " and shape ", sent.dims(),
                            ", expected one i64");
}

}  // namespace rewire::collective
