// SPDX-License-Identifier: Apache-2.0
// --trace: every instruction before it is executed, with what its operands hold.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/observer.h"

namespace rewire::tools {

struct TraceEntry {
  const Module& module;
  const std::string& function;
  std::uint32_t pc;     // word index
  std::uint32_t depth;  // active calls, 1 for the invoked function
  std::string text;     // the instruction
  struct Operand {
    std::string name;   // "%image"
    std::string holds;  // "f32[1, 8]"
  };
  std::vector<Operand> operands;  // registers that are read, each once, in order
};

// "main@12   %3 = invoke_packed add(%image, %1, %2), outputs=1   ; %image f32[1, 8], ...": indented by depth.
std::string TraceText(const TraceEntry& entry);

// Passes each entry to `sink`.
class Tracer : public Observer {
 public:
  explicit Tracer(std::function<void(const TraceEntry&)> sink) : sink_(std::move(sink)) {}

  bool wants_instructions() const override { return true; }
  void OnInstruction(const Instruction& instruction) override;

 private:
  std::function<void(const TraceEntry&)> sink_;
  const Module* module_ = nullptr;  // of printer_
  std::unique_ptr<InstructionPrinter> printer_;
};

}  // namespace rewire::tools
