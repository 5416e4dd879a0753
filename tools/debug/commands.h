// SPDX-License-Identifier: Apache-2.0
//
// The debugger's commands: their names and help. debugger.h does what they say.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"

namespace rewire::tools {

enum class CommandId : std::uint8_t {
  kRun,
  kStart,
  kContinue,
  kStep,
  kNext,
  kFinish,
  kTo,
  kBreak,
  kWatch,
  kCatch,
  kStops,
  kDelete,
  kWhere,
  kUp,
  kDown,
  kFrame,
  kList,
  kRegisters,
  kPrint,
  kSave,
  kInput,
  kInputs,
  kDim,
  kFunction,
  kOutputs,
  kHelp,
  kQuit,
};

struct Command {
  CommandId id;
  const char* name;
  const char* alias;      // one letter, or empty
  const char* arguments;  // as help shows them
  const char* group;
  const char* summary;
  const char* help;
};

// In the order of help: commands of a group are neighbors.
Span<const Command> Commands();

// By name, alias or the beginning of one name. Errors: kNotFound, with similar names; kInvalidArgument if
// several begin so.
Result<const Command*> FindCommand(std::string_view word);

std::string CommandList();
std::string CommandHelp(const Command& command);

}  // namespace rewire::tools
