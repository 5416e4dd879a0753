// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.VirtualMachine: inputs and outputs that stay bound from run to run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstdint>
#include <string>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

namespace rewire::python {
namespace {

class Hold;

// A VirtualMachine, which one call at a time may use. Only a Hold gives it. All calls begin and end with the
// GIL held, so that a plain bool says whether there is one.
class Machine {
 public:
  explicit Machine(PythonProgram& program) : program_(program), machine_(program.program()) {}

  // Any thread may call these at any time.
  void Cancel() { machine_.Cancel(); }
  std::uint64_t bytes_held() const { return machine_.bytes_held(); }
  std::uint64_t bytes_peak() const { return machine_.bytes_peak(); }

  // The plan of the program, which never changes.
  const CallPlan& PlanOf(nb::handle function) { return program_.PlanOf(FunctionName(function)); }
  InputHandle FindInput(nb::handle input, nb::handle function) const {
    const std::string_view name = FunctionName(function);
    if (PyLong_Check(input.ptr()) != 0) {
      return Take(program_.program().FindInput(nb::cast<std::uint32_t>(input), name));
    }
    return Take(program_.program().FindInput(nb::cast<std::string_view>(input), name));
  }
  OutputHandle FindOutput(nb::handle output, nb::handle function) const {
    const std::string_view name = FunctionName(function);
    if (PyLong_Check(output.ptr()) != 0) {
      return Take(program_.program().FindOutput(nb::cast<std::uint32_t>(output), name));
    }
    return Take(program_.program().FindOutput(nb::cast<std::string_view>(output), name));
  }

 private:
  friend class Hold;
  PythonProgram& program_;  // kept by the machine's Python object
  VirtualMachine machine_;
  bool held_ = false;
};

// The machine for one call, also while that call lets go of the GIL. Others get BusyError meanwhile: other
// threads, and code of Python that the call itself runs, such as a kernel or a finalizer. Calls that only
// look need a hold, too. A look at a result changes its reference counts.
class Hold {
 public:
  explicit Hold(Machine& machine) : machine_(machine) {
    if (machine.held_) {
      Raise(Error(StatusCode::kBusy,
                  "this VirtualMachine is in use by another call; one thread at a time may use it (make one "
                  "per thread, they share the program)"));
    }
    machine.held_ = true;
  }
  ~Hold() { machine_.held_ = false; }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  VirtualMachine& operator*() { return machine_.machine_; }
  VirtualMachine* operator->() { return &machine_.machine_; }

 private:
  Machine& machine_;
};

void SetInput(Machine& self, nb::handle input, nb::handle value, bool copy, nb::handle function) {
  const InputHandle handle = self.FindInput(input, function);
  const CallPlan& plan = self.PlanOf(function);
  const Value given = ImportValue(value, plan.input_is_integer[handle.index], plan.input_texts[handle.index]);
  Hold machine(self);
  if (copy && given.kind() == ValueKind::kTensor) {
    ThrowIf(machine->TrySetInput(handle, given.tensor().view(), InputMode::kCopy));
  } else {
    ThrowIf(machine->TrySetInput(handle, given));
  }
}

void SetOutput(Machine& self, nb::handle output, nb::handle value, nb::handle function) {
  const OutputHandle handle = self.FindOutput(output, function);
  if (value.is_none()) {
    ThrowIf(Hold(self)->TryClearOutput(handle));
    return;
  }
  const std::string what = "output " + nb::cast<std::string>(nb::str(output));
  const Tensor given = Import(value, Access::kWrite, what);
  ThrowIf(Hold(self)->TrySetOutput(handle, given));
}

void Donate(Machine& self, nb::handle input, nb::handle output, nb::handle function) {
  const InputHandle from = self.FindInput(input, function);
  const OutputHandle to = self.FindOutput(output, function);
  ThrowIf(Hold(self)->TryDonate(from, to));
}

void Invoke(Machine& self, nb::handle function, nb::handle timeout) {
  const std::string_view name = FunctionName(function);
  Hold machine(self);
  DropCause();
  if (!timeout.is_none()) ThrowIf(machine->TrySetDeadline(DeadlineOf(timeout)));
  Status status = RunWithoutGil(&*machine, [&] { return machine->TryInvoke(name); });
  if (!timeout.is_none()) {
    const Status without = machine->TrySetDeadline(std::chrono::steady_clock::time_point::max());
    if (status) status = without;
  }
  ThrowIf(status);
}

nb::object Output(Machine& self, nb::handle output) {
  const Value value = PyLong_Check(output.ptr()) != 0
                          ? Take(Hold(self)->TryOutput(nb::cast<std::uint32_t>(output)))
                          : Take(Hold(self)->TryOutput(nb::cast<std::string_view>(output)));
  return ToPython(value);
}

nb::dict Outputs(Machine& self, nb::handle function) {
  const CallPlan& plan = self.PlanOf(function);
  Hold machine(self);
  return ReadOutputs(plan, *machine);
}

void SetLimits(Machine& self, nb::handle steps, nb::handle bytes) {
  Limits limits;
  if (!steps.is_none()) limits.steps = nb::cast<std::uint64_t>(steps);
  if (!bytes.is_none()) limits.bytes = nb::cast<std::uint64_t>(bytes);
  ThrowIf(Hold(self)->TrySetLimits(limits));
}

nb::object Report(const OutputReport& report) { return nb::make_tuple(report.copied, report.reason); }

}  // namespace

void AddMachine(nb::module_& module) {
  nb::class_<Machine>(
      module, "VirtualMachine",
      "Runs functions of a program with inputs and outputs that stay set from run to run. One\n"
      "thread at a time: during a run every call but cancel(), bytes_held and bytes_peak raises\n"
      "BusyError, on another thread and inside a Python kernel of the run.")
      .def(nb::init<PythonProgram&>(), nb::arg("program"), nb::keep_alive<1, 2>())
      .def("set_input", &SetInput, nb::arg("input"), nb::arg("value"), nb::arg("copy") = false,
           nb::arg("function") = nb::none(),
           "Sets an input, by name or place, until it is set again. The array is kept and read when a "
           "function\n"
           "runs; with copy=True its elements are copied now. Raises InvalidArgumentError if it does not "
           "match.")
      .def("set_output", &SetOutput, nb::arg("output"), nb::arg("value").none(),
           nb::arg("function") = nb::none(),
           "Lets runs write an output, by name or place, into this writable array, which is kept. None lets "
           "the\n"
           "machine allocate it again. Raises InvalidArgumentError if it does not match.")
      .def("donate", &Donate, nb::arg("input"), nb::arg("output"), nb::arg("function") = nb::none(),
           "Lets an output take the memory of an input, which a run then overwrites: state updated in place.")
      .def("invoke", &Invoke, nb::arg("function") = nb::none(), nb::arg("timeout") = nb::none(),
           "Runs a function with what is set; None is the entry. `timeout` is in seconds. The GIL is not "
           "held.")
      .def("cancel", &Machine::Cancel,
           "Ends the run that is going on, which then raises CancelledError. Any thread may call it.")
      .def("output", &Output, nb::arg("output"),
           "Returns an output of the last run, by name or place: an array over its memory.")
      .def("outputs", &Outputs, nb::arg("function") = nb::none(),
           "Returns all outputs of the last run, a dict by name.")
      .def(
          "output_report",
          [](Machine& self, nb::handle output, nb::handle function) {
            const OutputHandle handle = self.FindOutput(output, function);
            return Report(Take(Hold(self)->TryOutputReport(handle)));
          },
          nb::arg("output"), nb::arg("function") = nb::none(),
          "Returns whether the last run copied a bound output, and why.")
      .def(
          "require_zero_copy",
          [](Machine& self, bool required) { ThrowIf(Hold(self)->TryRequireZeroCopy(required)); },
          nb::arg("required") = true, "Makes a run fail that would have to copy an output.")
      .def("set_limits", &SetLimits, nb::arg("steps") = nb::none(), nb::arg("bytes") = nb::none(),
           "Limits the instructions and the memory of each run. None: no limit.")
      .def(
          "clear_inputs",
          [](Machine& self, nb::handle function) {
            ThrowIf(Hold(self)->TryClearInputs(FunctionName(function)));
          },
          nb::arg("function") = nb::none(), "Forgets the inputs that are set, and lets go of the arrays.")
      .def(
          "clear_outputs",
          [](Machine& self, nb::handle function) {
            ThrowIf(Hold(self)->TryClearOutputs(FunctionName(function)));
          },
          nb::arg("function") = nb::none(), "Lets the machine allocate all outputs again.")
      .def(
          "trim", [](Machine& self) { ThrowIf(Hold(self)->TryTrim()); },
          "Releases all memory that no live value uses, the last result included.")
      .def_prop_ro("bytes_held", &Machine::bytes_held,
                   "Bytes that the machine holds now. Any thread may ask during a run.")
      .def_prop_ro("bytes_peak", &Machine::bytes_peak,
                   "The most bytes that it has held. Any thread may ask during a run.");
}

}  // namespace rewire::python
