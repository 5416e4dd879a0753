// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/catalogue.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rewire/kernels/cpu/kernels_cpu.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::test {
namespace {

std::vector<std::string> Split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<ParameterOf> ParametersOf(const RewireKernelRow& row) {
  std::vector<ParameterOf> parameters;
  for (std::uint32_t i = 0; i < row.argument_count; ++i) {
    const RewireKernelArgument& argument = row.arguments[i];
    ParameterOf parameter;
    parameter.name = std::string(argument.name, argument.name_bytes);
    parameter.optional = (argument.flags & REWIRE_ARGUMENT_OPTIONAL) != 0;
    parameter.list = (argument.flags & REWIRE_ARGUMENT_LIST) != 0;
    parameter.one_element = (argument.flags & REWIRE_ARGUMENT_ONE_ELEMENT) != 0;
    parameter.dtypes = argument.dtypes;
    parameter.dtype_group = argument.dtype_group;
    parameters.push_back(parameter);
  }
  return parameters;
}

std::string ErrorWith(const Entry& entry, const Call& attributes) {
  return Run(entry, attributes, 100).error;
}

// The text between `before` and `after`, or "".
std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + before.size();
  const std::size_t end = text.find(after, from);
  return end == std::string::npos ? "" : text.substr(from, end - from);
}

// The kind, choices and range that the factory tells of an attribute when it gets wrong ones beside the
// others.
AttributeOf Ask(const Entry& entry, const Call& others, const std::string& name) {
  AttributeOf attribute;
  attribute.name = name;
  const std::string of = "attribute '" + name + "'";
  const auto with = [&](AttributeValue value) {
    Call call = others;
    call.attributes.emplace_back(name, std::move(value));
    const std::string error = ErrorWith(entry, call);
    return Contains(error, of) ? error : std::string();
  };
  const std::string kind = Between(with(std::monostate()), "expected ", ", got");
  if (kind == "a float") attribute.kind = AttributeOf::kFloat;
  if (kind == "a string") attribute.kind = AttributeOf::kString;
  if (kind == "a list of ints") attribute.kind = AttributeOf::kInts;
  if (kind == "a list of floats") attribute.kind = AttributeOf::kFloats;
  if (attribute.kind == AttributeOf::kString) {
    const std::string error = with("?") + "\n";
    for (std::string choice : Split(Between(error, "expected one of ", "\n"), ", ")) {
      choice.erase(std::remove(choice.begin(), choice.end(), '\''), choice.end());
      if (!choice.empty()) attribute.choices.push_back(choice);
    }
  }
  if (attribute.kind == AttributeOf::kInt) {
    const std::string error = with(std::numeric_limits<std::int64_t>::min()) + "\n";
    const std::string range = Between(error, "expected at least ", "\n");
    if (!range.empty()) {
      attribute.least = std::strtoll(range.c_str(), nullptr, 10);
      const std::string most = Between(range + "\n", "at most ", "\n");
      attribute.most =
          most.empty() ? std::numeric_limits<std::int64_t>::max() : std::strtoll(most.c_str(), nullptr, 10);
    }
  }
  return attribute;
}

AttributeValue Plausible(const AttributeOf& attribute) {
  switch (attribute.kind) {
    case AttributeOf::kInt:
      return std::max<std::int64_t>(1, attribute.least);
    case AttributeOf::kFloat:
      return 1.0;
    case AttributeOf::kString:
      return attribute.choices.empty() ? std::string("i->i") : attribute.choices[0];
    case AttributeOf::kInts:
      return std::vector<std::int64_t>{1};
    case AttributeOf::kFloats:
      return std::vector<double>{1};
  }
  return std::monostate();
}

// Missing ones are reported one by one; when all are there, an unknown one makes the kernel list all names.
std::vector<AttributeOf> AttributesOf(const Entry& entry) {
  std::vector<AttributeOf> attributes;
  if (!entry.is_factory) return attributes;
  const std::string unknown = "no_such_attribute";
  Call required;
  std::string error;
  for (int tries = 0; tries < 64; ++tries) {
    Call call = required;
    call.attributes.emplace_back(unknown, std::int64_t{0});
    error = ErrorWith(entry, call);
    const std::string name = Between(error, "attribute '", "'");
    if (Contains(error, "is missing")) {
      required.attributes.emplace_back(name, Plausible(Ask(entry, required, name)));
      continue;
    }
    // The kind of this attribute could not be told while others were missing.
    const auto known = std::find_if(required.attributes.begin(), required.attributes.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (known == required.attributes.end()) break;
    required.attributes.erase(known);
    required.attributes.emplace_back(name, Plausible(Ask(entry, required, name)));
  }
  const auto is_required = [&](const std::string& name) {
    return std::any_of(required.attributes.begin(), required.attributes.end(),
                       [&](const auto& each) { return each.first == name; });
  };
  for (const std::string& name : Split(Between(error, "(it takes: ", ")"), ", ")) {
    if (name.empty()) continue;
    Call others = required;
    others.attributes.erase(std::remove_if(others.attributes.begin(), others.attributes.end(),
                                           [&](const auto& each) { return each.first == name; }),
                            others.attributes.end());
    attributes.push_back(Ask(entry, others, name));
    attributes.back().required = is_required(name);
  }
  if (!Contains(error, unknown)) {
    std::fprintf(stderr, "kernel_drill: %s does not list its attributes: %s\n", entry.name.c_str(),
                 error.c_str());
    std::exit(2);
  }
  return attributes;
}

void AddTable(const RewireKernelTable& table, std::vector<KernelOf>* kernels) {
  for (std::uint32_t i = 0; i < table.count; ++i) {
    const RewireKernelEntry& entry = table.entries[i];
    kernels->push_back({{entry.name, entry.function, entry.is_factory != 0, table.rows[i].workspace},
                        ParametersOf(table.rows[i]),
                        {}});
  }
}

void AddLibrary(const std::string& path, std::vector<KernelOf>* kernels) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "kernel_drill: %s\n", dlerror());
    std::exit(2);
  }
  *static_cast<const RewireKernelApi**>(dlsym(library, "__rewire_kernel_api")) = DrillApi();
  AddTable(*static_cast<const RewireKernelTable*>(dlsym(library, "__rewire_kernel_table")), kernels);
}

}  // namespace

std::vector<KernelOf> AllKernels(const std::vector<std::string>& libraries) {
  __rewire_kernel_api = DrillApi();
  std::vector<KernelOf> kernels;
  AddTable(*RewireCpuKernels(), &kernels);
  for (const std::string& library : libraries) AddLibrary(library, &kernels);
  for (KernelOf& kernel : kernels) kernel.attributes = AttributesOf(kernel.entry);
  return kernels;
}

}  // namespace rewire::test
