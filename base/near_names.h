// SPDX-License-Identifier: Apache-2.0
// Suggestions for a name that was not found.
#pragma once

#include <string>
#include <string_view>

#include "base/array.h"
#include "base/export.h"
#include "base/span.h"

namespace rewire {

// The candidates most like `name`, at most three, nearest first; none when nothing is near. Letter case does
// not count, and a candidate that differs by its prefix alone ("add" for "rewire.add") is near.
REWIRE_API Array<std::string> NearNames(std::string_view name, Span<const std::string> candidates);

// The end of a message: "; did you mean 'a' or 'b'?", or nothing.
REWIRE_API std::string DidYouMean(std::string_view name, Span<const std::string> candidates);

}  // namespace rewire
