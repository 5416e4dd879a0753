// SPDX-License-Identifier: Apache-2.0
// Runs of one function with one set of inputs: the first as it is, the others in the host's memory, compared
// with the first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rewire/tests/hostile/dice.h"
#include "rewire/tests/hostile/guarded_memory.h"
#include "rewire/tests/hostile/inputs.h"
#include "rewire/tests/hostile/snapshot.h"
#include "rewire/vm/vm.h"

namespace rewire::hostile {

// The limits that a stranger's program is given.
Limits RunLimits();

class FunctionRuns {
 public:
  // A program that gives the same where memory lies otherwise: with other contents of unwritten memory, and
  // with each tensor in a storage of its own (storages_apart.h).
  enum class Variant : std::uint8_t { kPoisoned, kApart };
  using Linker = std::function<Result<Program>(Variant variant)>;

  // All must outlive it. `link` makes variants of the program; it is asked when a difference has been found.
  FunctionRuns(const Program& program, Linker link, std::uint32_t function, const Inputs& inputs,
               GuardedMemory& memory, Dice& dice);

  // Whether it gave a result, which the others are held against.
  bool Unbound();
  // Each output is bound in some way, or not. False when there was none to bind.
  bool Bound();
  // An output over an input, or in its place.
  void OverInputs();
  // After an unbound run that failed: outputs bound as the signature says must fail too, and harm nothing.
  void BoundAsDeclared();

  // The answer of the unbound run.
  std::string answer() const;
  std::vector<std::string>& faults() { return faults_; }
  // Calls that took longer than their deadline allows.
  std::vector<std::string>& slow() { return slow_; }

 private:
  struct Binding;

  // Invokes, and looks at time and memory. `what` is for messages.
  Status Invoke(VirtualMachine& vm, const char* what);
  // Checks what holds after a run: nothing that is the host's has changed, all memory comes back.
  void CheckAfter(VirtualMachine& vm, std::uint64_t held, const char* what, bool inputs_change);
  void Fault(const char* kind, const std::string& what);
  Status Bind(VirtualMachine& vm, std::uint32_t leaf, Binding& binding);
  bool Choose(std::uint32_t leaf, Binding& binding);
  // Whether the unbound run gave what the signature says; nobody checks it, and other memory cannot be bound.
  bool IsAsDeclared(std::uint32_t leaf) const;
  // False, and a fault, where a value is another than unbound.
  bool Compare(VirtualMachine& vm, const std::vector<Binding>& bindings);
  // Whether unbound runs give the same again and again, variants of the program too, so that a difference
  // says something.
  bool IsStable();
  bool GivesTheSame(const Program& program);

  const Program& program_;
  const Linker link_;
  const std::uint32_t function_;
  const Function& signature_;
  const Inputs& inputs_;
  GuardedMemory& memory_;
  Dice& dice_;
  std::uint32_t leaf_count_;
  Status first_;
  std::vector<Snapshot> leaves_;  // of the unbound run
  Snapshot result_;
  std::vector<std::string> faults_, slow_;
};

}  // namespace rewire::hostile
