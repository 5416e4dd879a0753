// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.Adt, and values of any kind from and to Python.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"

namespace rewire::python {
namespace {

Value FieldAt(const Value& adt, std::int64_t index) {
  const auto count = static_cast<std::int64_t>(adt.field_count());
  if (index < 0) index += count;
  if (index < 0 || index >= count) throw nb::index_error("the ADT has no such field");
  return adt.field(static_cast<std::uint32_t>(index));
}

Value MakeAdt(std::uint32_t tag, nb::handle fields) {
  if (PySequence_Check(fields.ptr()) == 0) RefuseValue(fields, "fields", "a list of arrays, ints and Adts");
  std::vector<Value> values;
  const std::size_t count = nb::len(fields);
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object field = nb::borrow<nb::sequence>(fields)[i];
    values.push_back(ImportValue(field, PyLong_CheckExact(field.ptr()) != 0, "field " + std::to_string(i)));
  }
  return Take(Value::Adt(tag, values));
}

}  // namespace

Value ImportValue(nb::handle object, bool wants_integer, std::string_view what) {
  Value* value = nullptr;
  if (nb::try_cast(object, value) && value != nullptr) return *value;
  if (wants_integer && PyLong_Check(object.ptr()) != 0) return Value(nb::cast<std::int64_t>(object));
  Tensor* tensor = nullptr;
  if (nb::try_cast(object, tensor) && tensor != nullptr) return *tensor;
  return Import(object, Access::kRead, what);
}

nb::object ToPython(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNone:
      return nb::none();
    case ValueKind::kTensor:
      return ToNumpy(value.tensor());
    case ValueKind::kInteger:
      return nb::int_(value.integer());
    case ValueKind::kAdt:
    case ValueKind::kClosure:
    case ValueKind::kStorage:
      break;
  }
  return nb::cast(value);
}

void AddValues(nb::module_& module) {
  nb::class_<Value> adt(
      module, "Adt",
      "A tagged tuple of values, such as a sequence of ONNX. Fields are made when they are read:\n"
      "numpy arrays over the program's memory, ints, or further Adts.");
  Constructor(
      adt, "def __init__(self, tag: int, fields: collections.abc.Sequence[rewire.types.Input]) -> None",
      [](Value* self, const Arguments& given) {
        new (self) Value(MakeAdt(ToPlace(given[0], "tag"), given[1]));
      },
      "Makes one of arrays, ints and Adts. The arrays are not copied and must be contiguous.");
  adt.def_prop_ro("tag", &Value::tag, "The constructor's number.")
      .def("__len__", &Value::field_count)
      .def(
          "__getitem__",
          [](const Value& self, nb::handle index) {
            return ToPython(FieldAt(self, ToInteger(index, "index")));
          },
          nb::sig("def __getitem__(self, index: int) -> typing.Any"))
      .def("__repr__", [](const Value& self) {
        if (self.kind() != ValueKind::kAdt) return std::string("<rewire ") + ValueKindName(self.kind()) + ">";
        return "rewire.Adt(tag=" + std::to_string(self.tag()) + ", " + std::to_string(self.field_count()) +
               " fields)";
      });
}

}  // namespace rewire::python
