// SPDX-License-Identifier: Apache-2.0
//
// A call of a program takes arguments and gives a dict of arrays.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"

namespace rewire::python {
namespace {

[[noreturn]] void Refuse(const std::string& why) { Raise(Error(StatusCode::kInvalidArgument, why)); }

// Puts the named inputs where the signature has them; returns how many of the names it knows.
std::size_t TakeNamed(const CallPlan& plan, PyObject* named, std::vector<PyObject*>* inputs) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    PyObject* value = PyDict_GetItemWithError(named, plan.input_names[i].ptr());
    if (value == nullptr) {
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      continue;
    }
    ++taken;
    if ((*inputs)[i] != nullptr) Refuse(plan.input_texts[i] + ": given by place and by name");
    (*inputs)[i] = value;
  }
  return taken;
}

// Names the first entry that the function does not have.
[[noreturn]] void RefuseUnknown(const CallPlan& plan, nb::dict named) {
  for (const auto& [key, value] : named) {
    bool known = false;
    for (const nb::object& name : plan.input_names) known = known || name.equal(key);
    if (known) continue;
    std::vector<std::string> names;
    for (const nb::object& name : plan.input_names) names.push_back(nb::cast<std::string>(name));
    Refuse("function " + plan.name + " has no input " + nb::cast<std::string>(nb::repr(key)) +
           KnownNames("inputs", nb::str(key).c_str(), names));
  }
  Refuse("function " + plan.name + ": an input is given twice");
}

}  // namespace

PythonProgram::PythonProgram(Program program) : program_(std::move(program)) {
  plans_.resize(program_.executable().module().functions.size());
}

const CallPlan& PythonProgram::PlanOf(std::string_view function) {
  const std::uint32_t index = Take(program_.FindFunction(function));
  if (plans_[index] != nullptr) return *plans_[index];
  const Function& source = program_.executable().module().functions[index];
  auto plan = std::make_unique<CallPlan>();
  plan->function = index;
  plan->name = source.name;
  const auto interned = [](const std::string& text) {
    PyObject* made = PyUnicode_InternFromString(text.c_str());
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
  };
  for (std::size_t i = 0; i < source.inputs.size(); ++i) {
    const NamedType& input = source.inputs[i];
    plan->input_names.push_back(interned(input.name));
    plan->input_is_integer.push_back(input.type.nodes.size() == 1 &&
                                     input.type.nodes[0].kind == TypeKind::kInteger);
    plan->input_texts.push_back("function " + source.name + ", input " + std::to_string(i) + " (" +
                                input.name + ")");
  }
  for (std::size_t i = 0; i < source.output_names.size(); ++i) {
    const std::string& name = source.output_names[i];
    plan->output_names.push_back(interned(name.empty() ? "output." + std::to_string(i) : name));
  }
  plans_[index] = std::move(plan);
  return *plans_[index];
}

std::unique_ptr<VirtualMachine> PythonProgram::Borrow() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<VirtualMachine> machine = std::move(idle_.back());
      idle_.pop_back();
      return machine;
    }
  }
  return std::make_unique<VirtualMachine>(program_);
}

void PythonProgram::Return(std::unique_ptr<VirtualMachine> machine) {
  if (!machine->TryDropResult()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(machine));
}

std::vector<Value> ReadInputs(const CallPlan& plan, const nb::args& args, const nb::kwargs& kwargs) {
  const std::size_t count = plan.input_names.size();
  std::vector<PyObject*> inputs(count);  // borrowed of args and kwargs
  const bool has_dict = args.size() == 1 && PyDict_Check(args[0].ptr()) != 0;
  std::size_t named = 0;
  if (has_dict) {
    named = TakeNamed(plan, args[0].ptr(), &inputs);
    if (named != nb::len(nb::handle(args[0].ptr()))) RefuseUnknown(plan, nb::borrow<nb::dict>(args[0]));
  } else {
    if (args.size() > count) {
      Refuse("function " + plan.name + " has " + std::to_string(count) + " inputs, " +
             std::to_string(args.size()) + " given");
    }
    for (std::size_t i = 0; i < args.size(); ++i) inputs[i] = args[i].ptr();
  }
  if (kwargs.size() != 0 && TakeNamed(plan, kwargs.ptr(), &inputs) != kwargs.size()) {
    RefuseUnknown(plan, kwargs);
  }
  std::vector<Value> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (inputs[i] == nullptr) Refuse(plan.input_texts[i] + " is missing");
    values.push_back(ImportValue(inputs[i], plan.input_is_integer[i], plan.input_texts[i]));
  }
  return values;
}

nb::dict ReadOutputs(const CallPlan& plan, const VirtualMachine& machine) {
  nb::dict outputs;
  for (std::size_t i = 0; i < plan.output_names.size(); ++i) {
    outputs[plan.output_names[i]] = ToPython(Take(machine.TryOutput(static_cast<std::uint32_t>(i))));
  }
  return outputs;
}

std::chrono::steady_clock::time_point DeadlineOf(nb::handle timeout) {
  using Clock = std::chrono::steady_clock;
  if (timeout.is_none()) return Clock::time_point::max();
  const double seconds = ToNumber(timeout, "timeout");
  if (!(seconds >= 0)) Refuse("timeout: expected seconds of at least 0, got " + std::to_string(seconds));
  constexpr double kCentury = 3.2e9;
  if (seconds > kCentury) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string_view FunctionName(nb::handle function) {
  if (function.is_none()) return {};
  std::string_view name;
  if (!nb::try_cast(function, name)) RefuseValue(function, "function", "a str");
  return name;
}

}  // namespace rewire::python
