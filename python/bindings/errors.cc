// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/errors.h"

#include <unistd.h>

#include <optional>

namespace rewire::python {
namespace {

constexpr int kCodes = static_cast<int>(StatusCode::kInternal) + 1;

// One class for each code, and behind them the one of files that are not there. They are never released,
// since exceptions may be raised until the interpreter is gone.
constexpr int kMissingFile = kCodes;
PyObject* classes[kCodes + 1] = {};

// The exception that a Python function raised in the run of this thread; null: none.
thread_local PyObject* cause = nullptr;

void SetClasses(const nb::sequence& given) {
  if (nb::len(given) != kCodes + 1) throw nb::value_error("one class for each status code is expected");
  for (int i = 0; i <= kCodes; ++i) classes[i] = nb::object(given[i]).release().ptr();
}

[[noreturn]] void RaiseAs(PyObject* type, const Error& error) {
  const nb::object because = nb::steal(cause);
  cause = nullptr;
  if (because.is_valid() && !PyErr_GivenExceptionMatches(because.ptr(), PyExc_Exception)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(because.ptr())), because.ptr());
    throw nb::python_error();
  }
  if (type == nullptr) type = PyExc_RuntimeError;
  // A message may quote text of a file that is no UTF-8.
  const nb::object message = nb::steal(PyUnicode_DecodeUTF8(
      error.message().data(), static_cast<Py_ssize_t>(error.message().size()), "backslashreplace"));
  const nb::object raised = nb::handle(type)(message);
  if (because.is_valid()) PyException_SetCause(raised.ptr(), nb::object(because).release().ptr());
  PyErr_SetObject(type, raised.ptr());
  throw nb::python_error();
}

}  // namespace

void AddErrors(nb::module_& module) {
  module.def(
      "_set_error_classes", &SetClasses, nb::arg("classes"),
      nb::sig("def _set_error_classes(classes: collections.abc.Sequence[type[BaseException]]) -> None"),
      "Registers the exception class of each status code, in the order of the codes, and that of missing "
      "files.");
  module.def(
      "_status_name", [](int code) { return StatusCodeName(static_cast<StatusCode>(code)); }, nb::arg("code"),
      "Returns the name of a status code, such as 'invalid argument'.");
}

void Raise(const Error& error) {
  const int code = static_cast<int>(error.code());
  RaiseAs(code > 0 && code < kCodes ? classes[code] : nullptr, error);
}

void RaiseOfFile(const Error& error, const std::string& path) {
  // The file is there if another name is not found, such as a model's in a bundle.
  const bool missing = error.code() == StatusCode::kNotFound && access(path.c_str(), F_OK) != 0;
  if (missing) RaiseAs(classes[kMissingFile], error);
  Raise(error);
}

void KeepCause(nb::python_error& raised) {
  DropCause();
  cause = nb::object(nb::borrow(raised.value())).release().ptr();
}

void DropCause() {
  Py_XDECREF(cause);
  cause = nullptr;
}

}  // namespace rewire::python
