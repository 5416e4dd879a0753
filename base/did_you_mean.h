// SPDX-License-Identifier: Apache-2.0
// The end of a message about a name that does not exist: which known name was probably meant, or which there
// are. Header only, so that kernel libraries can use it without linking anything.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/span.h"

namespace rewire {

// Letters to insert, delete, replace or swap with their neighbour to make `a` of `b`.
inline std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// The candidate nearest to `name`, the first of equals; empty when none is near: at most two edits, and fewer
// than either name is long. Very long names are not compared.
inline std::string_view NearestName(std::string_view name, Span<const std::string> candidates) {
  constexpr std::size_t kLongest = 256;
  std::string_view nearest;
  std::size_t least = 3;
  if (name.size() > kLongest) return nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t shorter = std::min(name.size(), candidate.size());
    const std::size_t longer = std::max(name.size(), candidate.size());
    if (longer - shorter >= least) continue;
    const std::size_t edits = EditDistance(name, candidate);
    if (edits >= least || edits >= shorter) continue;
    least = edits;
    nearest = candidate;
  }
  return nearest;
}

// `; did you mean "image"?`, without a near name `; known: "a", "b" and 7 more`, and `; there are none` when
// there are no candidates.
inline std::string DidYouMean(std::string_view name, Span<const std::string> candidates) {
  constexpr std::size_t kListed = 8;
  if (candidates.empty()) return "; there are none";
  if (const std::string_view nearest = NearestName(name, candidates); !nearest.empty()) {
    return "; did you mean \"" + std::string(nearest) + "\"?";
  }
  std::string text = "; known: ";
  for (std::size_t i = 0; i < candidates.size() && i < kListed; ++i) {
    if (i > 0) text += ", ";
    text += '"' + candidates[i] + '"';
  }
  if (candidates.size() > kListed) text += " and " + std::to_string(candidates.size() - kListed) + " more";
  return text;
}

}  // namespace rewire
