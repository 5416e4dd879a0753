// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.VirtualMachine: inputs and outputs that stay bound from run to run.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

namespace rewire::python {
namespace {

class Hold;

// Memory that was given for an output of any size. Results lie in it after it is no longer bound, too.
struct Capacity {
  OutputHandle output;
  Tensor memory;
  bool bound = true;
  bool has_results = false;
};

// A VirtualMachine, which one call at a time may use. Only a Hold gives it. All calls begin and end with the
// GIL held, so that a plain bool says whether there is one.
class Machine {
 public:
  explicit Machine(nb::handle program)
      : owner_(nb::borrow(program)),
        program_(ToObject<PythonProgram>(program, "program", "a rewire.Program")),
        machine_(program_.program()) {}

  // Any thread may call these at any time.
  void Cancel() { machine_.Cancel(); }
  const Program& program() const { return program_.program(); }
  std::uint64_t bytes_held() const { return machine_.bytes_held(); }
  std::uint64_t bytes_peak() const { return machine_.bytes_peak(); }

  // The plan of the program, which never changes.
  const CallPlan& PlanOf(nb::handle function) { return program_.PlanOf(FunctionName(function)); }
  InputHandle FindInput(nb::handle input, nb::handle function) const {
    const std::string_view name = FunctionName(function);
    if (PyLong_Check(input.ptr()) != 0)
      return Take(program_.program().FindInput(ToPlace(input, "input"), name));
    return Take(program_.program().FindInput(ToText(input, "input"), name));
  }
  OutputHandle FindOutput(nb::handle output, nb::handle function) const {
    const std::string_view name = FunctionName(function);
    if (PyLong_Check(output.ptr()) != 0) {
      return Take(program_.program().FindOutput(ToPlace(output, "output"), name));
    }
    return Take(program_.program().FindOutput(ToText(output, "output"), name));
  }

 private:
  friend class Hold;
  friend class Capacities;
  nb::object owner_;  // of the program
  PythonProgram& program_;
  VirtualMachine machine_;
  bool held_ = false;
  std::vector<Capacity> capacities_;
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

// The capacities that a machine keeps, for whoever holds it.
class Capacities {
 public:
  explicit Capacities(Machine& machine) : all_(machine.capacities_) {}

  void Add(OutputHandle output, Tensor memory) { all_.push_back({output, std::move(memory)}); }
  // The output is bound to something else, or to nothing.
  void Unbind(OutputHandle output) {
    for (Capacity& each : all_) {
      if (each.output.function == output.function && each.output.leaf == output.leaf) each.bound = false;
    }
    std::erase_if(all_, [](const Capacity& each) { return !each.bound && !each.has_results; });
  }
  // Earlier results are gone.
  void Ran() {
    std::erase_if(all_, [](const Capacity& each) { return !each.bound; });
    for (Capacity& each : all_) each.has_results = true;
  }
  // A result as an object of Python, which keeps the memory alive that it lies in.
  nb::object ToPython(const Value& value) const {
    if (value.kind() != ValueKind::kTensor) return python::ToPython(value);
    const auto* const data = static_cast<const std::byte*>(value.tensor().view().data());
    for (const Capacity& each : all_) {
      const auto* const begin = static_cast<const std::byte*>(each.memory.view().data());
      const bool inside =
          std::less_equal<>()(begin, data) && std::less<>()(data, begin + each.memory.view().bytes());
      if (each.has_results && inside) return ToNumpyIn(value.tensor(), each.memory);
    }
    return python::ToPython(value);
  }

 private:
  std::vector<Capacity>& all_;
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
  const std::string what = "output " + nb::cast<std::string>(nb::str(output));
  Hold machine(self);
  Capacities capacities(self);
  if (value.is_none()) {
    ThrowIf(machine->TryClearOutput(handle));
    capacities.Unbind(handle);
  } else if (nb::isinstance(value, nb::module_::import_("rewire").attr("Capacity"))) {
    Tensor memory = ImportCapacity(value.attr("array"), what);
    ThrowIf(machine->TrySetOutput(handle, OutputCapacity{memory.view().data(), memory.view().bytes()}));
    capacities.Unbind(handle);
    capacities.Add(handle, std::move(memory));
  } else {
    ThrowIf(machine->TrySetOutput(handle, Import(value, Access::kWrite, what)));
    capacities.Unbind(handle);
  }
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
  if (status || !machine->TryOutput(0)) Capacities(self).Ran();
  if (!timeout.is_none()) {
    const Status without = machine->TrySetDeadline(std::chrono::steady_clock::time_point::max());
    if (status) status = without;
  }
  ThrowIf(status);
}

nb::object Output(Machine& self, nb::handle output) {
  Hold machine(self);
  const Value value = PyLong_Check(output.ptr()) != 0 ? Take(machine->TryOutput(ToPlace(output, "output")))
                                                      : Take(machine->TryOutput(ToText(output, "output")));
  return Capacities(self).ToPython(value);
}

nb::dict Outputs(Machine& self, nb::handle function) {
  const CallPlan& plan = self.PlanOf(function);
  Hold machine(self);
  nb::dict outputs;
  for (std::size_t i = 0; i < plan.output_names.size(); ++i) {
    const Value value = Take(machine->TryOutput(static_cast<std::uint32_t>(i)));
    outputs[plan.output_names[i]] = Capacities(self).ToPython(value);
  }
  return outputs;
}

void SetLimits(Machine& self, nb::handle steps, nb::handle bytes) {
  Limits limits;
  if (!steps.is_none()) limits.steps = ToSize(steps, "steps");
  if (!bytes.is_none()) limits.bytes = ToSize(bytes, "bytes");
  ThrowIf(Hold(self)->TrySetLimits(limits));
}

std::string NameAt(Machine& self, std::uint32_t function) {
  return self.program().executable().module().functions[function].name;
}

nb::bytes State(Machine& self, nb::handle function) {
  const Array<std::byte> state = Take(Hold(self)->TryState(FunctionName(function)));
  return nb::bytes(reinterpret_cast<const char*>(state.data()), state.size());
}

std::string SetState(Machine& self, nb::handle state) {
  if (PyBytes_Check(state.ptr()) == 0) throw nb::type_error("state: bytes expected, as state() gives them");
  const auto given = nb::borrow<nb::bytes>(state);
  const auto* const bytes = reinterpret_cast<const std::byte*>(given.c_str());
  return NameAt(self, Take(Hold(self)->TrySetState({bytes, given.size()})));
}

nb::object Report(const OutputReport& report) { return nb::make_tuple(report.copied, report.reason); }

}  // namespace

void AddMachine(nb::module_& module) {
  nb::class_<Machine> machine(
      module, "VirtualMachine",
      "Runs functions of a program with inputs and outputs that stay set from run to run. One\n"
      "thread at a time: during a run every call but cancel(), bytes_held and bytes_peak raises\n"
      "BusyError, on another thread and inside a Python kernel of the run.");
  Constructor(
      machine, "def __init__(self, program: Program) -> None",
      [](Machine* self, const Arguments& given) { new (self) Machine(given[0]); }, "");
  Method(
      machine,
      "def set_input(self, input: int | str, value: rewire.types.Input, copy: bool = False, "
      "function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) {
        SetInput(self, given[0], given[1], ToFlag(given[2], "copy", false), given[3]);
      },
      "Sets an input, by name or place, until it is set again. The array is kept and read when a function\n"
      "runs; with copy=True its elements are copied now. Raises InvalidArgumentError if it does not match.");
  Method(
      machine,
      "def set_output(self, output: int | str, value: rewire.types.Array | rewire.program.Capacity | None, "
      "function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) { SetOutput(self, given[0], given[1], given[2]); },
      "Lets runs write an output, by name or place, into this writable array, which is kept. A Capacity is\n"
      "memory for an output whose size only the run knows. None lets the machine allocate it again. Raises\n"
      "InvalidArgumentError if it does not match.");
  Method(
      machine, "def donate(self, input: int | str, output: int | str, function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) { Donate(self, given[0], given[1], given[2]); },
      "Lets an output take the memory of an input, which a run then overwrites: state updated in place.");
  Method(
      machine, "def invoke(self, function: str | None = None, timeout: float | None = None) -> None",
      [](Machine& self, const Arguments& given) { Invoke(self, given[0], given[1]); },
      "Runs a function with what is set; None is the entry. `timeout` is in seconds. The GIL is not held.");
  Method(
      machine, "def cancel(self) -> None", [](Machine& self, const Arguments&) { self.Cancel(); },
      "Ends the run that is going on, which then raises CancelledError. Any thread may call it.");
  Method(
      machine, "def output(self, output: int | str) -> numpy.typing.NDArray[typing.Any]",
      [](Machine& self, const Arguments& given) { return Output(self, given[0]); },
      "Returns an output of the last run, by name or place: an array over its memory.");
  Method(
      machine,
      "def outputs(self, function: str | None = None) -> dict[str, numpy.typing.NDArray[typing.Any]]",
      [](Machine& self, const Arguments& given) { return Outputs(self, given[0]); },
      "Returns all outputs of the last run, a dict by name.");
  Method(
      machine, "def output_report(self, output: int | str, function: str | None = None) -> tuple[bool, str]",
      [](Machine& self, const Arguments& given) {
        const OutputHandle handle = self.FindOutput(given[0], given[1]);
        return Report(Take(Hold(self)->TryOutputReport(handle)));
      },
      "Returns whether the last run copied a bound output, and why.");
  Method(
      machine, "def require_zero_copy(self, required: bool = True) -> None",
      [](Machine& self, const Arguments& given) {
        ThrowIf(Hold(self)->TryRequireZeroCopy(ToFlag(given[0], "required", true)));
      },
      "Makes a run fail that would have to copy an output.");
  Method(
      machine, "def set_limits(self, steps: int | None = None, bytes: int | None = None) -> None",
      [](Machine& self, const Arguments& given) { SetLimits(self, given[0], given[1]); },
      "Limits the instructions and the memory of each run. None: no limit.");
  Method(
      machine, "def state(self, function: str | None = None) -> bytes",
      [](Machine& self, const Arguments& given) { return State(self, given[0]); },
      "Returns the inputs of a function that are set as bytes, which set_state() and C programs of vm-aot "
      "read.\n"
      "Donated inputs hold what the last run wrote.");
  Method(
      machine, "def set_state(self, state: bytes) -> str",
      [](Machine& self, const Arguments& given) { return SetState(self, given[0]); },
      "Sets the inputs that a state has, to copies, and returns the name of their function. Raises\n"
      "InvalidArgumentError for the state of another executable, InvalidFileError for damaged bytes.");
  Method(
      machine, "def save_state(self, path: rewire.types.Path, function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) {
        ThrowIf(Hold(self)->TrySaveState(ToPath(given[0], "path"), FunctionName(given[1])));
      },
      "Writes state() to a file.");
  Method(
      machine, "def load_state(self, path: rewire.types.Path) -> str",
      [](Machine& self, const Arguments& given) {
        return NameAt(self, Take(Hold(self)->TryLoadState(ToPath(given[0], "path"))));
      },
      "Reads a file of save_state(), vm-run or a C program as set_state() does.");
  Method(
      machine, "def clear_inputs(self, function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) {
        ThrowIf(Hold(self)->TryClearInputs(FunctionName(given[0])));
      },
      "Forgets the inputs that are set, and lets go of the arrays.");
  Method(
      machine, "def clear_outputs(self, function: str | None = None) -> None",
      [](Machine& self, const Arguments& given) {
        ThrowIf(Hold(self)->TryClearOutputs(FunctionName(given[0])));
      },
      "Lets the machine allocate all outputs again.");
  Method(
      machine, "def trim(self) -> None",
      [](Machine& self, const Arguments&) { ThrowIf(Hold(self)->TryTrim()); },
      "Releases all memory that no live value uses, the last result included.");
  machine
      .def_prop_ro("bytes_held", &Machine::bytes_held,
                   "Bytes that the machine holds now. Any thread may ask during a run.")
      .def_prop_ro("bytes_peak", &Machine::bytes_peak,
                   "The most bytes that it has held. Any thread may ask during a run.");
}

}  // namespace rewire::python
