// SPDX-License-Identifier: Apache-2.0
//
// The names of a tensor's dimensions as one text, in the model configuration: "N,4,?". The protocol says of a
// dimension without a fixed size only that it is -1. With the names, a client knows which dimensions are
// equal, so that it can make memory for outputs before they arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/executable_format/types.h"

namespace rewire::serve {

// The parameter of the configuration that has this text: this prefix and the tensor's name.
inline constexpr std::string_view kInputDims = "rewire.input.";
inline constexpr std::string_view kOutputDims = "rewire.output.";

std::string DimNamesText(Span<const Dim> dims, const std::vector<std::string>& symbols);
// Adds symbols that are new. Nothing if it is no such text.
std::optional<std::vector<Dim>> ParseDimNames(std::string_view text, std::vector<std::string>* symbols);

}  // namespace rewire::serve
