// SPDX-License-Identifier: Apache-2.0
// Judging in a child process: what it says, and what is said about it when it is ended.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "rewire/tests/hostile/campaign.h"
#include "rewire/tests/hostile/watch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define REWIRE_HOSTILE_TRACE 1
#endif
#endif

namespace rewire::hostile {
namespace {

// Seconds of the CPU for one mutant: far above the limits that the judge looks at.
constexpr int kHangSeconds = 30;
constexpr int kHangWallSeconds = 300;

// A child leaves this behind however it ends.
struct Shared {
  Progress progress;
  Counts counts;
  char answer[400] = {};
};

void OnHang(int /*signal*/) {
  static constexpr char kMessage[] = "HANG\n";
  (void)!write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
#ifdef REWIRE_HOSTILE_TRACE
  __sanitizer_print_stack_trace();
#endif
  _exit(99);
}

void Arm(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
  alarm(seconds == 0 ? 0 : kHangWallSeconds);
}

[[noreturn]] void Child(const std::function<bool(Task*)>& next, const JudgeFunction& judge, Shared* shared,
                        std::FILE* found, int errors) {
  dup2(errors, STDERR_FILENO);
  signal(SIGVTALRM, &OnHang);
  signal(SIGALRM, &OnHang);
  Task task;
  while (next(&task)) {
    shared->progress.number = task.number;
    Arm(kHangSeconds);
    const Verdict verdict = judge(task, &shared->progress);
    Arm(0);
    shared->counts.Add(verdict);
    std::strncpy(shared->answer, verdict.answer.c_str(), sizeof(shared->answer) - 1);
    for (std::string fault : verdict.faults) {
      for (char& c : fault) c = c == '\n' ? '|' : c;
      std::fprintf(found, "%llu %s\n", static_cast<unsigned long long>(task.number), fault.c_str());
      std::fflush(found);
    }
  }
  // No destructors: what the parent made is the parent's.
  _exit(0);
}

std::string ReadAll(std::FILE* file) {
  std::string text;
  std::rewind(file);
  std::array<char, 4096> buffer;
  for (std::size_t got = 1; got > 0;) {
    got = std::fread(buffer.data(), 1, buffer.size(), file);
    text.append(buffer.data(), got);
  }
  return text;
}

// "/a/tree/vm/run/machine.cc:12:3" as "vm/run/machine.cc", if it lies in the library.
std::string InTree(const std::string& place) {
  if (place.find("/tests/") != std::string::npos) return "";
  for (const char* folder : {"/kernels/", "/vm/", "/executable_format/", "/base/"}) {
    const std::size_t at = place.rfind(folder);
    if (at != std::string::npos) return place.substr(at + 1, place.find(':', at) - at - 1);
  }
  return "";
}

// The words of a sanitizer or the watch in one line: the kind of error and the first place in the library.
Finding FindingOf(const std::string& errors, int status, const char* stage) {
  std::string what =
      WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit " + std::to_string(WEXITSTATUS(status));
  std::string place;
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    static const std::string kAsan = "ERROR: AddressSanitizer: ";
    static const std::string kUbsan = ": runtime error: ";
    if (const std::size_t at = line.find(kAsan); at != std::string::npos) {
      what = line.substr(at + kAsan.size());
      what = what.substr(0, what.find(' '));
    } else if (const std::size_t error = line.find(kUbsan); error != std::string::npos) {
      what = line.substr(error + kUbsan.size(), 40);
      if (place.empty()) place = InTree(line.substr(0, error));
    } else if (line == "HANG") {
      what = "hang";
    } else if (place.empty() && line.find(" in ") != std::string::npos &&
               line.find('#') != std::string::npos) {
      place = InTree(line.substr(line.rfind(' ') + 1));
    }
  }
  Finding finding;
  finding.kind = what + " at " + (place.empty() ? stage : place);
  finding.text = "in stage " + std::string(stage) + "\n" + errors.substr(0, 6000);
  return finding;
}

}  // namespace

JudgeFunction JudgeOfExecutables() {
  // Made in the child: its memory is not to be shared.
  auto made = std::make_shared<std::unique_ptr<Judge>>();
  return [made](const Task& task, Progress* progress) {
    if (!*made) *made = std::make_unique<Judge>(progress);
    return (*made)->Try(task.file, task.number);
  };
}

ChildReport JudgeInChild(const std::function<bool(Task*)>& next, const JudgeFunction& judge) {
  auto* shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::FILE* found = std::tmpfile();
  std::FILE* errors = std::tmpfile();
  if (shared == MAP_FAILED || found == nullptr || errors == nullptr) std::abort();
  new (shared) Shared;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) std::abort();
  if (child == 0) Child(next, judge, shared, found, fileno(errors));
  int status = 0;
  waitpid(child, &status, 0);
  ChildReport report;
  report.counts = shared->counts;
  report.answer = shared->answer;
  std::istringstream faults(ReadAll(found));
  for (std::string line; std::getline(faults, line);) {
    const std::size_t space = line.find(' ');
    const std::string fault = line.substr(space + 1);
    report.findings[std::strtoull(line.c_str(), nullptr, 10)].push_back(
        {fault.substr(0, fault.find(':')), fault});
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    report.ended_early = true;
    report.ended_at = shared->progress.number;
    report.findings[report.ended_at].push_back(FindingOf(ReadAll(errors), status, shared->progress.stage));
  }
  std::fclose(found);
  std::fclose(errors);
  munmap(shared, sizeof(Shared));
  return report;
}

}  // namespace rewire::hostile
