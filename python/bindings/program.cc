// SPDX-License-Identifier: Apache-2.0
//
// The class _rewire.Program; rewire/program.py adds what needs no C++.
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/tools/run/open_remote.h"
#include "rewire/vm/memory_bound.h"

namespace rewire::python {
namespace {

// Borrows a machine for one call and brings it back on every path.
class Loan {
 public:
  explicit Loan(PythonProgram& program) : program_(program), machine_(program.Borrow()) {}
  ~Loan() { program_.Return(std::move(machine_)); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  VirtualMachine& operator*() { return *machine_; }
  VirtualMachine* operator->() { return machine_.get(); }

 private:
  PythonProgram& program_;
  std::unique_ptr<VirtualMachine> machine_;
};

nb::dict Call(PythonProgram& self, const nb::args& args, const nb::kwargs& kwargs) {
  const CallPlan& plan = self.PlanOf({});
  const std::vector<Value> inputs = ReadInputs(plan, args, kwargs);
  Loan machine(self);
  DropCause();
  ThrowIf(RunWithoutGil(&*machine, [&] { return machine->TryInvoke(plan.name, inputs).status(); }));
  return ReadOutputs(plan, *machine);
}

// An output that the caller gives an array for.
struct GivenOutput {
  OutputHandle handle;
  Tensor tensor;
  nb::object array;  // null for memory that is larger than the result may be
};

// `out` has arrays by name or place. A tuple with one array stands for a capacity.
std::vector<GivenOutput> ReadOut(const PythonProgram& self, const CallPlan& plan, nb::handle out) {
  std::vector<GivenOutput> given;
  if (out.is_none()) return given;
  for (const auto& [key, value] : nb::borrow<nb::dict>(out)) {
    const OutputHandle handle = PyLong_Check(key.ptr()) != 0
                                    ? Take(self.program().FindOutput(ToPlace(key, "out"), plan.name))
                                    : Take(self.program().FindOutput(ToText(key, "out"), plan.name));
    const std::string what =
        "function " + plan.name + ", output " + nb::cast<std::string>(plan.output_names[handle.leaf]);
    const bool is_capacity = PyTuple_Check(value.ptr()) != 0;
    const nb::object array = is_capacity ? nb::object(value[0]) : nb::borrow(value);
    Tensor tensor = is_capacity ? ImportCapacity(array, what) : Import(array, Access::kWrite, what);
    given.push_back({handle, std::move(tensor), is_capacity ? nb::object() : array});
  }
  return given;
}

Status Bind(VirtualMachine& machine, const GivenOutput& output) {
  if (output.array.is_valid()) return machine.TrySetOutput(output.handle, output.tensor);
  const TensorView memory = output.tensor.view();
  return machine.TrySetOutput(output.handle, OutputCapacity{memory.data(), memory.bytes()});
}

// The result that a run has made in the memory of a capacity, which it keeps alive.
nb::object ResultIn(const VirtualMachine& machine, const GivenOutput& output) {
  return ToNumpyIn(Take(machine.TryOutput(output.handle.leaf)).tensor(), output.tensor);
}

// Ends the run that it is given to, from any thread.
class Cancellation {
 public:
  void Cancel() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (machine_ != nullptr) machine_->Cancel();
  }
  void Watch(VirtualMachine* machine) {
    const std::lock_guard<std::mutex> lock(mutex_);
    machine_ = machine;
  }

 private:
  std::mutex mutex_;
  VirtualMachine* machine_ = nullptr;
};

// While it lives, a Cancellation, which may be null, reaches the machine.
class WatchedRun {
 public:
  WatchedRun(Cancellation* cancellation, VirtualMachine* machine) : cancellation_(cancellation) {
    if (cancellation_ != nullptr) cancellation_->Watch(machine);
  }
  ~WatchedRun() {
    if (cancellation_ != nullptr) cancellation_->Watch(nullptr);
  }
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

 private:
  Cancellation* cancellation_;
};

// The settings of one call in its machine. The next call begins without it.
struct CallSettings {
  Limits limits;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  bool require_zero_copy = false;

  Status Apply(VirtualMachine& machine) const {
    if (Status ok = machine.TrySetLimits(limits); !ok) return ok;
    if (Status ok = machine.TrySetDeadline(deadline); !ok) return ok;
    return machine.TryRequireZeroCopy(require_zero_copy);
  }
};

nb::dict RunWith(PythonProgram& self, const Arguments& arguments) {
  const nb::handle inputs = arguments[0], steps = arguments[4], bytes = arguments[5];
  const CallPlan& plan = self.PlanOf(FunctionName(arguments[3]));
  // A dict, or an array that is the only input, as in a call; else a list of inputs.
  const bool is_one = PyDict_Check(inputs.ptr()) != 0 || PyObject_CheckBuffer(inputs.ptr()) != 0 ||
                      nb::hasattr(inputs, "__dlpack__");
  if (!is_one && (PyUnicode_Check(inputs.ptr()) != 0 || PySequence_Check(inputs.ptr()) == 0)) {
    RefuseValue(inputs, "inputs", "a dict by name, an array, or a list of arrays");
  }
  const nb::args args =
      is_one ? nb::borrow<nb::args>(nb::make_tuple(inputs)) : nb::borrow<nb::args>(nb::tuple(inputs));
  const std::vector<Value> values = ReadInputs(plan, args, nb::kwargs());
  const std::vector<GivenOutput> given = ReadOut(self, plan, arguments[1]);
  CallSettings settings;
  settings.deadline = DeadlineOf(arguments[2]);
  settings.require_zero_copy = ToFlag(arguments[6], "require_zero_copy", false);
  if (!steps.is_none()) settings.limits.steps = ToSize(steps, "max_steps");
  if (!bytes.is_none()) settings.limits.bytes = ToSize(bytes, "max_bytes");
  Cancellation* cancellation = arguments[7].is_none()
                                   ? nullptr
                                   : &ToObject<Cancellation>(arguments[7], "cancellation", "a cancellation");
  Loan machine(self);
  DropCause();
  Status status = settings.Apply(*machine);
  // Set, and not given to the call: only so does what a Python kernel gets keep its memory alive.
  for (const GivenOutput& each : given) {
    if (status) status = Bind(*machine, each);
  }
  if (status) {
    const WatchedRun watched(cancellation, &*machine);
    status = RunWithoutGil(&*machine, [&] { return machine->TryInvoke(plan.name, values).status(); });
  }
  nb::dict outputs;
  if (status) {
    outputs = ReadOutputs(plan, *machine);
    for (const GivenOutput& each : given) {
      outputs[plan.output_names[each.handle.leaf]] =
          each.array.is_valid() ? each.array : ResultIn(*machine, each);
    }
  }
  const Status restored = CallSettings().Apply(*machine);
  const Status cleared = given.empty() ? Status() : machine->TryClearOutputs(plan.name);
  ThrowIf(status);
  ThrowIf(restored);
  ThrowIf(cleared);
  return outputs;
}

std::vector<ParameterSet> ParameterSets(nb::handle given) {
  std::vector<ParameterSet> sets;
  if (given.is_none()) return sets;
  for (const nb::handle set : given) {
    sets.push_back(ToObject<ParameterSet>(set, "parameters", "a rewire.ParameterSet"));
  }
  return sets;
}

// `given` is executable, threads, kernels, parameters and the flags, as _rewire.Program takes them.
LinkOptions ReadLinkOptions(const Arguments& given) {
  LinkOptions options;
  options.init_sharing = ShareInitResults();
  const std::int64_t threads = given[1].is_none() ? 1 : ToInteger(given[1], "threads");
  constexpr int kMostThreads = 4096;
  if (threads < 1 || threads > kMostThreads) {
    Raise(Error(StatusCode::kInvalidArgument,
                "threads: expected at least 1 and at most 4096, got " + std::to_string(threads)));
  }
  if (threads > 1) options.threads = ThreadPool::Make(static_cast<int>(threads));
  if (!given[2].is_none()) {
    for (const nb::handle kernel : given[2]) {
      if (PyTuple_Check(kernel.ptr()) != 0) {  // a name and a Python function
        options.kernels.AddFunction(ToText(nb::object(kernel[0]), "kernels"),
                                    MakePythonKernel(nb::object(kernel[1])));
        continue;
      }
      const std::string path = ToPath(kernel, "kernels");
      if (const Status added = options.kernels.AddLibrary(path); !added) RaiseOfFile(added.error(), path);
    }
  }
  options.parameters = ParameterSets(given[3]);
  options.ignore_extra_parameters = ToFlag(given[4], "ignore_extra_parameters", false);
  if (ToFlag(given[5], "zero_new_storage", false)) options.storage_fill = StorageFill::kZero;
  options.trust_device_code = ToFlag(given[6], "trust_device_code", false);
  return options;
}

// Links an executable, or gives a program other parameters.
Result<Program> LinkWith(const Arguments& given) {
  PythonProgram* other = nullptr;
  if (nb::try_cast(given[0], other) && other != nullptr) {
    const std::vector<ParameterSet> sets = ParameterSets(given[3]);
    const nb::gil_scoped_release released;
    return other->program().Rebind(sets);
  }
  const auto& executable = ToObject<Executable>(given[0], "executable", "a rewire.Executable");
  LinkOptions options = ReadLinkOptions(given);
  const nb::gil_scoped_release released;  // `__init` may run for seconds
  return Program::Link(executable, std::move(options));
}

// A model on a server, as a program.
PythonProgram* Connect(const Arguments& given) {
  const std::string url = ToText(given[0], "url");
  const double seconds = ToNumber(given[1], "timeout");
  constexpr double kMost = 1e9;
  if (!(seconds > 0) || seconds > kMost) RefuseValue(given[1], "timeout", "seconds, above 0 and at most 1e9");
  const auto connect = [&]() -> Result<Program> {
    const nb::gil_scoped_release released;
    const std::chrono::duration<double> time(seconds);
    const Result<tools::OpenedModel> model =
        tools::OpenRemoteModel(url, std::chrono::duration_cast<std::chrono::nanoseconds>(time));
    if (!model) return Forward(model);
    LinkOptions options;
    options.kernels = model->host_kernels;
    if (model->allocator) options.allocator = *model->allocator;
    return Program::Link(model->executable, std::move(options));
  };
  return new PythonProgram(Take(connect()));
}

nb::dict BoundOf(const PythonProgram& self, const Arguments& given) {
  MemoryBoundOptions options;
  options.outputs_bound = ToFlag(given[1], "outputs_bound", false);
  for (const auto& [name, size] : ToSizes(given[2], "dims")) options.max_dims.emplace_back(name, size);
  const MemoryBound bound = Take(self.program().TryMemoryBound(FunctionName(given[0]), options));
  nb::dict figures;
  figures["unbounded"] = bound.unbounded;
  figures["bytes"] = bound.bytes;
  figures["static_bytes"] = bound.static_bytes;
  figures["arena_bytes"] = bound.arena_bytes;
  figures["storage"] = bound.storage;
  figures["objects"] = bound.objects;
  figures["stack"] = bound.stack;
  figures["workspace"] = bound.workspace;
  figures["pinned"] = bound.pinned;
  nb::dict devices;
  for (const DeviceMemoryBound& each : bound.devices) {
    const std::string name = DeviceText(self.program().executable().module().devices[each.device]);
    devices[nb::str(name.c_str())] = each.bytes;
  }
  figures["devices"] = devices;
  nb::list undeclared;
  for (const std::string& kernel : bound.undeclared_workspace) undeclared.append(nb::str(kernel.c_str()));
  figures["undeclared_workspace"] = undeclared;
  return figures;
}

// For each output: its name, whether it is rewired, the reason, and the whole explanation.
nb::list ExplainOutputs(PythonProgram& self, nb::handle function) {
  const CallPlan& plan = self.PlanOf(FunctionName(function));
  nb::list rows;
  for (std::size_t i = 0; i < plan.output_names.size(); ++i) {
    const OutputHandle handle{plan.function, static_cast<std::uint32_t>(i)};
    const OutputPlan found = Take(self.program().TryOutputPlan(handle));
    rows.append(nb::make_tuple(plan.output_names[i], found.rewired, found.reason,
                               self.program().ExplainOutput(handle)));
  }
  return rows;
}

}  // namespace

void AddProgram(nb::module_& module) {
  nb::class_<Cancellation> cancellation(module, "_Cancellation", "Ends the run that it is given to.");
  Constructor(
      cancellation, "def __init__(self) -> None",
      [](Cancellation* self, const Arguments&) { new (self) Cancellation(); }, "");
  Method(
      cancellation, "def cancel(self) -> None", [](Cancellation& self, const Arguments&) { self.Cancel(); },
      "Ends the run, if it goes on now. Any thread may call it.");

  nb::class_<PythonProgram> program(module, "Program");
  Constructor(
      program,
      "def __init__(self, executable: Executable | Program, threads: int = 1, "
      "kernels: collections.abc.Sequence[str | tuple[str, typing.Callable[..., typing.Any]]] = (), "
      "parameters: collections.abc.Sequence[ParameterSet] = (), ignore_extra_parameters: bool = False, "
      "zero_new_storage: bool = False, trust_device_code: bool = False) -> None",
      [](PythonProgram* self, const Arguments& given) { new (self) PythonProgram(Take(LinkWith(given))); },
      "Links an executable. rewire.load does this and more.");
  program.def(
      "__call__", &Call,
      nb::sig("def __call__(self, *args: typing.Any, **kwargs: rewire.types.Input) "
              "-> dict[str, numpy.typing.NDArray[typing.Any]]"),
      "Runs the entry function and returns its outputs, a dict of arrays by name. Inputs are given by\n"
      "place, by name, or as one dict. Any number of threads may call at once; the GIL is not held.");
  FunctionOf(module, "def _connect(url: str, timeout: float) -> Program", &Connect,
             "Makes a program of a model on a server. rewire.connect does this and more.");
  Method(
      program,
      "def _run(self, inputs: typing.Any, out: dict[typing.Any, typing.Any] | None, timeout: float | None, "
      "function: str | None, steps: int | None, bytes: int | None, require_zero_copy: bool, "
      "cancellation: _Cancellation | None = None) -> dict[str, numpy.typing.NDArray[typing.Any]]",
      &RunWith, "Runs a function.");
  Method(program,
         "def _memory_bound(self, function: str | None, outputs_bound: bool, max_dims: dict[str, int]) "
         "-> dict[str, typing.Any]",
         &BoundOf, "How much memory a run can need.");
  Method(
      program, "def _explain_outputs(self, function: str | None) -> list[tuple[str, bool, str, str]]",
      [](PythonProgram& self, const Arguments& given) { return ExplainOutputs(self, given[0]); },
      "For each output its name, whether it is rewired, the reason and the whole explanation.");
  program.def_prop_ro(
      "executable", [](const PythonProgram& self) { return self.program().executable(); },
      nb::sig("def executable(self) -> Executable"), "The executable that the program was linked from.");
}

}  // namespace rewire::python
