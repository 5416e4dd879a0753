// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/stack_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace rewire::aot {
namespace {

// The title that GCC gives whatever is called by a pointer.
constexpr std::string_view kByPointer = "__indirect_call";

// The text between `before` and the next quotation mark; empty if there is none.
std::string_view Quoted(std::string_view line, std::string_view before) {
  const std::size_t found = line.find(before);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = line.substr(found + before.size());
  return rest.substr(0, std::min(rest.find('"'), rest.size()));
}

// The name in the source: a title has a file in front, and "." before what GCC adds to a function's copies.
std::string_view NameOf(std::string_view title) {
  const std::size_t file = title.rfind(':');
  if (file != std::string_view::npos) title.remove_prefix(file + 1);
  return title.substr(0, std::min(title.find('.'), title.size()));
}

bool IsOfName(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Names in the source that no parenthesis follows.
std::set<std::string, std::less<>> NamesNotCalled(std::string_view source) {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = i;
    while (end < source.size() && IsOfName(source[end])) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    if (end == source.size() || source[end] != '(') names.emplace(source.substr(i, end - i));
    i = end;
  }
  return names;
}

class CallGraph {
 public:
  // Reads the lines of a file: nodes with titles and labels, and edges between titles.
  Status Read(std::string_view text) {
    bool has_frames = false;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.substr(0, 5) == "edge:") {
        calls_[std::string(Quoted(line, "sourcename: \""))].emplace(Quoted(line, "targetname: \""));
      } else if (line.substr(0, 5) == "node:") {
        const Result<bool> read = ReadNode(line);
        if (!read) return Forward(read);
        has_frames |= *read;
      }
    }
    if (has_frames) return {};
    return Fail(
        StatusCode::kInvalidArgument,
        "it names no function with the bytes of its frame; give the .ci files that GCC writes beside the "
        "object files with -fcallgraph-info=su");
  }

  Result<StackDepth> Deepest(const std::string& prefix, const std::string& source,
                             std::uint64_t library_bytes) {
    library_bytes_ = library_bytes;
    const auto names = NamesNotCalled(source);
    std::set<std::string> begins;
    for (const auto& [title, bytes] : frames_) {
      if (NameOf(title).substr(0, prefix.size()) == prefix) begins.insert(title);
      if (names.count(NameOf(title)) != 0) by_pointer_.insert(title);
    }
    if (begins.empty()) {
      return Fail(StatusCode::kInvalidArgument,
                  "no function of the call graphs begins with {}; give the .ci file of the source, too",
                  prefix);
    }
    for (const auto* titles : {&begins, &by_pointer_}) {
      for (const std::string& title : *titles) {
        if (Status walked = Walk(title); !walked) return walked;
      }
    }
    const std::uint64_t behind_pointers = BehindPointers();
    for (const std::string& title : begins) {
      const Depth& depth = *known_[title];
      depth_.bytes = std::max(depth_.bytes, depth.direct);
      if (depth.to_pointer) depth_.bytes = std::max(depth_.bytes, *depth.to_pointer + behind_pointers);
    }
    return std::move(depth_);
  }

 private:
  // Whether the node has a frame. A function that two files have counts as the larger one.
  Result<bool> ReadNode(std::string_view line) {
    const std::string_view title = Quoted(line, "title: \""), label = Quoted(line, "label: \"");
    const std::size_t at = label.rfind("\\n");
    if (at == std::string_view::npos) return false;
    const std::string_view size = label.substr(at + 2);
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), bytes);
    const std::string_view kind(end, static_cast<std::size_t>(size.data() + size.size() - end));
    if (error != std::errc() || kind.substr(0, 7) != " bytes ") return false;
    if (kind == " bytes (dynamic)") {
      return Fail(StatusCode::kUnsupported, "the size of {}'s frame is known only when the program runs",
                  NameOf(title));
    }
    std::uint64_t& frame = frames_[std::string(title)];
    frame = std::max(frame, bytes);
    return true;
  }

  // The stack of a function with all that it calls by name, and of those calls alone at whose end something
  // is called by a pointer; none if nothing is.
  struct Depth {
    std::uint64_t direct = 0;
    std::optional<std::uint64_t> to_pointer;
  };

  // The most that is called by a pointer needs. Such a function may call another one so, but none twice, as
  // nothing recurses.
  std::uint64_t BehindPointers() {
    std::uint64_t last = 0, before = 0;
    for (const std::string& title : by_pointer_) {
      last = std::max(last, known_[title]->direct);
      before += known_[title]->to_pointer.value_or(0);
    }
    return before + last;
  }

  // Finds the depths of a function and of all that it calls by name, without recursion: those come first.
  Status Walk(const std::string& first) {
    std::vector<std::string> path = {first};
    while (!path.empty()) {
      const std::string title = path.back();
      if (!known_.try_emplace(title).second && known_[title]) {
        path.pop_back();
        continue;
      }
      Depth depth;
      bool waits = false;
      for (const std::string& callee : calls_[title]) {
        if (callee == kByPointer) {
          if (!depth.to_pointer) depth.to_pointer = 0;
          continue;
        }
        const auto found = known_.find(callee);
        if (found == known_.end()) {
          path.push_back(callee);
          waits = true;
          break;
        }
        if (!found->second) {
          return Fail(StatusCode::kUnsupported, "{} calls itself, by way of {}: its stack has no limit",
                      NameOf(callee), NameOf(title));
        }
        depth.direct = std::max(depth.direct, found->second->direct);
        if (found->second->to_pointer)
          depth.to_pointer = std::max(depth.to_pointer.value_or(0), *found->second->to_pointer);
      }
      if (waits) continue;
      const Result<std::uint64_t> frame = FrameOf(title);
      if (!frame) return Forward(frame);
      depth.direct += *frame;
      if (depth.to_pointer) *depth.to_pointer += *frame;
      known_[title] = depth;
      path.pop_back();
    }
    return {};
  }

  Result<std::uint64_t> FrameOf(const std::string& title) {
    const auto found = frames_.find(title);
    if (found != frames_.end()) return found->second;
    if (title.rfind("rewire_embedded_", 0) == 0) {
      return Fail(StatusCode::kInvalidArgument,
                  "the program calls {}, and no call graph has it; give the .ci files of all kernels", title);
    }
    depth_.library.insert(title);
    return library_bytes_;
  }

  std::map<std::string, std::uint64_t> frames_;
  std::map<std::string, std::set<std::string>> calls_;
  std::set<std::string> by_pointer_;
  // Functions with their depth; none while what they call is looked at.
  std::map<std::string, std::optional<Depth>> known_;
  std::uint64_t library_bytes_ = 0;
  StackDepth depth_;
};

}  // namespace

Result<StackDepth> DeepestStack(const std::map<std::string, std::string>& graphs, const std::string& prefix,
                                const std::string& source, std::uint64_t library_bytes) {
  CallGraph all;
  for (const auto& [file, text] : graphs) {
    if (Status read = all.Read(text); !read) return Forward(read, file);
  }
  return all.Deepest(prefix, source, library_bytes);
}

}  // namespace rewire::aot
