// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/worker/lock_down.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <type_traits>

namespace rewire::serve {
namespace {

// Memory, waiting, the time, the end, messages over descriptors that are there, and what a thread does first
// that has been made before and begins only now.
constexpr int kAllowed[] = {
    SCMP_SYS(brk),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(close),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(futex),
    SCMP_SYS(getcpu),
    SCMP_SYS(getpid),
    SCMP_SYS(getrandom),
    SCMP_SYS(gettid),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(madvise),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(nanosleep),
    SCMP_SYS(recvfrom),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sendto),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(write),
};
#ifdef REWIRE_SANITIZED
// Sanitizers find out by a pipe whether memory can be read.
constexpr int kOfSanitizers[] = {SCMP_SYS(pipe), SCMP_SYS(pipe2)};
#endif
// Libraries go on without these.
constexpr int kRefused[] = {
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(ioctl),
    SCMP_SYS(fstat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(open),
    SCMP_SYS(openat),
    SCMP_SYS(prlimit64),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(stat),
    SCMP_SYS(statx),
    SCMP_SYS(sysinfo),
    SCMP_SYS(uname),
};

Status SystemError(const char* what, int error) {
  return Fail(StatusCode::kIo, "{}: {}", what, std::generic_category().message(error));
}

// The address space that the process has now, in bytes; 0 if it cannot be read.
std::uint64_t AddressSpace() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "r"),
                                                             &std::fclose);
  unsigned long long pages = 0;
  if (file == nullptr || std::fscanf(file.get(), "%llu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Status Limit(__rlimit_resource resource, std::uint64_t most, const char* name) {
  const rlimit limit{most, most};
  return setrlimit(resource, &limit) == 0 ? Status() : SystemError(name, errno);
}

Status LimitResources(const SandboxLimits& limits) {
#ifndef REWIRE_SANITIZED  // whose shadow takes more address space than there is memory
  const std::uint64_t now = AddressSpace();
  if (now == 0) return Fail(StatusCode::kIo, "/proc/self/statm cannot be read");
  if (Status set = Limit(RLIMIT_AS, now + limits.memory_bytes, "RLIMIT_AS"); !set) return set;
  // Descriptors that are open stay.
  if (Status set = Limit(RLIMIT_NOFILE, 0, "RLIMIT_NOFILE"); !set) return set;
#else
  (void)limits;
  (void)&AddressSpace;
#endif
  if (Status set = Limit(RLIMIT_FSIZE, 0, "RLIMIT_FSIZE"); !set) return set;
  return Limit(RLIMIT_CORE, 0, "RLIMIT_CORE");
}

struct ReleaseFilter {
  void operator()(void* filter) const { seccomp_release(filter); }
};

Status FilterCalls() {
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, ReleaseFilter> filter(
      seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (filter == nullptr) return SystemError("seccomp_init", ENOMEM);
  int failed = seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  const auto add = [&](std::uint32_t action, int call, const scmp_arg_cmp* condition = nullptr) {
    if (failed != 0) return;
    failed = seccomp_rule_add_array(filter.get(), action, call, condition == nullptr ? 0 : 1, condition);
  };
  for (const int call : kAllowed) add(SCMP_ACT_ALLOW, call);
#ifdef REWIRE_SANITIZED
  for (const int call : kOfSanitizers) add(SCMP_ACT_ALLOW, call);
#endif
  for (const int call : kRefused) add(SCMP_ACT_ERRNO(EPERM), call);
  // No page becomes executable.
  const scmp_arg_cmp not_executable = {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
  add(SCMP_ACT_ALLOW, SCMP_SYS(mmap), &not_executable);
  add(SCMP_ACT_ALLOW, SCMP_SYS(mprotect), &not_executable);
  if (failed == 0) failed = seccomp_load(filter.get());
  return failed == 0 ? Status() : SystemError("seccomp", -failed);
}

}  // namespace

Status LockDown(const SandboxLimits& limits) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return SystemError("PR_SET_NO_NEW_PRIVS", errno);
  // The process cannot be traced by others of its user, nor leave an image of itself.
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return SystemError("PR_SET_DUMPABLE", errno);
  if (Status limited = LimitResources(limits); !limited) return limited;
  return FilterCalls();
}

}  // namespace rewire::serve
