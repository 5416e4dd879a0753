// SPDX-License-Identifier: Apache-2.0
//
// The rows of the kernels of collectives, which are the same whatever carries the bytes.
#pragma once

#include "rewire/kernels/contract/collective.h"
#include "rewire/kernels/cpu/registry.h"

namespace rewire::collective {

template <class AllReduce, class ReduceScatter>
inline constexpr kernel::cpu::Kernel kReduceRows[] = {
    kernel::cpu::Describe<AllReduce>("x -> out over x", contract::kReducedDTypes,
                                     "op = sum, max, min or mean, channel = 0",
                                     "op over the x of all ranks, element by element", kernel::cpu::kImpure),
    kernel::cpu::Describe<ReduceScatter>("x -> out", contract::kReducedDTypes,
                                         "axis = 0, sizes = equal, op = sum, max, min or mean, channel = 0",
                                         "this rank's part along the axis of op over the x of all ranks",
                                         kernel::cpu::kImpure),
};

template <class AllGather, class Broadcast, class Send, class Receive>
inline constexpr kernel::cpu::Kernel kMoveRows[] = {
    kernel::cpu::Describe<AllGather>(
        "x -> out", contract::kMovedDTypes, "axis = 0, sizes = equal, channel = 0",
        "the x of all ranks one after another along the axis, in the order of ranks", kernel::cpu::kImpure),
    kernel::cpu::Describe<Broadcast>("x -> out over x", contract::kMovedDTypes, "root = 0, channel = 0",
                                     "the x of the rank root; that of others is not read",
                                     kernel::cpu::kImpure),
    kernel::cpu::Describe<Send>(
        "x -> sent", "x any; sent i64", "peer, tag = 0",
        "sends x to the rank peer; sent, of one element, is the number of its elements",
        kernel::cpu::kImpure),
    kernel::cpu::Describe<Receive>(
        "after? -> out", "after any; out any", "peer, tag = 0",
        "what the rank peer sends, of out's dtype and shape; after is not read, and says what comes before",
        kernel::cpu::kImpure),
};

}  // namespace rewire::collective
