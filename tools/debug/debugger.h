// SPDX-License-Identifier: Apache-2.0
//
// The work of vm-debug, after its command line is parsed. docs/vm-debug.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/tools/debug/call_stack.h"
#include "rewire/tools/debug/commands.h"
#include "rewire/tools/debug/line_source.h"
#include "rewire/tools/debug/run_inputs.h"
#include "rewire/tools/debug/stops.h"
#include "rewire/tools/record/nan_maker.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::tools {

struct DebugOptions {
  std::string file;      // any model that OpenModel takes
  std::string model;     // of a bundle; empty: the only one
  std::string map;       // of vm-strip: names for a stripped executable; may be empty
  std::string function;  // empty: the entry
  InputOptions inputs;
  bool trust_device_code = false;
  std::vector<std::string> kernels;
  std::vector<std::string> parameters;
  std::int32_t threads = 0;          // of kernels; 0: one per core
  std::vector<std::string> scripts;  // -x: files of commands, which come first
  bool json = false;                 // an object a command: "command", "text", and "error" if it fails
};

// Runs a session, with commands from the scripts, then from standard input. Prints to standard output.
// Returns 0. In a script or a pipe, the first command that fails ends the session with its error; a run that
// fails does not.
Result<int> Debug(const DebugOptions& options);

// A session with one linked program. The VM calls OnInstruction before every instruction. There the debugger
// decides whether to stop, and if so reads commands until one lets the run go on.
class Debugger final : private Observer {
 public:
  Debugger(const Program& program, std::uint32_t function, const InputOptions& inputs, bool json);
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  // Sources are read in order, each to its end.
  Status Session(std::vector<std::unique_ptr<LineSource>> sources);
  // The commands, functions, nodes and registers that complete a line.
  std::vector<std::string> Completions(const std::string& line) const;

 private:
  bool wants_instructions() const override { return true; }
  bool wants_kernels() const override { return true; }
  void OnInstruction(const Instruction& instruction) override;
  void OnKernel(const KernelCall& call) override;

  void ReadCommand();
  Status Execute(const std::string& line);
  Status ExecuteCommand(CommandId id, const std::string& argument);
  void RunOnce();
  void StopHere(const std::string& reason);
  void ReportEnd(const Status& invoked);

  // debugger_commands.cc: what runs and stops.
  Status Go(Pace pace, const std::string& count);
  Status Begin(bool stop_at_once);
  Status RunTo(const std::string& place);
  Status Break(const std::string& place);
  Status WatchRegister(const std::string& name);
  Status Catch(const std::string& what);
  Status Delete(const std::string& what);
  Status SelectFunction(const std::string& name);
  Status Select(std::int64_t outwards);
  Status Help(const std::string& word) const;

  // debugger_views.cc: what is shown.
  Status ShowStack() const;
  Status ShowCode(const std::string& argument) const;
  Status ShowRegisters(const std::string& names) const;
  Status ShowRegister(const std::string& name) const;
  Status ShowOutputs(const std::string& name) const;
  Status Save(const std::string& argument) const;
  std::string InstructionLine(const Site& site, bool marks) const;
  void ShowNextInstruction() const;

  Status CheckStopped() const;
  // The function that names of registers refer to.
  std::uint32_t function_here() const;
  Result<Value> Find(const std::string& name, RegisterPath* path) const;
  // Nothing is printed any more once that has failed. With --json, the text waits for Answer.
  void Print(const std::string& text) const;
  void Flush() const;
  // With --json, prints the object of the last command.
  void Answer(const Status& done);

  const Program program_;
  const Module& module_;
  std::uint32_t function_;
  RunInputs inputs_;
  const bool json_;
  const bool unicode_;
  const bool colored_;
  InstructionPrinter printer_;
  VirtualMachine vm_;
  CallStack stack_;
  Stops stops_;
  NanMaker nan_maker_;                                // of what `catch` catches
  std::uint32_t selected_ = 0;                        // of the stack, outwards
  std::vector<std::unique_ptr<LineSource>> sources_;  // the next one last
  std::string repeated_;                              // what an empty line stands for
  std::string command_;                               // what --json has still to answer
  mutable std::string answer_;                        // what it has printed so far
  std::string pending_;         // why the run stops before its next instruction, learnt from a kernel
  std::uint64_t executed_ = 0;  // instructions of this run
  bool catches_nan_ = false;
  bool catches_infinity_ = false;
  mutable int cannot_print_ = 0;  // errno of the first failure
  bool running_ = false;
  bool begin_ = false;   // a run is to begin
  bool resume_ = false;  // the run is to go on
  bool quit_ = false;
  Status failed_;  // what ends the session
};

}  // namespace rewire::tools
