// SPDX-License-Identifier: Apache-2.0
#include "rewire/base/near_names.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/message.h"

namespace rewire {
namespace {

// Names come from files too: longer ones are no typing errors, and comparing them would take long.
constexpr std::size_t kLongestName = 200;
constexpr std::size_t kMostSuggestions = 3;
// Letters compared for one name; candidates beyond that are not looked at.
constexpr std::size_t kMostWork = std::size_t{1} << 20;
// A list of names ends here: files name thousands of them, of any length.
[[maybe_unused]] constexpr std::size_t kMostListed = 20;
[[maybe_unused]] constexpr std::size_t kLongestList = 1000;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Letters to insert, delete or replace until `a` reads as `b`; two swapped neighbors count as one. `limit`
// or more is given as `limit`.
std::size_t EditDistance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer > kLongestName || longer - std::min(a.size(), b.size()) >= limit) return limit;
  // rows[i % 3][j] is the distance of the first i letters of `a` from the first j of `b`.
  std::size_t rows[3][kLongestName + 1];
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t* row = rows[i % 3];
    const std::size_t* last = rows[(i - 1) % 3];
    const std::size_t* before_last = rows[(i + 1) % 3];
    row[0] = i;
    std::size_t least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) && Lower(a[i - 2]) == Lower(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    if (least >= limit) return limit;
  }
  return std::min(rows[a.size() % 3][b.size()], limit);
}

// "add" and "rewire.add": one is the other behind a dot.
bool DiffersByPrefix(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  return !b.empty() && a.size() > b.size() + 1 && a.substr(a.size() - b.size()) == b &&
         a[a.size() - b.size() - 1] == '.';
}

}  // namespace

Array<std::string> NearNames(std::string_view name, Span<const std::string> candidates) {
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 4 + 1);
  // The nearest so far, nearest first and then by name.
  struct Near {
    std::size_t distance;
    const std::string* name;
  } near[kMostSuggestions];
  std::size_t count = 0;
  std::size_t work = 0;
  for (const std::string& candidate : candidates) {
    work += 1 + std::min(name.size(), kLongestName) * std::min(candidate.size(), kLongestName);
    if (work > kMostWork) break;
    const std::size_t distance = DiffersByPrefix(name, candidate) ? 0 : EditDistance(name, candidate, limit);
    if (distance >= std::min(limit, std::max(name.size(), candidate.size()))) continue;
    std::size_t at = 0;
    while (at < count &&
           (near[at].distance != distance ? near[at].distance < distance : *near[at].name < candidate)) {
      ++at;
    }
    if (at == kMostSuggestions || (at < count && *near[at].name == candidate)) continue;
    if (count < kMostSuggestions) ++count;
    for (std::size_t i = count - 1; i > at; --i) near[i] = near[i - 1];
    near[at] = {distance, &candidate};
  }
  Array<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(*near[i].name);
  return names;
}

std::string KnownNames([[maybe_unused]] std::string_view what, [[maybe_unused]] std::string_view name,
                       [[maybe_unused]] Span<const std::string> known) {
  std::string text;
#if !defined(REWIRE_SHORT_MESSAGES)
  const Array<std::string> near = NearNames(name, known);
  for (std::size_t i = 0; i < near.size(); ++i) {
    text += i == 0 ? "; did you mean '" : i + 1 == near.size() ? " or '" : ", '";
    text += near[i];
    text += '\'';
  }
  if (!near.empty()) text += '?';
  if (what.empty() || (!near.empty() && near.size() == known.size())) return text;
  Append(&text, {"{} {}:", near.empty() ? "; the" : " The", what});
  const std::size_t longest = text.size() + kLongestList;
  std::size_t listed = 0;
  for (; listed < std::min(kMostListed, known.size()); ++listed) {
    if (text.size() + known[listed].size() > longest) break;
    text += listed == 0 ? " " : ", ";
    text += known[listed];
  }
  if (listed == known.size()) {
    if (listed == 0) text += " none";
  } else {
    Append(&text, {"{}{}{}", listed == 0 ? " " : " and ", known.size() - listed,
                   listed == 0 ? ", too long to list" : " more"});
  }
#endif
  return text;
}

std::string DidYouMean(std::string_view name, Span<const std::string> candidates) {
  return KnownNames({}, name, candidates);
}

}  // namespace rewire
