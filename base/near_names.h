// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/near_names.h>.
//
// Suggestions for a name that was not found ("did you mean ...?").
#pragma once

#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"

namespace rewire {

// Returns the candidates most similar to `name`: at most three, the nearest first, none if nothing is
// similar. Letter case is ignored. A candidate that only adds a prefix ("rewire.add" for "add") counts as
// similar.
REWIRE_API Array<std::string> NearNames(std::string_view name, Span<const std::string> candidates);

// The end of an error message: "; did you mean 'a' or 'b'?", or an empty text.
REWIRE_API std::string DidYouMean(std::string_view name, Span<const std::string> candidates);

}  // namespace rewire
