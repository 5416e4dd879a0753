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
#ifdef REWIRE_X86_64_LEVEL
  // The kernels would end the process by an instruction that the CPU does not know.
  if (__builtin_cpu_supports(REWIRE_X86_64_LEVEL) == 0) {
    throw nanobind::import_error("this CPU is below the level " REWIRE_X86_64_LEVEL
                                 ", which the wheels of rewire need (SSE4.2, CPUs since 2009); "
                                 "build rewire from its sources, which make kernels for every CPU");
  }
#endif
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
