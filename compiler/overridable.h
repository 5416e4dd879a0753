// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/compiler/overridable.h>.
//
// OverridableInitializer: an initializer of an ONNX model that a run may give in place of the model's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/export.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

// An initializer that the model's graph lists among its inputs, too, as that input is declared.
struct OverridableInitializer {
  struct Dim {
    std::int64_t size = -1;  // -1: open
    std::string name;        // of an open one; may be empty
  };

  std::string name;
  std::string element_type;               // as DTypeName spells it ("f32"), or "string"
  std::optional<std::vector<Dim>> shape;  // nullopt: the input declares none
};

// Returns what CompileOptions::overridden may name for the model that the executable was compiled of, in the
// order of the graph's inputs. Those that it names already are inputs of `main`, and not among them. Empty
// for what was not compiled of an ONNX model, was stripped, or has an IR version below 4. Entries that do not
// follow docs/format.md are left out.
REWIRE_API std::vector<OverridableInitializer> OverridableInitializers(const Executable& executable);

}  // namespace rewire
