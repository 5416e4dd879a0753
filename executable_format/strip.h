// SPDX-License-Identifier: Apache-2.0
// Takes the names out of a module that goes to others, and puts them back into what the module then reports.
//
// Functions, inputs, outputs, symbols and strings (what Fatal quotes) become their index in decimal: "0" is
// function 0, its first input and its first output alike. That goes for entry functions too, unless the
// caller keeps some by name. What the module is linked by stays: kernel names and attributes, parameter
// names, memory scopes and
// `__init`. Other constants' names, notes, kernels' debug names and metadata are dropped, except the lists of
// what elements of outputs stand for. The code is the same, word for word.
//
// The map is JSON text with all that was taken:
//   {"rewire_names": 1,
//    "functions": [{"name": "main", "inputs": ["image"], "outputs": ["scores"], "notes": [[12, "Conv_3"]]}],
//    "symbols": ["N"], "strings": ["..."], "constants": ["w"], "kernels": ["fused_conv2d_relu"],
//    "metadata": [["producer", "..."]]}
// Every list has the order of its table; "kernels" are debug names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

struct StripOptions {
  Array<std::string> keep_functions;  // these keep their own name and those of inputs and outputs
};

struct StrippedModule {
  Module module;  // shares the constants' bytes with the one it was made from
  std::string map;
};

// kNotFound when keep_functions names no function. kInvalidArgument when a name that is kept is a number,
// which a stripped one may get.
Result<StrippedModule> StripModule(const Module& module, const StripOptions& options = {});

// A map that was read back.
class NameMap {
 public:
  // kInvalidArgument: not JSON, or not a map of this version.
  static Result<NameMap> Parse(std::string_view json);

  // The message of an error, or any text, with what the map knows in place of every "3@12" (function 3, word
  // 12): "decode@12 [Conv_3]". A function that kept its name gets its note too.
  std::string Restore(std::string_view text) const;

  // The module with its names, notes and metadata again. kInvalidArgument when it is not the one that the map
  // was made with: another number of functions, inputs, constants, ...
  Result<Module> Restore(const Module& stripped) const;

 private:
  struct FunctionNames {
    std::string name;
    Array<std::string> inputs, outputs;
    Array<SourceNote> notes;
  };
  // The function that a stripped module calls `printed`, or null.
  const FunctionNames* Find(std::string_view printed) const;

  Array<FunctionNames> functions_;
  Array<std::string> symbols_, strings_, constants_, kernels_;
  Array<std::pair<std::string, std::string>> metadata_;
};

}  // namespace rewire
