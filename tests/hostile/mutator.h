// SPDX-License-Identifier: Apache-2.0
// Makes hostile files out of sound ones. Every mutant is a sound program with a few changes, which a number
// decides. Its checksums are right, so that the reader does not refuse it before the changes take effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/tests/hostile/dice.h"
#include "rewire/tests/hostile/program.h"

namespace rewire::hostile {

struct Seed {
  std::string name;
  Program program;
};

struct Mutant {
  Bytes file;
  std::string seed;               // the name of what it was
  std::vector<std::string> what;  // the changes
};

// The pool that the changes may draw from.
struct Pool {
  const std::vector<Seed>* seeds = nullptr;
  std::vector<std::string> kernel_names;
};

class Mutator {
 public:
  // `seeds` and what `pool` names must outlive it. At least one seed.
  explicit Mutator(Pool pool) : pool_(std::move(pool)) {}

  // How many changes a mutant's number makes.
  std::uint32_t Changes(std::uint64_t number) const;
  // The mutant of this number. `without` are changes that are left out, to find the least that matters.
  Mutant Make(std::uint64_t number, const std::vector<bool>& without = {}) const;

 private:
  Pool pool_;
};

// One change each; they say what they did, or nothing where the program has no such place.
std::string ChangeCode(Program& program, const Pool& pool, Dice& dice);
std::string ChangeTables(Program& program, const Pool& pool, Dice& dice);
std::string ChangeSignatures(Program& program, Dice& dice);
std::string Splice(Program& program, const Program& other, Dice& dice);
std::string DamageContainer(Container& container, Dice& dice);

// Shared by them.
std::uint32_t AnyDType(Dice& dice);
// Changes one dimension, drops one or adds one.
void ChangeDims(std::vector<std::int64_t>& dims, Dice& dice);
// Bytes of an element, as docs/format.md packs dtypes; at least 1.
std::uint64_t ElementBytes(std::uint32_t dtype);

}  // namespace rewire::hostile
