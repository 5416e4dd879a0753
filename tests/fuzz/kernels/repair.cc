// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "rewire/tests/fuzz/kernels/generator.h"

namespace rewire::test {
namespace {

using Shape = std::vector<std::int64_t>;

// "[2, 3]" at `at`; false when something else stands there.
bool ReadShape(const std::string& text, std::size_t at, Shape* shape) {
  shape->clear();
  if (at >= text.size() || text[at] != '[') return false;
  const char* next = text.c_str() + at + 1;
  while (*next != ']') {
    char* end = nullptr;
    const std::int64_t dim = std::strtoll(next, &end, 10);
    if (end == next || (*end != ',' && *end != ']')) return false;
    shape->push_back(dim);
    next = *end == ',' ? end + 2 : end;
  }
  return true;
}

bool ReadDType(const std::string& name, DLDataType* dtype) {
  static const std::vector<std::pair<std::string, DLDataType>> kTypes = {
      {"f32", {kDLFloat, 32, 1}},   {"f64", {kDLFloat, 64, 1}}, {"f16", {kDLFloat, 16, 1}},
      {"bf16", {kDLBfloat, 16, 1}}, {"i64", {kDLInt, 64, 1}},   {"i32", {kDLInt, 32, 1}},
      {"i16", {kDLInt, 16, 1}},     {"i8", {kDLInt, 8, 1}},     {"u64", {kDLUInt, 64, 1}},
      {"u32", {kDLUInt, 32, 1}},    {"u16", {kDLUInt, 16, 1}},  {"u8", {kDLUInt, 8, 1}},
      {"bool", {6, 8, 1}}};
  for (const auto& [known, type] : kTypes) {
    if (known == name) return *dtype = type, true;
  }
  return false;
}

// The dtypes in "one of f32, f64" or "f32 as x".
std::vector<DLDataType> ReadDTypes(const std::string& text) {
  std::vector<DLDataType> types;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ' && c != '[' && c != ':') {
      word += c;
      continue;
    }
    DLDataType type;
    if (ReadDType(word, &type)) types.push_back(type);
    if (!word.empty() && !ReadDType(word, &type) && !types.empty()) break;
    word.clear();
  }
  return types;
}

// The arguments that a name of a message means: an optional or repeated one may stand anywhere from its place
// on.
std::vector<std::size_t> Named(const KernelOf& kernel, const Call& call, const std::string& name) {
  std::vector<std::size_t> found;
  std::size_t lists = 0;
  for (const ParameterOf& parameter : kernel.parameters) lists += parameter.list ? 1 : 0;
  const std::size_t extra = call.arguments.size() - std::min(call.arguments.size(), kernel.parameters.size());
  std::size_t at = 0;
  for (const ParameterOf& parameter : kernel.parameters) {
    const std::size_t count = parameter.list && lists > 0 ? 1 + extra : 1;
    for (std::size_t i = 0; i < count && at < call.arguments.size(); ++i, ++at) {
      const bool of_list =
          parameter.list && (name == "an input" || name == "an output" || name == "an operand" ||
                             name == "a shape" || name == "input" || name == "operand" || name == "output");
      if (parameter.name == name || of_list || (name == "y" && parameter.name == "out_y") ||
          (name == "y_h" && parameter.name == "out_h") || (name == "y_c" && parameter.name == "out_c"))
        found.push_back(at);
    }
  }
  return found;
}

}  // namespace

bool Repair(const KernelOf& kernel, const std::string& error, Dice& dice, Call* call) {
  // "ValueError: rewire.add: out has shape [2], expected [3]"
  const std::size_t second = error.find(": ", error.find(": ") + 2);
  const std::string message = second == std::string::npos ? error : error.substr(second + 2);
  const std::size_t expected = message.find("expected ");
  const std::string wanted = expected == std::string::npos ? "" : message.substr(expected + 9);
  const std::size_t has = message.find(" has ");
  const std::size_t is = message.find(" is ");
  const std::size_t verb = std::min(has, is);
  if (message.rfind("expected ", 0) == 0 && message.find("arguments, got") != std::string::npos) {
    const auto least = static_cast<std::size_t>(std::strtoll(wanted.c_str(), nullptr, 10));
    if (wanted.rfind("at least", 0) == 0 || least == 0 || call->arguments.empty()) return false;
    while (call->arguments.size() < least) call->arguments.push_back(call->arguments.back());
    return true;
  }
  if (verb == std::string::npos || wanted.empty()) return false;
  std::string name = message.substr(0, verb);
  if (name.find(' ') != std::string::npos && name.rfind('a', 0) != 0) name = name.substr(0, name.find(' '));
  const std::vector<std::size_t> named = Named(kernel, *call, name);
  if (named.empty()) return false;
  Shape shape;
  const std::vector<DLDataType> types =
      ReadDTypes(wanted.rfind("one of ", 0) == 0 ? wanted.substr(7) : wanted);
  for (const std::size_t at : named) {
    Argument& argument = call->arguments[at];
    const std::size_t bracket = wanted.find('[');
    if (!types.empty()) {
      argument.dtype = types[static_cast<std::size_t>(dice.Below(static_cast<std::int64_t>(types.size())))];
      if (wanted.rfind("u8[", 0) == 0 && ReadShape(wanted, bracket, &shape)) argument.shape = shape;
    } else if (bracket != std::string::npos && bracket < 16 && ReadShape(wanted, bracket, &shape)) {
      argument.shape = shape;
      argument.layout = 0;
    } else if (bracket == 0) {  // "[N, C, ...]"
      const auto rank =
          static_cast<std::size_t>(std::count(
              wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(wanted.find(']')), ',')) +
          1;
      argument.shape.resize(
          rank + static_cast<std::size_t>(wanted.find("...") < wanted.find(']') ? dice.Below(2) : 0),
          1 + dice.Below(4));
    } else if (wanted.rfind("rank ", 0) == 0) {
      argument.shape.resize(static_cast<std::size_t>(std::strtoll(wanted.c_str() + 5, nullptr, 10)),
                            1 + dice.Below(4));
    } else if (wanted.rfind("one element", 0) == 0) {
      argument.shape.assign(1, 1);
    } else if (wanted.rfind("contiguous", 0) == 0) {
      argument.layout = 0;
    } else if (argument.values.empty() && argument.fill != Fill::kZero) {
      argument.fill = dice.OneIn(2) ? Fill::kZero : Fill::kSmall;
      argument.seed = dice.Next();
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace rewire::test
