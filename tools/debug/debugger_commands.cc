// SPDX-License-Identifier: Apache-2.0
// Commands of the debugger that make a run go on, stop or begin.
#include <fmt/format.h>

#include <charconv>

#include "rewire/tools/debug/debugger.h"

namespace rewire::tools {
namespace {

Result<std::uint64_t> ParseCount(const std::string& text, const char* what) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Fail(StatusCode::kInvalidArgument, fmt::format("'{}' is no {}", text, what));
  }
  return count;
}

}  // namespace

Status Debugger::ExecuteCommand(CommandId id, const std::string& argument) {
  switch (id) {
    case CommandId::kRun:
      return Begin(false);
    case CommandId::kStart:
      return Begin(true);
    case CommandId::kContinue:
      return Go(Pace::kContinue, argument);
    case CommandId::kStep:
      return Go(Pace::kStep, argument);
    case CommandId::kNext:
      return Go(Pace::kNext, argument);
    case CommandId::kFinish:
      return Go(Pace::kFinish, "");
    case CommandId::kTo:
      return RunTo(argument);
    case CommandId::kBreak:
      return Break(argument);
    case CommandId::kWatch:
      return WatchRegister(argument);
    case CommandId::kCatch:
      return Catch(argument);
    case CommandId::kStops: {
      const std::string text = stops_.Text();
      Print(text.empty() ? "no breakpoints and no watches\n" : text);
      return {};
    }
    case CommandId::kDelete:
      return Delete(argument);
    case CommandId::kWhere:
      return ShowStack();
    case CommandId::kUp:
      return Select(std::int64_t{selected_} + 1);
    case CommandId::kDown:
      return Select(std::int64_t{selected_} - 1);
    case CommandId::kFrame: {
      const Result<std::uint64_t> number = ParseCount(argument, "number of a call");
      if (!number) return Forward(number);
      return Select(static_cast<std::int64_t>(std::min<std::uint64_t>(*number, UINT32_MAX)));
    }
    case CommandId::kList:
      return ShowCode(argument);
    case CommandId::kRegisters:
      return ShowRegisters(argument);
    case CommandId::kPrint:
      return ShowRegister(argument);
    case CommandId::kSave:
      return Save(argument);
    case CommandId::kInput:
      return inputs_.Set(argument);
    case CommandId::kInputs:
      Print(inputs_.Text());
      return {};
    case CommandId::kDim:
      return inputs_.SetDim(argument);
    case CommandId::kFunction:
      return SelectFunction(argument);
    case CommandId::kOutputs:
      return ShowOutputs(argument);
    case CommandId::kHelp:
      return Help(argument);
    case CommandId::kQuit:
      quit_ = true;
      return {};
  }
  return {};
}

Status Debugger::CheckStopped() const {
  if (running_) return {};
  return Fail(StatusCode::kInvalidArgument, "nothing runs; `start` or `run` begins");
}

std::uint32_t Debugger::function_here() const {
  return running_ ? stack_.frame(selected_).site.function : function_;
}

Status Debugger::Begin(bool stop_at_once) {
  stops_.Go(stop_at_once ? Pace::kStep : Pace::kContinue, 1, 0);
  begin_ = true;
  resume_ = true;
  return {};
}

Status Debugger::Go(Pace pace, const std::string& count) {
  const Result<std::uint64_t> times = count.empty() ? Result<std::uint64_t>(1) : ParseCount(count, "number");
  if (!times) return Forward(times);
  if (*times == 0) return Fail(StatusCode::kInvalidArgument, "0 times is not at all; write 1 or more");
  // Before a run, the first step is to its first instruction.
  if (!running_ && pace == Pace::kStep) return Begin(true);
  if (Status stopped = CheckStopped(); !stopped) return stopped;
  stops_.Go(pace, *times, stack_.depth());
  resume_ = true;
  return {};
}

Status Debugger::RunTo(const std::string& place) {
  Result<std::vector<Site>> sites = FindPlace(module_, place, function_here());
  if (!sites) return Forward(sites);
  stops_.AddBreakpoint(place, *std::move(sites), true);
  return running_ ? Go(Pace::kContinue, "") : Begin(false);
}

Status Debugger::Break(const std::string& place) {
  Result<std::vector<Site>> sites = FindPlace(module_, place, function_here());
  if (!sites) return Forward(sites);
  std::string first = InstructionLine(sites->front(), false);
  if (sites->size() > 1) first += fmt::format("  and {} more places", sites->size() - 1);
  Print(fmt::format("breakpoint {}: {}\n", stops_.AddBreakpoint(place, *std::move(sites), false), first));
  return {};
}

Status Debugger::WatchRegister(const std::string& name) {
  const std::uint32_t function = function_here();
  Result<RegisterPath> path = ParseRegister(module_.functions[function], name);
  if (!path) return Forward(path);
  const std::string text = path->text;
  Print(fmt::format("watch {}: {} in {}\n", stops_.AddWatch(function, *std::move(path)), text,
                    module_.functions[function].name));
  if (running_) stops_.LookAtWatches(stack_);
  return {};
}

Status Debugger::Catch(const std::string& what) {
  if (what != "nan" && what != "inf" && what != "off") {
    return Fail(StatusCode::kInvalidArgument, fmt::format("'{}': write `catch nan`, `inf` or `off`", what));
  }
  catches_nan_ = what != "off";
  catches_infinity_ = what == "inf";
  return {};
}

Status Debugger::Delete(const std::string& what) {
  if (what == "all") {
    stops_.RemoveAll();
    return {};
  }
  const Result<std::uint64_t> number =
      ParseCount(what, "number of a breakpoint or watch; `stops` lists them");
  if (!number) return Forward(number);
  if (*number <= INT32_MAX && stops_.Remove(static_cast<int>(*number))) return {};
  return Fail(StatusCode::kNotFound,
              fmt::format("there is no breakpoint or watch {}; `stops` lists them", *number));
}

Status Debugger::SelectFunction(const std::string& name) {
  const Result<std::uint32_t> function = program_.FindFunction(name);
  if (!function) return Forward(function);
  if (running_) return Fail(StatusCode::kBusy, "a run is going on; end it first, by `continue`");
  function_ = *function;
  return inputs_.Start(function_, false);
}

Status Debugger::Select(std::int64_t outwards) {
  if (Status stopped = CheckStopped(); !stopped) return stopped;
  if (outwards < 0) return Fail(StatusCode::kNotFound, "this is the innermost call");
  if (outwards >= std::int64_t{stack_.depth()}) {
    return Fail(StatusCode::kNotFound,
                fmt::format("the outermost call is {}; `where` lists them", stack_.depth() - 1));
  }
  selected_ = static_cast<std::uint32_t>(outwards);
  ShowNextInstruction();
  return {};
}

Status Debugger::Help(const std::string& word) const {
  if (word.empty()) {
    Print(CommandList());
    return {};
  }
  const Result<const Command*> command = FindCommand(word);
  if (!command) return Forward(command);
  Print(CommandHelp(**command));
  return {};
}

std::vector<std::string> Debugger::Completions(const std::string& line) const {
  const std::size_t space = line.rfind(' ');
  std::vector<std::string> known;
  if (space == std::string::npos) {
    for (const Command& command : Commands()) known.emplace_back(command.name);
  } else {
    known = PlaceNames(module_);
    for (const NamedType& input : module_.functions[function_here()].inputs)
      known.push_back("%" + input.name);
    for (const Command& command : Commands()) known.emplace_back(command.name);  // of `help`
  }
  const std::string typed = space == std::string::npos ? line : line.substr(space + 1);
  std::erase_if(known, [&](const std::string& word) { return !word.starts_with(typed); });
  return known;
}

}  // namespace rewire::tools
