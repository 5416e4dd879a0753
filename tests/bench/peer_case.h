// SPDX-License-Identifier: Apache-2.0
// The inputs of a model and the outputs that are expected, as files, and how far a peer's outputs are from
// these.
#pragma once

#include <filesystem>

#include "rewire/tests/bench/peer.h"

namespace rewire::bench {

struct PeerCase {
  NamedTensors inputs;
  NamedTensors expected;
};

// Reads in/NAME.npy, and out/NUMBER.npy for each name of out/names.json. Throws std::runtime_error.
PeerCase ReadCase(const std::filesystem::path& folder);

// Memory like the expected values', for a peer to write to.
NamedTensors MakeOutputs(const NamedTensors& expected);

// The largest difference of an element from the expected one, in parts of the largest element. An element
// that is a number on one side alone is infinitely far.
double TensorApart(const HostTensor& output, const HostTensor& expected);

// The same over outputs of float32. Elements of other types may be positions, which are right or wrong.
double FloatsApart(const NamedTensors& outputs, const NamedTensors& expected);

// The same over all outputs.
double AllApart(const NamedTensors& outputs, const NamedTensors& expected);

}  // namespace rewire::bench
