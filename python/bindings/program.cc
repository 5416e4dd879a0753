// SPDX-License-Identifier: Apache-2.0
//
// The class _rewire.Program; rewire/program.py adds what needs no C++.
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <utility>

#include "rewire/executable_format/instruction_text.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
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
  nb::object array;
};

std::vector<GivenOutput> ReadOut(const PythonProgram& self, const CallPlan& plan, const nb::dict& out) {
  std::vector<GivenOutput> given;
  for (const auto& [key, value] : out) {
    const OutputHandle handle = PyLong_Check(key.ptr()) != 0
                                    ? Take(self.program().FindOutput(nb::cast<std::uint32_t>(key), plan.name))
                                    : Take(self.program().FindOutput(nb::cast<std::string>(key), plan.name));
    const std::string what =
        "function " + plan.name + ", output " + nb::cast<std::string>(plan.output_names[handle.leaf]);
    given.push_back({handle, Import(value, Access::kWrite, what), nb::borrow(value)});
  }
  return given;
}

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

nb::dict RunWith(PythonProgram& self, nb::handle inputs, nb::handle out, nb::handle timeout,
                 nb::handle function, nb::handle steps, nb::handle bytes, bool require_zero_copy) {
  const CallPlan& plan = self.PlanOf(FunctionName(function));
  const bool by_name = PyDict_Check(inputs.ptr()) != 0;
  const nb::args args =
      by_name ? nb::borrow<nb::args>(nb::make_tuple(inputs)) : nb::borrow<nb::args>(nb::tuple(inputs));
  const std::vector<Value> values = ReadInputs(plan, args, nb::kwargs());
  const std::vector<GivenOutput> given =
      out.is_none() ? std::vector<GivenOutput>() : ReadOut(self, plan, nb::cast<nb::dict>(out));
  CallSettings settings;
  settings.deadline = DeadlineOf(timeout);
  settings.require_zero_copy = require_zero_copy;
  if (!steps.is_none()) settings.limits.steps = nb::cast<std::uint64_t>(steps);
  if (!bytes.is_none()) settings.limits.bytes = nb::cast<std::uint64_t>(bytes);
  Loan machine(self);
  DropCause();
  Status status = settings.Apply(*machine);
  // Set, and not given to the call: only so does what a Python kernel gets keep its memory alive.
  for (const GivenOutput& each : given) {
    if (status) status = machine->TrySetOutput(each.handle, each.tensor);
  }
  if (status)
    status = RunWithoutGil(&*machine, [&] { return machine->TryInvoke(plan.name, values).status(); });
  const Status restored = CallSettings().Apply(*machine);
  const Status cleared = given.empty() ? Status() : machine->TryClearOutputs(plan.name);
  ThrowIf(status);
  ThrowIf(restored);
  ThrowIf(cleared);
  nb::dict outputs = ReadOutputs(plan, *machine);
  for (const GivenOutput& each : given) outputs[plan.output_names[each.handle.leaf]] = each.array;
  return outputs;
}

LinkOptions ReadLinkOptions(int threads, const nb::sequence& kernels, const nb::sequence& parameters,
                            bool ignore_extra_parameters, bool zero_new_storage, bool trust_device_code) {
  LinkOptions options;
  if (threads < 1) {
    Raise(
        Error(StatusCode::kInvalidArgument, "threads: expected at least 1, got " + std::to_string(threads)));
  }
  if (threads > 1) options.threads = ThreadPool::Make(threads);
  for (const nb::handle kernel : kernels) {
    if (PyTuple_Check(kernel.ptr()) != 0) {  // a name and a Python function
      options.kernels.AddFunction(nb::cast<std::string>(nb::object(kernel[0])),
                                  MakePythonKernel(nb::object(kernel[1])));
    } else {
      ThrowIf(options.kernels.AddLibrary(nb::cast<std::string>(kernel)));
    }
  }
  for (const nb::handle set : parameters) options.parameters.push_back(nb::cast<ParameterSet&>(set));
  options.ignore_extra_parameters = ignore_extra_parameters;
  if (zero_new_storage) options.storage_fill = StorageFill::kZero;
  options.trust_device_code = trust_device_code;
  return options;
}

nb::dict BoundOf(const PythonProgram& self, nb::handle function, bool outputs_bound,
                 const std::map<std::string, std::int64_t>& max_dims) {
  MemoryBoundOptions options;
  options.outputs_bound = outputs_bound;
  for (const auto& [name, size] : max_dims) options.max_dims.emplace_back(name, size);
  const MemoryBound bound = Take(self.program().TryMemoryBound(FunctionName(function), options));
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
  nb::class_<PythonProgram>(module, "Program")
      .def(
          "__init__",
          [](PythonProgram* self, const Executable& executable, int threads, const nb::sequence& kernels,
             const nb::sequence& parameters, bool ignore_extra_parameters, bool zero_new_storage,
             bool trust_device_code) {
            LinkOptions options = ReadLinkOptions(threads, kernels, parameters, ignore_extra_parameters,
                                                  zero_new_storage, trust_device_code);
            Result<Program> program = [&] {
              const nb::gil_scoped_release released;  // `__init` may run for seconds
              return Program::Link(executable, std::move(options));
            }();
            new (self) PythonProgram(Take(std::move(program)));
          },
          nb::arg("executable"), nb::arg("threads") = 1, nb::arg("kernels") = nb::tuple(),
          nb::arg("parameters") = nb::tuple(), nb::arg("ignore_extra_parameters") = false,
          nb::arg("zero_new_storage") = false, nb::arg("trust_device_code") = false)
      .def(
          "__init__",
          [](PythonProgram* self, const PythonProgram& program, const nb::sequence& parameters) {
            std::vector<ParameterSet> sets;
            for (const nb::handle set : parameters) sets.push_back(nb::cast<ParameterSet&>(set));
            Result<Program> rebound = [&] {
              const nb::gil_scoped_release released;
              return program.program().Rebind(sets);
            }();
            new (self) PythonProgram(Take(std::move(rebound)));
          },
          nb::arg("program"), nb::arg("parameters"))
      .def("__call__", &Call, nb::arg("args"), nb::arg("kwargs"),
           "Runs the entry function and returns its outputs, a dict of arrays by name. Inputs are given by\n"
           "place, by name, or as one dict. Any number of threads may call at once; the GIL is not held.")
      .def("_run", &RunWith, nb::arg("inputs"), nb::arg("out").none(), nb::arg("timeout").none(),
           nb::arg("function").none(), nb::arg("steps").none(), nb::arg("bytes").none(),
           nb::arg("require_zero_copy"))
      .def("_memory_bound", &BoundOf, nb::arg("function").none(), nb::arg("outputs_bound"),
           nb::arg("max_dims"))
      .def("_explain_outputs", &ExplainOutputs, nb::arg("function").none())
      .def_prop_ro(
          "executable", [](const PythonProgram& self) { return self.program().executable(); },
          "The executable that the program was linked from.");
}

}  // namespace rewire::python
