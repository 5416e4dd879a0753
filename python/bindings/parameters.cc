// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.ParameterSet.
#include "rewire/vm/parameter_set.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <memory>
#include <string>
#include <utility>

#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"

namespace rewire::python {
namespace {

ParameterSet FromFile(const Arguments& given) {
  const std::string path = ToPath(given[0], "path");
  OpenOptions options;
  options.verify_data = ToFlag(given[1], "verify", false);
  Result<ParameterSet> set = ParameterSet::Open(path, options);
  if (!set && set.error().code() == StatusCode::kInvalidFile && path.ends_with(".npz")) {
    Raise(Error(StatusCode::kUnsupported,
                path + ": the arrays of an .npz become a set by ParameterSet.from_arrays(dict(numpy.load(" +
                    nb::cast<std::string>(nb::repr(given[0])) +
                    "))); this takes .safetensors, .rwx and parameter files of TVM"));
  }
  return TakeFile(std::move(set), path);
}

ParameterSet FromArrays(nb::handle arrays) {
  if (PyDict_Check(arrays.ptr()) == 0) RefuseValue(arrays, "arrays", "a dict of arrays by name");
  ParameterSet set;
  for (const auto& [key, value] : nb::borrow<nb::dict>(arrays)) {
    const std::string name = ToText(key, "arrays");
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
  nb::class_<ParameterSet> set(
      module, "ParameterSet",
      "Named weights for programs that are loaded without them. Files are mapped, not\n"
      "read, and arrays are kept, not copied. Programs and processes share a set.");
  StaticMethod(
      set, "def from_file(path: rewire.types.Path, verify: bool = False) -> ParameterSet", &FromFile,
      "Opens a .safetensors, .rwx or TVM parameter file. `verify` checks the checksums that an .rwx has.\n"
      "Raises NotFoundError, IoError, InvalidFileError or UnsupportedError.");
  StaticMethod(set, "def from_safetensors(path: rewire.types.Path, verify: bool = False) -> ParameterSet",
               &FromFile, "The same as from_file.");
  StaticMethod(
      set, "def from_arrays(arrays: dict[str, rewire.types.Array]) -> ParameterSet",
      [](const Arguments& given) { return FromArrays(given[0]); },
      "Makes a set of a dict of arrays by name. The set keeps the arrays, which nobody may write\n"
      "while a program uses them.");
  StaticMethod(
      set, "def from_program(program: Program) -> ParameterSet",
      [](const Arguments& given) {
        return ParameterSet::Of(ToObject<PythonProgram>(given[0], "program", "a rewire.Program").program());
      },
      "The parameters that a program was loaded with, and its named constants.");
  Method(
      set, "def names(self) -> list[str]",
      [](const ParameterSet& self, const Arguments&) { return Names(self); }, "The names, sorted.");
  set.def("__len__", &ParameterSet::size)
      .def(
          "__contains__",
          [](const ParameterSet& self, nb::handle name) {
            std::string text;
            return nb::try_cast(name, text) && self.Find(text) != self.size();
          },
          nb::sig("def __contains__(self, name: object) -> bool"))
      .def(
          "__getitem__",
          [](const ParameterSet& self, nb::handle name) { return Get(self, ToText(name, "name")); },
          nb::sig("def __getitem__(self, name: str) -> numpy.typing.NDArray[typing.Any]"),
          "An array over the parameter's memory. Raises KeyError.")
      .def("__repr__", [](const ParameterSet& self) {
        return "rewire.ParameterSet(" + std::to_string(self.size()) + " tensors)";
      });
}

}  // namespace rewire::python
