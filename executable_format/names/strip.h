// SPDX-License-Identifier: Apache-2.0
// Takes the names out of a module that goes to others.
//
// Functions, inputs, outputs, symbols and strings (what Fatal quotes) become their index in decimal: "0" is
// function 0, its first input and its first output alike. That goes for entry functions too, unless the
// caller keeps some by name. What the module is linked by stays: kernel names and attributes, parameter
// names, memory scopes and `__init`. Attributes whose names begin with "debug." are only for messages and are
// dropped. Other constants' names, notes, kernels' debug names and metadata are dropped, except the lists of
// what elements of outputs stand for. The code is the same, word for word.
// name_map.h describes the map of what was taken.
#pragma once

#include <string>

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

}  // namespace rewire
