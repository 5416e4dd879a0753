// SPDX-License-Identifier: Apache-2.0
//
// The extension module rewire._rewire. The package in python/rewire makes the interface of it.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/python/bindings/running.h"

NB_MODULE(_rewire, module) {
  // Its objects belong to one interpreter.
  static const std::int64_t owner = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != owner) {
    throw nanobind::import_error(
        "rewire works in one interpreter of a process, and another one has imported it");
  }
  // At the interpreter's end objects may be alive on purpose: they are freed with the process.
  nanobind::set_leak_warnings(false);
  module.doc() = "The native part of the package rewire.";
  module.attr("__version__") = REWIRE_VERSION;
  rewire::python::RememberMainThread();
  rewire::python::AddErrors(module);
  rewire::python::AddTensor(module);
  rewire::python::AddValues(module);
  rewire::python::AddExecutable(module);
  rewire::python::AddParameters(module);
  rewire::python::AddProgram(module);
  rewire::python::AddMachine(module);
  rewire::python::AddCompiler(module);
  rewire::python::AddProfile(module);
  rewire::python::AddTools(module);
}
