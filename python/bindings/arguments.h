// SPDX-License-Identifier: Apache-2.0
//
// Arguments of calls from Python. A function is bound with the text of its signature, from which come the
// names, the order and the stub's types. Calls that do not fit get a TypeError in the words of Python's own
// functions, and values that do not fit an InvalidArgumentError that names the argument. The binding's
// "incompatible function arguments" has no way to a user, because every function that is bound so takes
// anything.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rewire::python {

namespace nb = nanobind;

// The arguments of one call in the order of its signature. None stands for those not given.
using Arguments = std::vector<nb::handle>;

class Signature {
 public:
  // `text` has static storage: "def name(self, first: int, *, second: str = 'x') -> None".
  explicit Signature(const char* text);

  const char* name() const { return name_.c_str(); }
  // The arguments, borrowed of `args` and `kwargs`. Raises TypeError for one that is missing, unknown, given
  // twice or one too many.
  Arguments Bind(const nb::args& args, const nb::kwargs& kwargs) const;

 private:
  struct Parameter {
    std::string name;
    bool optional = false;
    bool by_name_only = false;
  };
  [[noreturn]] void RefuseUnknown(nb::handle given) const;

  std::string name_;
  std::vector<Parameter> parameters_;
};

// Binds `work`, which takes the object and its Arguments, as a method.
template <typename Self, typename Work>
void Method(nb::class_<Self>& owner, const char* signature, const Work& work, const char* doc) {
  const auto* const parsed = new Signature(signature);  // as long as the module
  owner.def(
      parsed->name(),
      [parsed, work](Self& self, const nb::args& args, const nb::kwargs& kwargs) {
        return work(self, parsed->Bind(args, kwargs));
      },
      nb::sig(signature), doc);
}

// The same for `__init__`, whose `work` makes the object in the memory that it is given.
template <typename Self, typename Work>
void Constructor(nb::class_<Self>& owner, const char* signature, const Work& work, const char* doc) {
  const auto* const parsed = new Signature(signature);
  owner.def(
      "__init__",
      [parsed, work](Self* self, const nb::args& args, const nb::kwargs& kwargs) {
        work(self, parsed->Bind(args, kwargs));
      },
      nb::sig(signature), doc);
}

template <typename Self, typename Work>
void StaticMethod(nb::class_<Self>& owner, const char* signature, const Work& work, const char* doc) {
  const auto* const parsed = new Signature(signature);
  owner.def_static(
      parsed->name(),
      [parsed, work](const nb::args& args, const nb::kwargs& kwargs) {
        return work(parsed->Bind(args, kwargs));
      },
      nb::sig(signature), doc);
}

template <typename Work>
void FunctionOf(nb::module_& module, const char* signature, const Work& work, const char* doc) {
  const auto* const parsed = new Signature(signature);
  module.def(
      parsed->name(),
      [parsed, work](const nb::args& args, const nb::kwargs& kwargs) {
        return work(parsed->Bind(args, kwargs));
      },
      nb::sig(signature), doc);
}

// Each raises InvalidArgumentError, with the argument's name, for a value of another kind.
std::int64_t ToInteger(nb::handle value, std::string_view name);
std::uint64_t ToSize(nb::handle value, std::string_view name);   // 0 or more
std::uint32_t ToPlace(nb::handle value, std::string_view name);  // of an input or output
double ToNumber(nb::handle value, std::string_view name);
bool ToFlag(nb::handle value, std::string_view name, bool otherwise);  // None is `otherwise`
std::string ToText(nb::handle value, std::string_view name);
std::string ToPath(nb::handle value, std::string_view name);  // a str, bytes or os.PathLike
std::vector<std::string> ToTexts(nb::handle values, std::string_view name);
std::set<std::string> ToNames(nb::handle values, std::string_view name);
std::map<std::string, std::int64_t> ToSizes(nb::handle values, std::string_view name);  // a dict
// The object of class T; `kind` is what the class is called in the error.
template <typename T>
T& ToObject(nb::handle value, std::string_view name, const char* kind);

// Raises InvalidArgumentError: "NAME: EXPECTED expected, GIVEN given".
[[noreturn]] void RefuseValue(nb::handle value, std::string_view name, const std::string& expected);

template <typename T>
T& ToObject(nb::handle value, std::string_view name, const char* kind) {
  T* found = nullptr;
  if (!nb::try_cast(value, found) || found == nullptr) RefuseValue(value, name, kind);
  return *found;
}

}  // namespace rewire::python
