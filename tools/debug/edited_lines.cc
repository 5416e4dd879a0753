// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/debug/edited_lines.h"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <utility>

#include "rewire/tools/io/interrupt.h"

// The leak sanitizer's functions, where the program is built with it.
extern "C" {
__attribute__((weak)) void __lsan_disable();
__attribute__((weak)) void __lsan_enable();
}

namespace rewire::tools {
namespace {

constexpr int kMostHistory = 1000;  // lines

class EditedInput final : public LineSource {
 public:
  EditedInput(Complete complete, std::string history_file)
      : complete_(std::move(complete)), history_file_(std::move(history_file)) {}
  ~EditedInput() override {
    HistEvent event;
    if (history_ != nullptr) {
      // A history that cannot be kept is no reason to complain at the end of a session.
      if (!history_file_.empty()) history(history_, &event, H_SAVE, history_file_.c_str());
      history_end(history_);
    }
    if (edit_ != nullptr) el_end(edit_);
  }
  EditedInput(const EditedInput&) = delete;
  EditedInput& operator=(const EditedInput&) = delete;

  bool Start() {
    std::setlocale(LC_CTYPE, "");  // the terminal's characters
    edit_ = el_init("vm-debug", stdin, stdout, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr) return false;
    HistEvent event;
    history(history_, &event, H_SETSIZE, kMostHistory);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) history(history_, &event, H_LOAD, history_file_.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_GETCFN, &EditedInput::ReadCharacter);
    el_set(edit_, EL_PROMPT, &EditedInput::Prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, ::history, history_);
    // libedit keeps copies of these texts and never frees them.
    if (__lsan_disable != nullptr) __lsan_disable();
    el_set(edit_, EL_ADDFN, "complete", "complete the word", &EditedInput::OnTab);
    if (__lsan_enable != nullptr) __lsan_enable();
    el_set(edit_, EL_BIND, "^I", "complete", nullptr);
    el_source(edit_, nullptr);  // ~/.editrc may choose other keys
    return true;
  }

  std::optional<std::string> Next(const std::string& prompt) override {
    prompt_ = prompt;
    // Before the prompt: what is typed behind it is then not echoed twice, nor dropped with a Ctrl-C.
    el_set(edit_, EL_PREP_TERM, 1);
    int count = 0;
    errno = 0;
    const char* read = el_gets(edit_, &count);
    if (read == nullptr || count <= 0) {
      const bool interrupted = errno == EINTR;
      std::fputs("\n", stdout);
      if (!interrupted) return std::nullopt;
      el_reset(edit_);
      return "";
    }
    std::string line(read, static_cast<std::size_t>(count));
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return line;
  }
  bool interactive() const override { return true; }

 private:
  static EditedInput* Self(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<EditedInput*>(self);
  }
  static char* Prompt(EditLine* edit) { return Self(edit)->prompt_.data(); }

  // Waits so that Ctrl-C ends it, whenever that comes: libedit alone would miss one just before it reads.
  static bool WaitForInput() {
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    const bool ready = InterruptCount() == 0 && ppoll(&input, 1, nullptr, &before) >= 0;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return ready;
  }

  static int ReadCharacter(EditLine* edit, wchar_t* character) {
    EditedInput* self = Self(edit);
    for (;;) {
      // Another signal, such as for a new size of the window, is no reason to give a line up.
      if (!WaitForInput()) {
        if (InterruptCount() == 0 && errno == EINTR) continue;
        errno = EINTR;
        return -1;
      }
      char byte = 0;
      const ssize_t size = read(STDIN_FILENO, &byte, 1);
      if (size <= 0) return static_cast<int>(size);
      const std::size_t used = std::mbrtowc(character, &byte, 1, &self->shift_);
      if (used == static_cast<std::size_t>(-2)) continue;  // more bytes follow
      if (used != static_cast<std::size_t>(-1)) return 1;
      self->shift_ = {};  // not in the terminal's encoding: passed over
    }
  }

  // Adds what all completions share; lists them if that is nothing.
  static unsigned char OnTab(EditLine* edit, int) {
    const LineInfo* info = el_line(edit);
    const std::string line(info->buffer, info->cursor);
    const std::vector<std::string> words = Self(edit)->complete_(line);
    if (words.empty()) return CC_ERROR;
    std::string shared = words.front();
    for (const std::string& word : words) {
      std::size_t same = 0;
      while (same < shared.size() && same < word.size() && shared[same] == word[same]) ++same;
      shared.resize(same);
    }
    const std::size_t space = line.rfind(' ');
    const std::size_t typed = line.size() - (space == std::string::npos ? 0 : space + 1);
    std::string more = shared.size() > typed ? shared.substr(typed) : "";
    if (words.size() == 1) more += ' ';
    if (!more.empty()) return el_insertstr(edit, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    std::fputs("\n", stdout);
    for (const std::string& word : words) std::fprintf(stdout, "%s  ", word.c_str());
    std::fputs("\n", stdout);
    return CC_REDISPLAY;
  }

  Complete complete_;
  std::string history_file_;
  std::string prompt_;
  std::mbstate_t shift_ = {};
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineSource> EditedLines(Complete complete, const std::string& history_file) {
  auto lines = std::make_unique<EditedInput>(std::move(complete), history_file);
  if (!lines->Start()) return nullptr;
  return lines;
}

}  // namespace rewire::tools
