// SPDX-License-Identifier: Apache-2.0
//
// PythonProgram: a Program, the machines that its calls run on, and its names as Python strings.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/vm/program.h"
#include "rewire/vm/virtual_machine.h"

namespace rewire::python {

namespace nb = nanobind;

// A function of a program: what a call needs of its signature.
struct CallPlan {
  std::uint32_t function = 0;
  std::string name;
  std::vector<nb::object> input_names;
  std::vector<bool> input_is_integer;
  std::vector<std::string> input_texts;  // "function main, input 0 (x)", for errors
  std::vector<nb::object> output_names;
};

class PythonProgram {
 public:
  explicit PythonProgram(Program program);

  const Program& program() const { return program_; }
  // The plan of a function; the empty name means the entry. Raises NotFoundError.
  const CallPlan& PlanOf(std::string_view function);

  // A machine that no other call uses, and its return.
  std::unique_ptr<VirtualMachine> Borrow();
  void Return(std::unique_ptr<VirtualMachine> machine);

 private:
  Program program_;
  std::vector<std::unique_ptr<CallPlan>> plans_;  // under the GIL
  std::mutex mutex_;
  std::vector<std::unique_ptr<VirtualMachine>> idle_;
};

// The inputs of a call, from positional and named arguments; one argument that is a dict has the names.
std::vector<Value> ReadInputs(const CallPlan& plan, const nb::args& args, const nb::kwargs& kwargs);

// The results of a machine's last run as a dict by name.
nb::dict ReadOutputs(const CallPlan& plan, const VirtualMachine& machine);

// The time at which a run with this timeout ends; None: never. Raises InvalidArgumentError if it is negative.
std::chrono::steady_clock::time_point DeadlineOf(nb::handle timeout);

// The function's name as a program understands it; None means the entry.
std::string_view FunctionName(nb::handle function);

void AddProgram(nb::module_& module);
void AddMachine(nb::module_& module);
void AddExecutable(nb::module_& module);
void AddCompiler(nb::module_& module);
void AddParameters(nb::module_& module);
void AddProfile(nb::module_& module);
void AddTools(nb::module_& module);

// A packed function that calls a Python function with numpy arrays, ints, floats and strings.
PackedFunction MakePythonKernel(nb::object function);

}  // namespace rewire::python
