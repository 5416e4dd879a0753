// SPDX-License-Identifier: Apache-2.0
//
// The tables that code refers to. Each entry occurs once.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "rewire/compiler/ir/graph.h"
#include "rewire/executable_format/module.h"

namespace rewire::compiler {

class ModuleTables {
 public:
  explicit ModuleTables(Module* module) : module_(*module) {}

  std::uint32_t Kernel(const std::string& name, const std::vector<Attribute>& attributes,
                       std::uint32_t flags);
  // Keeps a name for the parameter that has it; constants with this name get another one.
  void Reserve(const std::string& name) { names_.try_emplace(name, 1); }
  // One per value, too.
  std::uint32_t Constant(const Value& value, std::uint32_t device);
  // A constant that `__init` computes; one per value.
  std::uint32_t Computed(const Value& value);
  // These values, in the order of the table.
  const std::vector<const Value*>& computed() const { return computed_; }
  // i64[n]
  std::uint32_t ShapeConstant(const std::vector<std::int64_t>& dims);
  // i64[]
  std::uint32_t ScalarConstant(std::int64_t value);
  std::uint32_t Device(const TargetDevice& device);
  std::uint32_t Symbol(const std::string& name);
  // A text that a `fatal` instruction quotes.
  std::uint32_t String(const std::string& text);

 private:
  std::string Unique(const std::string& name);
  std::uint32_t AddParameter(const Value& value);
  std::uint32_t AddConstant(const std::string& name, const HostTensor& tensor);

  Module& module_;
  std::map<std::string, std::vector<std::uint32_t>> kernels_;
  std::map<std::string, std::uint32_t> symbols_, strings_;
  std::map<std::vector<std::int64_t>, std::uint32_t> shapes_;
  std::map<std::int64_t, std::uint32_t> scalars_;
  std::map<std::string, int> names_;
  std::unordered_map<const Value*, std::uint32_t> constants_;
  std::vector<const Value*> computed_;
};

}  // namespace rewire::compiler
