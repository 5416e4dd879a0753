// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/arguments.h"

#include <nanobind/stl/string.h>

#include <algorithm>

#include "rewire/base/near_names.h"
#include "rewire/python/bindings/errors.h"

namespace rewire::python {
namespace {

[[noreturn]] void RefuseCall(const std::string& why) { throw nb::type_error(why.c_str()); }

std::string Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

// The texts between the commas of a parameter list that stand in no brackets.
std::vector<std::string> SplitParameters(std::string_view list) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '[' || c == '(' || c == '{') ++depth;
    if (c == ']' || c == ')' || c == '}') --depth;
    if (c != ',' || depth != 0) continue;
    if (std::string part = Trimmed(list.substr(begin, i - begin)); !part.empty())
      parts.push_back(std::move(part));
    begin = i + 1;
  }
  return parts;
}

}  // namespace

Signature::Signature(const char* text) {
  const std::string_view all = text;
  const std::size_t open = all.find('('), close = all.rfind(')', all.find(" ->"));
  name_ = Trimmed(all.substr(std::string_view("def ").size(), open - std::string_view("def ").size()));
  bool by_name_only = false;
  for (const std::string& part : SplitParameters(all.substr(open + 1, close - open - 1))) {
    if (part == "self") continue;
    if (part == "*") {
      by_name_only = true;
      continue;
    }
    const std::string name = Trimmed(std::string_view(part).substr(0, part.find_first_of(":=")));
    parameters_.push_back({name, part.find('=') != std::string::npos, by_name_only});
  }
}

void Signature::RefuseUnknown(nb::handle given) const {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  const auto name = nb::cast<std::string>(given);
  RefuseCall(name_ + "() has no argument '" + name + "'" + KnownNames("arguments", name, names));
}

Arguments Signature::Bind(const nb::args& args, const nb::kwargs& kwargs) const {
  Arguments given(parameters_.size());
  const std::size_t places = args.size();
  const auto by_place = static_cast<std::size_t>(std::count_if(
      parameters_.begin(), parameters_.end(), [](const Parameter& p) { return !p.by_name_only; }));
  if (places > by_place) {
    RefuseCall(name_ + "() takes at most " + std::to_string(by_place) + " arguments by place, " +
               std::to_string(places) + " were given");
  }
  for (std::size_t i = 0; i < places; ++i) given[i] = args[i];
  for (const auto& [key, value] : kwargs) {
    const std::string_view name = nb::borrow<nb::str>(key).c_str();
    const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                    [&](const Parameter& p) { return p.name == name; });
    if (found == parameters_.end()) RefuseUnknown(key);
    nb::handle& slot = given[static_cast<std::size_t>(found - parameters_.begin())];
    if (slot.is_valid()) RefuseCall(name_ + "() got argument '" + found->name + "' by place and by name");
    slot = value;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].is_valid()) continue;
    if (!parameters_[i].optional) RefuseCall(name_ + "() misses argument '" + parameters_[i].name + "'");
    given[i] = nb::handle(Py_None);
  }
  return given;
}

void RefuseValue(nb::handle value, std::string_view name, const std::string& expected) {
  auto text = nb::cast<std::string>(nb::repr(value));
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest || text.find('\n') != std::string::npos) {
    text = "an object of type " + nb::cast<std::string>(nb::str(nb::inst_name(value)));
  }
  Raise(Error(StatusCode::kInvalidArgument,
              std::string(name) + ": " + expected + " expected, " + text + " given"));
}

std::int64_t ToInteger(nb::handle value, std::string_view name) {
  // numpy's integers have __index__, as every integer of Python.
  const nb::object index =
      PyIndex_Check(value.ptr()) != 0 ? nb::steal(PyNumber_Index(value.ptr())) : nb::object();
  PyErr_Clear();
  std::int64_t number = 0;
  if (!index.is_valid() || !nb::try_cast(index, number)) RefuseValue(value, name, "an integer");
  return number;
}

std::uint64_t ToSize(nb::handle value, std::string_view name) {
  const std::int64_t number = ToInteger(value, name);
  if (number < 0) RefuseValue(value, name, "an integer of at least 0");
  return static_cast<std::uint64_t>(number);
}

std::uint32_t ToPlace(nb::handle value, std::string_view name) {
  const std::uint64_t place = ToSize(value, name);
  if (place > UINT32_MAX) RefuseValue(value, name, "a place");
  return static_cast<std::uint32_t>(place);
}

double ToNumber(nb::handle value, std::string_view name) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    RefuseValue(value, name, "a number");
  }
  return number;
}

bool ToFlag(nb::handle value, std::string_view name, bool otherwise) {
  if (value.is_none()) return otherwise;
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth >= 0) return truth != 0;
  PyErr_Clear();
  RefuseValue(value, name, "True or False");
}

std::string ToText(nb::handle value, std::string_view name) {
  std::string text;
  if (!nb::try_cast(value, text)) RefuseValue(value, name, "a str");
  return text;
}

std::string ToPath(nb::handle value, std::string_view name) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(value.ptr(), &encoded) == 0) {
    PyErr_Clear();
    RefuseValue(value, name, "a path");
  }
  const nb::bytes path = nb::steal<nb::bytes>(encoded);
  return {path.c_str(), path.size()};
}

std::vector<std::string> ToTexts(nb::handle values, std::string_view name) {
  // The letters of a str would be taken for names.
  const nb::object each =
      PyUnicode_Check(values.ptr()) != 0 ? nb::object() : nb::steal(PyObject_GetIter(values.ptr()));
  PyErr_Clear();
  if (!each.is_valid()) RefuseValue(values, name, "a list of str");
  std::vector<std::string> texts;
  for (const nb::handle value : each) texts.push_back(ToText(value, name));
  return texts;
}

std::set<std::string> ToNames(nb::handle values, std::string_view name) {
  const std::vector<std::string> texts = ToTexts(values, name);
  return {texts.begin(), texts.end()};
}

std::map<std::string, std::int64_t> ToSizes(nb::handle values, std::string_view name) {
  if (PyDict_Check(values.ptr()) == 0) RefuseValue(values, name, "a dict of sizes by name");
  std::map<std::string, std::int64_t> sizes;
  for (const auto& [key, value] : nb::borrow<nb::dict>(values)) {
    const std::string dim = ToText(key, name);
    sizes[dim] = ToInteger(value, std::string(name) + "['" + dim + "']");
  }
  return sizes;
}

}  // namespace rewire::python
