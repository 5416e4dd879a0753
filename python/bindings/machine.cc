// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.VirtualMachine: inputs and outputs that stay bound from run to run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <map>
#include <string>
#include <utility>
#include <variant>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

namespace rewire::python {
namespace {

// A machine, and which of its inputs lie in memory that Python must not see written.
class Machine {
 public:
  explicit Machine(PythonProgram& program) : program_(program), machine_(program.program()) {}

  VirtualMachine& operator*() { return machine_; }
  VirtualMachine* operator->() { return &machine_; }
  const VirtualMachine* operator->() const { return &machine_; }

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

  void SetInput(nb::handle input, nb::handle value, bool copy, nb::handle function) {
    const InputHandle handle = FindInput(input, function);
    const CallPlan& plan = PlanOf(function);
    const std::string& what = plan.input_texts[handle.index];
    const std::pair<std::uint32_t, std::uint32_t> place(handle.function, handle.index);
    Value* adt = nullptr;
    if ((nb::try_cast(value, adt) && adt != nullptr) || plan.input_is_integer[handle.index]) {
      ThrowIf(machine_.TrySetInput(handle, ImportValue(value, true, what)));
      state_[place].read_only = false;
      return;
    }
    const Imported found = Import(value, Access::kRead, what);
    State& state = state_[place];
    if (state.donated && found.read_only && !copy) {
      Raise(Error(StatusCode::kInvalidArgument,
                  what + ": it is donated, so a run writes it, and the array is read-only"));
    }
    if (copy) {
      ThrowIf(machine_.TrySetInput(handle, found.tensor.view(), InputMode::kCopy));
    } else {
      ThrowIf(machine_.TrySetInput(handle, Value(found.tensor)));
    }
    state.read_only = found.read_only && !copy;
  }

  void Donate(nb::handle input, nb::handle output, nb::handle function) {
    const InputHandle from = FindInput(input, function);
    State& state = state_[{from.function, from.index}];
    if (state.read_only) {
      Raise(Error(StatusCode::kInvalidArgument, PlanOf(function).input_texts[from.index] +
                                                    ": the array is read-only, and a run would write it"));
    }
    ThrowIf(machine_.TryDonate(from, FindOutput(output, function)));
    state.donated = true;
  }

  void Invoke(nb::handle function, nb::handle timeout) {
    DropCause();
    if (!timeout.is_none()) ThrowIf(machine_.TrySetDeadline(DeadlineOf(timeout)));
    const std::string_view name = FunctionName(function);
    Status status = RunWithoutGil(&machine_, [&] { return machine_.TryInvoke(name); });
    if (!timeout.is_none()) {
      const Status without = machine_.TrySetDeadline(std::chrono::steady_clock::time_point::max());
      if (status) status = without;
    }
    ThrowIf(status);
  }

 private:
  struct State {
    bool read_only = false;
    bool donated = false;
  };
  PythonProgram& program_;  // kept by the machine's Python object
  VirtualMachine machine_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, State> state_;
};

void SetOutput(Machine& self, nb::handle output, nb::handle value, nb::handle function) {
  const OutputHandle handle = self.FindOutput(output, function);
  if (value.is_none()) {
    ThrowIf(self->TryClearOutput(handle));
    return;
  }
  const std::string what = "output " + nb::cast<std::string>(nb::str(output));
  ThrowIf(self->TrySetOutput(handle, Import(value, Access::kWrite, what).tensor));
}

nb::object Output(Machine& self, nb::handle output) {
  if (PyLong_Check(output.ptr()) != 0)
    return ToPython(Take(self->TryOutput(nb::cast<std::uint32_t>(output))));
  return ToPython(Take(self->TryOutput(nb::cast<std::string_view>(output))));
}

nb::object Report(const OutputReport& report) { return nb::make_tuple(report.copied, report.reason); }

}  // namespace

void AddMachine(nb::module_& module) {
  nb::class_<Machine>(
      module, "VirtualMachine",
      "Runs functions of a program with inputs and outputs that stay set from run to run. One\n"
      "thread at a time; only cancel() may be called by another thread during a run.")
      .def(nb::init<PythonProgram&>(), nb::arg("program"), nb::keep_alive<1, 2>())
      .def("set_input", &Machine::SetInput, nb::arg("input"), nb::arg("value"), nb::arg("copy") = false,
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
      .def("donate", &Machine::Donate, nb::arg("input"), nb::arg("output"), nb::arg("function") = nb::none(),
           "Lets an output take the memory of an input, which a run then overwrites: state updated in place.")
      .def("invoke", &Machine::Invoke, nb::arg("function") = nb::none(), nb::arg("timeout") = nb::none(),
           "Runs a function with what is set; None is the entry. `timeout` is in seconds. The GIL is not "
           "held.")
      .def(
          "cancel", [](Machine& self) { self->Cancel(); },
          "Ends the run that is going on, which then raises CancelledError. Any thread may call it.")
      .def("output", &Output, nb::arg("output"),
           "Returns an output of the last run, by name or place: an array over its memory.")
      .def(
          "outputs",
          [](Machine& self, nb::handle function) {
            return ReadOutputs(self.PlanOf(function), *self, nullptr);
          },
          nb::arg("function") = nb::none(), "Returns all outputs of the last run, a dict by name.")
      .def(
          "output_report",
          [](Machine& self, nb::handle output, nb::handle function) {
            return Report(Take(self->TryOutputReport(self.FindOutput(output, function))));
          },
          nb::arg("output"), nb::arg("function") = nb::none(),
          "Returns whether the last run copied a bound output, and why.")
      .def(
          "require_zero_copy",
          [](Machine& self, bool required) { ThrowIf(self->TryRequireZeroCopy(required)); },
          nb::arg("required") = true, "Makes a run fail that would have to copy an output.")
      .def(
          "set_limits",
          [](Machine& self, nb::handle steps, nb::handle bytes) {
            Limits limits;
            if (!steps.is_none()) limits.steps = nb::cast<std::uint64_t>(steps);
            if (!bytes.is_none()) limits.bytes = nb::cast<std::uint64_t>(bytes);
            ThrowIf(self->TrySetLimits(limits));
          },
          nb::arg("steps") = nb::none(), nb::arg("bytes") = nb::none(),
          "Limits the instructions and the memory of each run. None: no limit.")
      .def(
          "clear_inputs",
          [](Machine& self, nb::handle function) { ThrowIf(self->TryClearInputs(FunctionName(function))); },
          nb::arg("function") = nb::none(), "Forgets the inputs that are set, and lets go of the arrays.")
      .def(
          "clear_outputs",
          [](Machine& self, nb::handle function) { ThrowIf(self->TryClearOutputs(FunctionName(function))); },
          nb::arg("function") = nb::none(), "Lets the machine allocate all outputs again.")
      .def(
          "trim", [](Machine& self) { ThrowIf(self->TryTrim()); },
          "Releases all memory that no live value uses, the last result included.")
      .def_prop_ro(
          "bytes_held", [](const Machine& self) { return self->bytes_held(); },
          "Bytes that the machine holds now.")
      .def_prop_ro(
          "bytes_peak", [](const Machine& self) { return self->bytes_peak(); },
          "The most bytes that it has held.");
}

}  // namespace rewire::python
