// SPDX-License-Identifier: Apache-2.0
//
// Failures of the library as Python exceptions. rewire/errors.py defines the classes.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "rewire/base/status.h"

namespace rewire::python {

namespace nb = nanobind;

// Adds what rewire/errors.py calls to register its classes.
void AddErrors(nb::module_& module);

// Raises the exception of a failure. The GIL is held.
[[noreturn]] void Raise(const Error& error);

// Raises the exception of a failure to open or to read the file at `path`. If there is no such file, that is
// the class MissingFileError.
[[noreturn]] void RaiseOfFile(const Error& error, const std::string& path);

inline void ThrowIf(const Status& status) {
  if (!status) Raise(status.error());
}
template <typename T>
T Take(Result<T> result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}

template <typename T>
T TakeFile(Result<T> result, const std::string& path) {
  if (!result) RaiseOfFile(result.error(), path);
  return *std::move(result);
}

// Keeps the exception that a Python function raised in a run of this thread. The run's own exception then
// names it as its cause; one that is no Exception, such as KeyboardInterrupt, is raised instead.
void KeepCause(nb::python_error& raised);
// Forgets what was kept, before a run.
void DropCause();

}  // namespace rewire::python
