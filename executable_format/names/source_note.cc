// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/names/source_note.h"

#include <algorithm>
#include <charconv>

namespace rewire {
namespace {

constexpr std::string_view kBetweenNodes = ", ", kBetweenStages = " + ", kStepsBegin = " (",
                           kStepsEnd = " steps)";
// A note that would be longer keeps what it has (FormatLimits::text_bytes is more).
constexpr std::size_t kMostBytes = 32768;

// Whether the text ends as one node does: names may hold separators themselves, but not behind a quote.
bool EndsNode(std::string_view text) { return text.ends_with('\''); }

// Takes the steps off the end of a node; without steps it is one.
std::size_t TakeSteps(std::string_view* stage) {
  if (!stage->ends_with(kStepsEnd)) return 1;
  const std::size_t begin = stage->rfind(kStepsBegin);
  if (begin == std::string_view::npos || !EndsNode(stage->substr(0, begin))) return 1;
  const char* end = stage->data() + stage->size() - kStepsEnd.size();
  std::size_t steps = 0;
  const auto [read, error] = std::from_chars(stage->data() + begin + kStepsBegin.size(), end, steps);
  if (error != std::errc() || read != end || steps == 0) return 1;
  *stage = stage->substr(0, begin);
  return steps;
}

// Splits at the separators that `ends` allows in front of them.
template <typename Ends>
std::vector<std::string_view> Split(std::string_view text, std::string_view separator, const Ends& ends) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator, at + 1)) {
    if (!ends(text.substr(begin, at - begin))) continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool Contains(const std::vector<std::string_view>& nodes, std::string_view node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

}  // namespace

std::vector<NoteStage> StagesOf(std::string_view note) {
  const auto ends = [](std::string_view text) {
    TakeSteps(&text);
    return EndsNode(text);
  };
  std::vector<NoteStage> stages;
  for (const std::string_view text : Split(note, kBetweenStages, ends)) {
    NoteStage& stage = stages.emplace_back();
    for (std::string_view node : Split(text, kBetweenNodes, ends)) {
      stage.steps = std::max(stage.steps, TakeSteps(&node));
      stage.nodes.push_back(node);
    }
  }
  return stages;
}

std::vector<std::string_view> NodesOf(std::string_view note) {
  std::vector<std::string_view> nodes;
  for (const NoteStage& stage : StagesOf(note)) {
    for (const std::string_view node : stage.nodes) {
      if (!Contains(nodes, node)) nodes.push_back(node);
    }
  }
  return nodes;
}

std::string_view FirstNodeOf(std::string_view note) { return StagesOf(note).front().nodes.front(); }

std::string JoinNotes(std::string_view first, std::string_view second) {
  if (first.empty()) return std::string(second);
  std::string joined(first);
  if (second.empty()) return joined;
  const std::vector<std::string_view> known = NodesOf(first);
  for (const std::string_view node : NodesOf(second)) {
    if (Contains(known, node) || joined.size() + node.size() > kMostBytes) continue;
    (joined += kBetweenNodes) += node;
  }
  return joined;
}

void AddSteps(std::string_view nodes, std::size_t steps, std::string* note) {
  if (!note->empty()) {
    const std::vector<NoteStage> stages = StagesOf(*note);
    if (stages.back().nodes == StagesOf(nodes).front().nodes) {
      const std::size_t end = static_cast<std::size_t>(stages.back().nodes.back().data() +
                                                       stages.back().nodes.back().size() - note->data());
      steps += stages.back().steps;
      note->resize(end);
    } else {
      (*note += kBetweenStages) += nodes;
    }
  } else {
    *note = nodes;
  }
  if (steps > 1) ((*note += kStepsBegin) += std::to_string(steps)) += kStepsEnd;
}

}  // namespace rewire
