// SPDX-License-Identifier: Apache-2.0
// Commands of the debugger that show something.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "rewire/tools/debug/debugger.h"
#include "rewire/tools/io/name_lookup.h"
#include "rewire/tools/io/register_text.h"
#include "rewire/tools/io/style.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/tensor_io.h"
#include "rewire/tools/io/tensor_text.h"
#include "rewire/tools/run/outputs.h"

namespace rewire::tools {
namespace {

constexpr std::size_t kUsualLines = 11;
constexpr std::uint32_t kMostOperands = 16;

// Splits "PLACE N", "PLACE", "N" and "" into its parts. A single number is a count.
std::size_t SplitCount(std::string* place) {
  const std::size_t space = place->rfind(' ');
  const std::string last = space == std::string::npos ? *place : place->substr(space + 1);
  std::size_t count = 0;
  const auto [end, error] = std::from_chars(last.data(), last.data() + last.size(), count);
  if (error != std::errc() || end != last.data() + last.size() || count == 0) return kUsualLines;
  *place = space == std::string::npos ? "" : place->substr(0, place->find_last_not_of(' ', space) + 1);
  return count;
}

}  // namespace

// "main@12   %3 = invoke_packed ...   ; conv_1", behind marks for the next instruction and breakpoints.
std::string Debugger::InstructionLine(const Site& site, bool marks) const {
  const Function& function = module_.functions[site.function];
  const bool is_next = running_ && stack_.frame(selected_).site == site;
  std::string line =
      fmt::format("{:<14} {}", SiteText(module_, site), printer_.Text(function, site.pc, kMostOperands));
  if (marks) {
    line = fmt::format("{}{} {}", is_next ? "=>" : "  ", stops_.IsBreakpoint(site) ? "*" : " ", line);
  }
  if (is_next && marks) line = Inked(line, Ink::kBold, colored_);
  const std::string source = SourceTextAt(function, site.pc);
  return source.empty() ? line : line + Inked("  ; " + source, Ink::kDim, colored_);
}

void Debugger::ShowNextInstruction() const {
  Print(InstructionLine(stack_.frame(selected_).site, true) + "\n");
}

Status Debugger::ShowStack() const {
  if (Status stopped = CheckStopped(); !stopped) return stopped;
  for (std::uint32_t i = 0; i < stack_.depth(); ++i) {
    Print(fmt::format("{} {:>3}  {}\n", i == selected_ ? "=>" : "  ", i,
                      InstructionLine(stack_.frame(i).site, false)));
  }
  return {};
}

Status Debugger::ShowCode(const std::string& argument) const {
  std::string place = argument;
  const std::size_t count = SplitCount(&place);
  Site site = running_ ? stack_.frame(selected_).site : Site{function_, 0};
  if (!place.empty()) {
    const Result<std::vector<Site>> sites = FindPlace(module_, place, function_here());
    if (!sites) return Forward(sites);
    site = sites->front();
  }
  const std::vector<std::uint32_t> starts = InstructionStarts(module_.functions[site.function]);
  const auto at =
      static_cast<std::size_t>(std::lower_bound(starts.begin(), starts.end(), site.pc) - starts.begin());
  const std::size_t shown = std::min(count, starts.size());
  const std::size_t first = std::min(at - std::min(at, shown / 2), starts.size() - shown);
  for (std::size_t i = first; i < first + shown; ++i) {
    Print(InstructionLine({site.function, starts[i]}, true) + "\n");
  }
  return {};
}

Result<Value> Debugger::Find(const std::string& name, RegisterPath* path) const {
  if (Status stopped = CheckStopped(); !stopped) return Forward(stopped);
  const Result<RegisterPath> parsed = ParseRegister(module_.functions[function_here()], name);
  if (!parsed) return Forward(parsed);
  *path = *parsed;
  return FollowPath(ShareRegister(stack_.frame(selected_).registers[path->reg]), *path);
}

Status Debugger::ShowRegisters(const std::string& names) const {
  if (Status stopped = CheckStopped(); !stopped) return stopped;
  const StackFrame& frame = stack_.frame(selected_);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const RewireFFIAny& any) {
    rows.push_back({name, RegisterText(any), ContentText(ShareRegister(any), unicode_)});
  };
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    RegisterPath path;
    const Result<Value> value = Find(word, &path);
    if (!value) return Forward(value);
    add(path.text, value->any());
  }
  if (names.empty()) {
    const Function& function = module_.functions[frame.site.function];
    for (std::uint32_t reg = 0; reg < frame.registers.size(); ++reg) {
      if (frame.registers[reg].type_index == kRewireFFINone) continue;
      add(rewire::RegisterText(function, reg), frame.registers[reg]);
    }
  }
  Print(rows.empty() ? "all registers are empty\n" : TableText(rows, {}));
  return {};
}

Status Debugger::ShowRegister(const std::string& name) const {
  RegisterPath path;
  const Result<Value> value = Find(name, &path);
  if (!value) return Forward(value);
  std::string text = fmt::format("{}: {}", path.text, RegisterText(value->any()));
  const std::string content = ContentText(*value, unicode_);
  const Result<HostTensor> elements = ElementsOf(*value);
  if (value->kind() == ValueKind::kTensor && elements) {
    // A short one is its own summary.
    const std::string all = TensorText(*elements);
    text += (content.front() == '[' ? "" : "  " + content) + "\n" + all;
  } else if (!content.empty()) {
    text += "\n" + content;
  }
  Print(text + "\n");
  return {};
}

Status Debugger::ShowOutputs(const std::string& name) const {
  if (vm_.result().kind() == ValueKind::kNone) {
    return Fail(StatusCode::kInvalidArgument, "there are no outputs: no run has returned yet");
  }
  const Function& function = module_.functions[function_];
  const Result<std::vector<Output>> outputs = CollectOutputs(vm_, function);
  if (!outputs) return Forward(outputs);
  std::optional<std::uint32_t> only;
  if (!name.empty()) {
    const Result<std::uint32_t> found = FindOutput(function, name);
    if (!found) return Forward(found);
    only = *found;
  }
  for (std::uint32_t i = 0; i < outputs->size(); ++i) {
    if (only ? i == *only : !(*outputs)[i].is_list) Print(OutputText((*outputs)[i]));
  }
  return {};
}

Status Debugger::Save(const std::string& argument) const {
  const std::size_t space = argument.find(' ');
  if (space == std::string::npos) {
    return Fail(StatusCode::kInvalidArgument, "write `save REGISTER FILE`, such as `save %4 x.npy`");
  }
  RegisterPath path;
  const Result<Value> value = Find(argument.substr(0, space), &path);
  if (!value) return Forward(value);
  const Result<HostTensor> elements = ElementsOf(*value);
  if (!elements) return Forward(elements, path.text);
  const std::string file = argument.substr(argument.find_first_not_of(' ', space));
  if (Status written = WriteTensors(file, {{path.text.substr(1), *elements}}); !written) return written;
  Print(fmt::format("wrote {}\n", file));
  return {};
}

}  // namespace rewire::tools
