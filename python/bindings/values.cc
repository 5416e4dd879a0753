// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.Adt, and values of any kind from and to Python.
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

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

Value MakeAdt(std::uint32_t tag, const nb::sequence& fields) {
  std::vector<Value> values;
  const std::size_t count = nb::len(fields);
  for (std::size_t i = 0; i < count; ++i) {
    const nb::object field = fields[i];
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
  nb::class_<Value>(
      module, "Adt",
      "A tagged tuple of values, such as a sequence of ONNX. Fields are made when they are read:\n"
      "numpy arrays over the program's memory, ints, or further Adts.")
      .def(
          "__init__",
          [](Value* self, std::uint32_t tag, const nb::sequence& fields) {
            new (self) Value(MakeAdt(tag, fields));
          },
          nb::arg("tag"), nb::arg("fields"),
          "Makes one of arrays, ints and Adts. The arrays are not copied and must be contiguous.")
      .def_prop_ro("tag", &Value::tag, "The constructor's number.")
      .def("__len__", &Value::field_count)
      .def(
          "__getitem__", [](const Value& adt, std::int64_t index) { return ToPython(FieldAt(adt, index)); },
          nb::arg("index"))
      .def("__repr__", [](const Value& value) {
        if (value.kind() != ValueKind::kAdt)
          return std::string("<rewire ") + ValueKindName(value.kind()) + ">";
        return "rewire.Adt(tag=" + std::to_string(value.tag()) + ", " + std::to_string(value.field_count()) +
               " fields)";
      });
}

}  // namespace rewire::python
