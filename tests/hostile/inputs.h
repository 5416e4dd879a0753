// SPDX-License-Identifier: Apache-2.0
// Inputs for a function that nobody knows: what its signature asks for, with sizes and elements that a number
// decides. Tensors lie in guarded memory that cannot be written through the address that the program gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/executable_format/module.h"
#include "rewire/tests/hostile/dice.h"
#include "rewire/tests/hostile/guarded_memory.h"
#include "rewire/vm/vm.h"

namespace rewire::hostile {

class Inputs {
 public:
  // Nothing: it takes something that a host cannot make (a closure, a storage), or more memory than there is.
  static std::optional<Inputs> For(const Module& module, const Function& function, GuardedMemory& memory,
                                   Dice& dice);

  // For all the parameters of a module; nothing as above.
  static std::optional<ParameterSet> Parameters(const Module& module, GuardedMemory& memory, Dice& dice);

  // Sets them. `writable`: through the address that may be written, where an output is to overlap one.
  Status Set(VirtualMachine& vm, std::uint32_t function, bool writable) const;
  // Whether all bytes are as they were made; and makes them so again.
  bool Unchanged() const;
  void Restore() const;

  // The memory of an input that is a tensor; none otherwise.
  const GuardedBlock* Block(std::size_t input) const;
  std::size_t size() const { return inputs_.size(); }

 private:
  struct Input {
    std::optional<TensorView> view;  // read-only address
    GuardedBlock block;
    Value value;  // where it is no tensor by itself
  };
  struct Bytes {
    GuardedBlock block;
    std::string content;
  };
  class Maker;

  std::vector<Input> inputs_;
  std::vector<Bytes> bytes_;
};

}  // namespace rewire::hostile
