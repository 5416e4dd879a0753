// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/line_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "rewire/base/mapped_file.h"
#include "rewire/tools/debug/edited_lines.h"

namespace rewire::tools {
namespace {

class Script final : public LineSource {
 public:
  Script(std::string path, const std::string& text) : path_(std::move(path)), lines_(text) {}

  std::optional<std::string> Next(const std::string&) override {
    std::string line;
    if (!std::getline(lines_, line)) return std::nullopt;
    ++number_;
    return line;
  }
  std::string place() const override { return fmt::format("{}:{}", path_, number_); }

 private:
  std::string path_;
  std::istringstream lines_;
  int number_ = 0;
};

// Standard input without line editing.
class PlainInput final : public LineSource {
 public:
  explicit PlainInput(bool interactive) : interactive_(interactive) {}
  ~PlainInput() override { std::free(line_); }
  PlainInput(const PlainInput&) = delete;
  PlainInput& operator=(const PlainInput&) = delete;

  std::optional<std::string> Next(const std::string& prompt) override {
    if (interactive_) {
      std::fputs(prompt.c_str(), stdout);
      std::fflush(stdout);
    }
    ++number_;
    errno = 0;
    ssize_t size = getline(&line_, &room_, stdin);
    if (size < 0) {
      const bool interrupted = errno == EINTR;
      std::clearerr(stdin);
      if (!interrupted) return std::nullopt;
      return "";
    }
    if (size > 0 && line_[size - 1] == '\n') --size;
    return std::string(line_, static_cast<std::size_t>(size));
  }
  bool interactive() const override { return interactive_; }
  std::string place() const override { return fmt::format("<stdin>:{}", number_); }

 private:
  bool interactive_;
  char* line_ = nullptr;  // of getline
  std::size_t room_ = 0;
  int number_ = 0;
};

}  // namespace

Result<std::unique_ptr<LineSource>> ScriptLines(const std::string& path) {
  const Result<SharedBytes> file = ReadFile(path);
  if (!file) return Forward(file);
  const std::string text(reinterpret_cast<const char*>(file->view.data()), file->view.size());
  return std::unique_ptr<LineSource>(std::make_unique<Script>(path, text));
}

std::unique_ptr<LineSource> InputLines(Complete complete, const std::string& history_file) {
  const bool terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  if (terminal) {
    if (auto edited = EditedLines(std::move(complete), history_file)) return edited;
  }
  return std::make_unique<PlainInput>(terminal);
}

std::string StateFile(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = state;
  } else if (home != nullptr && *home == '/') {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "rewire";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? "" : (folder / name).string();
}

}  // namespace rewire::tools
