// SPDX-License-Identifier: Apache-2.0
//
// Steps that all kernels of this folder take around their messages.
#pragma once

#include <cstdint>
#include <cstring>

#include "rewire/integrations/collective/world.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::collective {

// Calls body(world) for a call that all ranks make on a channel, or on none if it is negative. If it fails,
// this process has left, since the others wait for it.
template <typename Body>
kernel::Status AsRank(std::int64_t channel, const Body& body) {
  World* world = nullptr;
  if (kernel::Status s = World::Get(&world); !s.ok()) return s;
  if (channel < 0) return body(*world);
  const ChannelUse use(*world, channel);
  if (kernel::Status s = use.status(); !s.ok()) return s;
  return body(*world);
}

// For a failure in the midst of a call.
inline kernel::Status Left(World& world, kernel::Status status) {
  if (status.ok() || world.ranks() == 1) return status;
  world.Leave(status.kind() == nullptr ? "the rank has no memory for the call" : status.message());
  return status;
}

inline std::int64_t BytesOf(kernel::TensorView tensor) { return tensor.size() * tensor.element_bytes(); }

inline kernel::Status CopyTo(kernel::TensorView out, kernel::TensorView x) {
  if (out.raw_data() == x.raw_data()) return kernel::Status();
  return kernel::cpu::CopyAll(out.raw_data(), x.raw_data(), BytesOf(x));
}

}  // namespace rewire::collective
