// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/sandbox/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "rewire/serve/sandbox/sandbox_message.h"
#include "rewire/vm/loader/library_search.h"

namespace rewire::serve {
namespace {

// How long an answer is waited for before the run is asked whether it goes on.
constexpr int kAskMilliseconds = 2;

Status StartError(const std::string& what, int error) {
  return Fail(StatusCode::kIo, "{}: {}", what, std::generic_category().message(error));
}

// Tells the process where Rewire's libraries are, and nothing else of what this process knows.
std::string LibrariesOf(const std::string& program) {
  std::string path = "REWIRE_LIBRARY_PATH=" + program.substr(0, program.rfind('/'));
  if (const char* const given = std::getenv("REWIRE_LIBRARY_PATH")) path += ":" + std::string(given);
  return path;
}

}  // namespace

Result<std::string> FindSandboxProgram(const char* name) {
  std::string tried;
  std::string program = FindFile(ModuleDirectories(), name, &tried);
  if (!program.empty()) return program;
  return Fail(StatusCode::kUnsupported,
              "a sandbox needs the program {}, which is not installed with this server; tried: {}", name,
              tried);
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const WorkerStart& start) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return StartError("socketpair", errno);
  Descriptor mine(ends[0]);
  const Descriptor its(ends[1]);
  Descriptor memory(memfd_create("rewire-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // The process could otherwise take pages away that this one reads.
  if (!memory.is_open() || fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return StartError("memfd_create", errno);
  std::unique_ptr<WorkerProcess> process(new WorkerProcess(start, std::move(mine), std::move(memory)));
  process->message_.resize(kMostMessageBytes);
  if (Status spawned = process->Spawn(start, its.get()); !spawned) return Forward(spawned);
  return process;
}

Status WorkerProcess::Spawn(const WorkerStart& start, int its_socket) {
  std::vector<std::string> texts = start.arguments;
  texts.insert(texts.begin(), start.program);
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::string libraries = LibrariesOf(start.program);
  std::array<char*, 2> environment = {libraries.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  std::vector<std::pair<int, int>> given = {{its_socket, kSandboxSocket},
                                            {memory_file_.get(), kSandboxMemory}};
  for (std::size_t i = 0; i < start.files.size(); ++i)
    given.emplace_back(start.files[i], kSandboxFiles + static_cast<int>(i));
  // A descriptor may have the number that another one is to get, so all move out of the way first.
  const int first_other = kSandboxFiles + static_cast<int>(start.files.size());
  std::vector<Descriptor> moved;
  int failed = 0;
  for (const auto& [from, to] : given) {
    moved.emplace_back(fcntl(from, F_DUPFD_CLOEXEC, first_other));
    if (!moved.back().is_open()) failed = errno;
  }
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, number, "/dev/null", O_RDWR, 0);
  for (std::size_t i = 0; i < given.size(); ++i)
    posix_spawn_file_actions_adddup2(&files, moved[i].get(), given[i].second);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A group of its own: what a terminal sends to the server is not for it.
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  if (failed == 0)
    failed = posix_spawn(&process_, start.program.c_str(), &files, &attributes, arguments.data(),
                         environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    process_ = -1;
    return StartError("'" + start.program + "' cannot be started", failed);
  }
  if (clock_getcpuclockid(process_, &clock_) != 0) return StartError("clock_getcpuclockid", ENOENT);
  return {};
}

WorkerProcess::~WorkerProcess() {
  End();
  Unmap();
}

void WorkerProcess::Unmap() {
  if (memory_ != nullptr) munmap(std::exchange(memory_, nullptr), std::exchange(memory_bytes_, 0));
}

void WorkerProcess::End() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

Error WorkerProcess::Ended() {
  int status = 0;
  // Its socket is closed, so it ends by itself or has ended. One that does not would be waited for in vain.
  pid_t waited = 0;
  for (int turn = 0; turn < 500 && waited == 0; ++turn) {
    waited = waitpid(process_, &status, WNOHANG);
    if (waited == 0) usleep(1000);
  }
  if (waited == process_) process_ = -1;
  End();
  std::string how = "has ended";
  if (waited > 0 && WIFSIGNALED(status)) {
    how =
        "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    if (WTERMSIG(status) == SIGSYS) how += ": it has called what a sandbox does not have";
    if (WTERMSIG(status) == SIGXCPU) how += ": it has taken more CPU time than cpu_seconds";
  }
  return Error(StatusCode::kIo, "the process of the sandbox " + how);
}

void WorkerProcess::GrantTime() const {
  timespec taken{};
  if (clock_gettime(clock_, &taken) != 0) return;  // it has ended, which the answer shows
  const rlim_t most = static_cast<rlim_t>(taken.tv_sec) + 1 + cpu_seconds_;
  // Only the soft limit: without rights, nobody could raise the hard one again. The process cannot change it.
  const rlimit limit{most, RLIM_INFINITY};
  prlimit(process_, RLIMIT_CPU, &limit, nullptr);
}

Result<std::string_view> WorkerProcess::Ask(std::string_view message, const Patience& patience) {
  if (message.size() > kMostMessageBytes)
    return Fail(StatusCode::kUnsupported, "a request of this model is too long for a sandbox");
  if (process_ < 0) return Fail(StatusCode::kIo, "the process of the sandbox has ended");
  GrantTime();
  ssize_t sent = 0;
  do {
    sent = message.empty() ? 0 : send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return Forward(Status(Ended()));
  while (true) {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (poll(&wait, 1, kAskMilliseconds) > 0) break;
    Status goes_on;
    if (patience.stopped != nullptr && patience.stopped() != 0) {
      goes_on = Fail(StatusCode::kCancelled, "the run was stopped, and with it the process of the sandbox");
    } else if (std::chrono::steady_clock::now() >= patience.until) {
      goes_on = Fail(StatusCode::kDeadlineExceeded, "the process of the sandbox has not answered in time");
    }
    if (goes_on) continue;
    End();
    return Forward(goes_on);
  }
  const ssize_t got = recv(socket_.get(), message_.data(), message_.size(), MSG_TRUNC);
  if (got <= 0) return Forward(Status(Ended()));
  if (static_cast<std::size_t>(got) > message_.size())
    return Fail(StatusCode::kInvalidFile, "the answer of the sandbox is too long");
  return std::string_view(message_.data(), static_cast<std::size_t>(got));
}

bool WorkerProcess::is_idle() const {
  if (process_ < 0) return false;
  pollfd wait{socket_.get(), POLLIN, 0};
  return poll(&wait, 1, 0) == 0;
}

Status WorkerProcess::Reserve(std::uint64_t bytes) {
  if (bytes <= memory_bytes_) return {};
  constexpr std::uint64_t kStep = 1 << 20;
  if (bytes > std::uint64_t{1} << 46)
    return Fail(StatusCode::kOutOfMemory, "there are no {} bytes for tensors", bytes);
  const std::uint64_t wanted =
      (std::max(bytes, memory_bytes_ + memory_bytes_ / 2) + kStep - 1) / kStep * kStep;
  if (Status resized = Resize(wanted); !resized) return resized;
  void* const moved = memory_ == nullptr
                          ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, memory_file_.get(), 0)
                          : mremap(memory_, memory_bytes_, wanted, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED)
    return Fail(StatusCode::kOutOfMemory, "there is no room for {} shared bytes", wanted);
  memory_ = static_cast<std::byte*>(moved);
  memory_bytes_ = wanted;
  return {};
}

Status WorkerProcess::Resize(std::uint64_t bytes) {
  if (ftruncate(memory_file_.get(), static_cast<off_t>(bytes)) == 0) return {};
  return Fail(StatusCode::kOutOfMemory, "there is no shared memory for {} bytes", bytes);
}

Result<Descriptor> WorkerProcess::TakeMemory() {
  // Memory can be sealed only when nobody has it mapped for writing.
  End();
  Unmap();
  if (fcntl(memory_file_.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return StartError("F_ADD_SEALS", errno);
  return std::move(memory_file_);
}

}  // namespace rewire::serve
