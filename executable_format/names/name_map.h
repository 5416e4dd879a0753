// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/names/name_map.h>.
//
// Gives a stripped executable its names back. In librewire_prepare. vm-strip writes the map (StripModule,
// strip.h).
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
#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/module.h"

namespace rewire {

inline constexpr int kNameMapVersion = 1;

// A map that was read back. Immutable; any number of threads may use it.
class REWIRE_API NameMap {
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

// The same executable with the names of a map in the file `path`. Errors, traces and profiles of Programs
// that are linked from it have these names. Constants are shared with `stripped`.
//
// Errors: kNotFound and kIo; kInvalidArgument if the file is no map, or the map of another executable;
// kUnsupported for a map of another version. They begin with the path.
REWIRE_API Result<Executable> RestoreNames(const Executable& stripped, const std::string& path);

}  // namespace rewire
