// SPDX-License-Identifier: Apache-2.0
//
// The places that a generator's state has for positions: how many there are, and what stands in them. All of
// it is for versions of a model with a CacheLayout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/serve/core/cache_block.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/models/model_version.h"
#include "rewire/serve/run/sequence_state.h"

namespace rewire::serve {

// The places of a state in which `total` positions are to be written: some more, so that a state grows
// seldom.
std::int64_t RoomFor(const ModelVersion& model, std::int64_t total);
// The places that a state has.
std::int64_t RoomOf(const ModelVersion& model, const Sequence& sequence);

// Gives a state that is no row of a block so many places. Errors: kOutOfMemory; then it is as it was.
Status GrowState(const ModelVersion& model, std::int64_t room, Sequence* sequence);

// Writes blocks into the first places of a state that is no row of a block. Errors: kInvalidArgument if the
// rest of the state had another shape behind the prompt that the blocks are of.
Status WriteBlocks(const ModelVersion& model, const CacheBlocks& blocks, Sequence* sequence);

// Copies what a step is to keep into CacheStep::kept. `data` is where each tensor of its state begins.
void KeepBlocks(const ModelVersion& model, const std::vector<const std::byte*>& data, Request* request);

}  // namespace rewire::serve
