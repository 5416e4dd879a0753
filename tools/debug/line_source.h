// SPDX-License-Identifier: Apache-2.0
//
// The debugger's commands come from a terminal with line editing and history, a file, or a pipe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/status.h"

namespace rewire::tools {

class LineSource {
 public:
  virtual ~LineSource() = default;

  // The next line without its end; nullopt at the end of the source. Ctrl-C at a terminal gives an empty
  // line.
  virtual std::optional<std::string> Next(const std::string& prompt) = 0;
  // Somebody types the lines: commands may be repeated, and errors do not end the session.
  virtual bool interactive() const { return false; }
  // "file:3", for errors; the last line's place.
  virtual std::string place() const { return ""; }
};

// Completes the end of a line, for the Tab key: all words that begin as its last word does.
using Complete = std::function<std::vector<std::string>(const std::string& line)>;

// The lines of a file. Errors: those of opening it.
Result<std::unique_ptr<LineSource>> ScriptLines(const std::string& path);

// Standard input. On a terminal, with line editing and a history that is kept in `history_file`, if the build
// has libedit; an empty name keeps none.
std::unique_ptr<LineSource> InputLines(Complete complete, const std::string& history_file);

// $XDG_STATE_HOME/rewire/<name>, or ~/.local/state/rewire/<name>, whose folder is made; empty if there is no
// such place.
std::string StateFile(const std::string& name);

}  // namespace rewire::tools
