// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.ParameterSet.
#include "rewire/vm/parameter_set.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <string>
#include <utility>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"

namespace rewire::python {
namespace {

ParameterSet FromFile(nb::handle path) {
  const std::string text = nb::cast<std::string>(nb::object(nb::module_::import_("os").attr("fspath")(path)));
  return Take(ParameterSet::Open(text));
}

ParameterSet FromArrays(const nb::dict& arrays) {
  ParameterSet set;
  for (const auto& [key, value] : arrays) {
    const std::string name = nb::cast<std::string>(key);
    const auto tensor =
        std::make_shared<const Tensor>(Import(value, Access::kRead, "parameter '" + name + "'"));
    set.Set(name, WrapReadOnly(tensor->view(), tensor));
  }
  return set;
}

nb::object Get(const ParameterSet& self, std::string_view name) {
  const std::size_t index = self.Find(name);
  if (index == self.size()) throw nb::key_error(std::string(name).c_str());
  return ToNumpy(Take(self.TryGet(index)));
}

nb::list Names(const ParameterSet& self) {
  nb::list names;
  for (std::size_t i = 0; i < self.size(); ++i) {
    names.append(nb::str(self.name(i).data(), self.name(i).size()));
  }
  return names;
}

}  // namespace

void AddParameters(nb::module_& module) {
  nb::class_<ParameterSet>(module, "ParameterSet",
                           "Named weights for programs that are loaded without them. Files are mapped, not\n"
                           "read, and arrays are kept, not copied. Programs and processes share a set.")
      .def_static("from_file", &FromFile, nb::arg("path"),
                  "Opens a .safetensors, .rwx or TVM parameter file. Raises NotFoundError, IoError or\n"
                  "InvalidFileError.")
      .def_static("from_safetensors", &FromFile, nb::arg("path"), "The same as from_file.")
      .def_static(
          "from_arrays", &FromArrays, nb::arg("arrays"),
          "Makes a set of a dict of arrays by name. The set keeps the arrays, which nobody may write\n"
          "while a program uses them.")
      .def_static(
          "from_program", [](const PythonProgram& program) { return ParameterSet::Of(program.program()); },
          nb::arg("program"), "The parameters that a program was loaded with, and its named constants.")
      .def("names", &Names, "The names, sorted.")
      .def("__len__", &ParameterSet::size)
      .def(
          "__contains__",
          [](const ParameterSet& self, std::string_view name) { return self.Find(name) != self.size(); },
          nb::arg("name"))
      .def("__getitem__", &Get, nb::arg("name"), "An array over the parameter's memory. Raises KeyError.")
      .def("__repr__", [](const ParameterSet& self) {
        return "rewire.ParameterSet(" + std::to_string(self.size()) + " tensors)";
      });
}

}  // namespace rewire::python
