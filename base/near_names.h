// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/base/near_names.h>.
//
// The end of each message that there is no such name: "; did you mean 'image'? The inputs: image, mask".
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

// The end of an error message: "; did you mean 'a' or 'b'?", or an empty text. It serves names of which there
// are too many to list, such as kernels, and those that a page lists, such as instructions.
REWIRE_API std::string DidYouMean(std::string_view name, Span<const std::string> candidates);

// The end of an error message: the suggestion, and a list of at most 20 names in the order of `known`, with
// the number of the others. `what` is the plural of what they name. The list is left out if the suggestion
// has every name. Builds with REWIRE_SHORT_MESSAGES have empty texts.
//   "; did you mean 'image'? The inputs: image, mask"    "; the inputs: image, mask"
REWIRE_API std::string KnownNames(std::string_view what, std::string_view name,
                                  Span<const std::string> known);

}  // namespace rewire
