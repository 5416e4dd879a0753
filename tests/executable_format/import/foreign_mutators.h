// SPDX-License-Identifier: Apache-2.0
// Ways to damage a good foreign file. Damage knows nothing of the format; the others keep so much of it right
// that readers get past the first check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rewire::tvm {

using Random = std::mt19937_64;

// Below `limit`, 0 when that is 0.
std::uint64_t Below(Random& random, std::uint64_t limit);

// Cuts, flips, overwrites with odd numbers, moves pieces.
std::string Damage(std::string bytes, Random& random);

// Relay VM executables: where the words of each instruction begin, and a file with one field of one of them
// changed and its hash made right.
std::vector<std::size_t> FindInstructions(const std::string& file);
std::string ChangeField(std::string file, std::size_t place, Random& random);

// JSON: values replaced by odd ones, elements repeated, moved and left out. `text` must be JSON.
std::string ChangeJson(const std::string& text, Random& random);

// Shared libraries: one to three fields of the headers, of the dynamic table or of what it points at.
std::string ChangeElf(std::string file, Random& random);

}  // namespace rewire::tvm
