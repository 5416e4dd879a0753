// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rewire/base/near_names.h"

namespace rewire::tools {
namespace {

constexpr const char kRunning[] = "Running";
constexpr const char kStopping[] = "Stopping";
constexpr const char kLooking[] = "Looking";
constexpr const char kChanging[] = "Changing";
constexpr const char kSession[] = "Session";

constexpr Command kCommands[] = {
    {CommandId::kRun, "run", "r", "", kRunning, "run the function from its beginning",
     "Makes the inputs and runs the function until something stops it, or until it returns. If a run is "
     "going\n"
     "on, that one is given up."},
    {CommandId::kStart, "start", "", "", kRunning, "run, and stop before the first instruction",
     "As `run`, but stops at once. From there, `step` and `next` go on."},
    {CommandId::kContinue, "continue", "c", "[N]", kRunning, "go on to the next stop, or to the N-th",
     "Goes on until a breakpoint, a watch or `catch` stops the run, or until it returns.\n"
     "With N, the first N-1 stops are passed."},
    {CommandId::kStep, "step", "s", "[N]", kRunning, "execute one instruction, or N; enter calls",
     "Executes one instruction. If it calls a function of the program, stops at the first one there."},
    {CommandId::kNext, "next", "n", "[N]", kRunning, "execute one instruction, or N; pass over calls",
     "As `step`, but a function that is called runs to its end."},
    {CommandId::kFinish, "finish", "", "", kRunning, "run until this call returns",
     "Runs until the innermost call has returned, and stops in its caller. In the outermost call, the run "
     "ends."},
    {CommandId::kTo, "to", "t", "PLACE", kRunning, "run to a place once",
     "A breakpoint that is removed at the next stop. PLACE is what `break` takes."},
    {CommandId::kBreak, "break", "b", "PLACE", kStopping, "stop before an instruction",
     "PLACE is one of\n"
     "  main       the beginning of a function\n"
     "  main@12    the instruction at word 12 of it, as `list` shows it\n"
     "  12         the same in the function of the selected call\n"
     "  conv_1     a node of the model\n"
     "  Conv       every node of this operator"},
    {CommandId::kWatch, "watch", "w", "REGISTER", kStopping, "stop when a register or its memory changes",
     "Stops when the register holds something else, or when the elements of its tensor change. Watch a "
     "storage\n"
     "to see every write to its memory. The register belongs to the function of the selected call, or of "
     "the\n"
     "function that `run` runs."},
    {CommandId::kCatch, "catch", "", "nan | inf | off", kStopping,
     "stop after a kernel that writes NaN or inf",
     "Looks at everything that kernels write. `nan` stops at the first NaN, `inf` at NaN and infinities."},
    {CommandId::kStops, "stops", "", "", kStopping, "list breakpoints and watches", ""},
    {CommandId::kDelete, "delete", "d", "N | all", kStopping, "remove a breakpoint or a watch", ""},
    {CommandId::kWhere, "where", "bt", "", kLooking, "show the active calls, innermost first", ""},
    {CommandId::kUp, "up", "", "", kLooking, "select the caller",
     "`list`, `registers` and `print` show the selected call. A stop selects the innermost one."},
    {CommandId::kDown, "down", "", "", kLooking, "select the call that this one makes", ""},
    {CommandId::kFrame, "frame", "", "N", kLooking, "select a call by its number in `where`", ""},
    {CommandId::kList, "list", "l", "[PLACE] [N]", kLooking, "show N instructions around a place",
     "Shows the code around the selected call's instruction, or around PLACE; N is 11 by default.\n"
     "=> marks the instruction that runs next, * a breakpoint."},
    {CommandId::kRegisters, "registers", "", "[REGISTER...]", kLooking,
     "show what registers hold, a line each",
     "Small tensors are shown by their numbers. Others are a picture of their elements in order, the lowest "
     "and\n"
     "highest element, the mean, and how many are NaN or infinite. Registers that hold nothing are left "
     "out."},
    {CommandId::kPrint, "print", "p", "REGISTER", kLooking, "show all elements of a register",
     "REGISTER is %4, or %image for an input. %4.1 is field 1 of an ADT."},
    {CommandId::kOutputs, "outputs", "", "[NAME]", kLooking, "print the results of the last run", ""},
    {CommandId::kSave, "save", "", "REGISTER FILE", kLooking, "write a register's tensor to a file",
     "The ending of FILE decides the format: .npy, .npz or .safetensors."},
    {CommandId::kInput, "input", "i", "NAME=VALUE", kChanging, "set an input for the next run",
     "VALUE is what vm-run takes, or one of two more:\n"
     "  input x=@x.npy        a file\n"
     "  input @all.npz        all members of a file, by name\n"
     "  input x=2xf32=1,2     dimensions, dtype, elements\n"
     "  input x=fill:0.5      this number, in the shape of the signature\n"
     "  input x=random        random numbers, the same ones in every run"},
    {CommandId::kInputs, "inputs", "", "", kChanging, "show the inputs and what they are set to", ""},
    {CommandId::kDim, "dim", "", "NAME=SIZE", kChanging, "set a symbolic dimension of `fill:` and `random`",
     ""},
    {CommandId::kFunction, "function", "f", "NAME", kChanging, "choose the function that `run` runs",
     "The inputs of the earlier one are forgotten."},
    {CommandId::kHelp, "help", "h", "[COMMAND]", kSession, "explain a command", ""},
    {CommandId::kQuit, "quit", "q", "", kSession, "end the session", "Ctrl-D does the same."},
};

std::string Usage(const Command& command) {
  return *command.arguments == '\0' ? command.name : fmt::format("{} {}", command.name, command.arguments);
}

}  // namespace

Span<const Command> Commands() { return {kCommands, std::size(kCommands)}; }

Result<const Command*> FindCommand(std::string_view word) {
  std::vector<std::string> names, beginnings;
  const Command* begins = nullptr;
  for (const Command& command : kCommands) {
    if (word == command.name || word == command.alias) return &command;
    names.emplace_back(command.name);
    if (std::string_view(command.name).starts_with(word)) {
      beginnings.emplace_back(command.name);
      begins = &command;
    }
  }
  if (beginnings.size() == 1) return begins;
  if (beginnings.size() > 1) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("'{}' may be {}; write more of it", word, fmt::join(beginnings, " or ")));
  }
  const std::string near = DidYouMean(word, names);
  return Fail(StatusCode::kNotFound,
              fmt::format("no command is called '{}'{}", word, near.empty() ? "; `help` lists them" : near));
}

std::string CommandList() {
  std::string text;
  const char* group = "";
  for (const Command& command : kCommands) {
    if (group != command.group) {
      group = command.group;
      text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", group);
    }
    const std::string alias = *command.alias == '\0' ? "" : fmt::format(" ({})", command.alias);
    text += fmt::format("  {:<24} {}{}\n", Usage(command), command.summary, alias);
  }
  return text +
         "\nThe beginning of a name is enough. An empty line repeats the last step. Ctrl-C stops a run.\n";
}

std::string CommandHelp(const Command& command) {
  const std::string alias = *command.alias == '\0' ? "" : fmt::format("  (short: {})", command.alias);
  std::string text = fmt::format("{}{}\n  {}\n", Usage(command), alias, command.summary);
  if (*command.help != '\0') text += fmt::format("\n{}\n", command.help);
  return text;
}

}  // namespace rewire::tools
