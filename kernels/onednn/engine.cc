// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/engine.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "rewire/vm/kernel/kernel.h"

namespace rewire::kernel::onednn {

const dnnl::engine& Engine() {
  static const auto* const kEngine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *kEngine;
}

ProgramThreads::ProgramThreads() : before_(omp_get_max_threads()) {
  const int wanted = __rewire_kernel_api->thread_count();
  if (wanted != before_) omp_set_num_threads(wanted);
}

ProgramThreads::~ProgramThreads() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

namespace {

// OpenMP's threads belong to the thread that used them first. It makes them when it needs more than it has.
struct OpenMpThreads {
  pid_t process = 0;  // in which they are
  int count = 1;      // with the calling thread
};
thread_local OpenMpThreads t_threads;

struct Work {
  dnnl_primitive_t primitive;
  const dnnl_exec_arg_t* arguments;
  int count;
  int threads;
  dnnl_status_t status = dnnl_success;

  void Run() {
    thread_local dnnl::stream stream(Engine());
    status = dnnl_primitive_execute(primitive, stream.get(), count, arguments);
  }
};

// The new threads block signals, so that the host's handlers run on the host's threads. Those of faults stay
// open: they go to the thread that caused them.
void RunAndMakeThreads(Work* work) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  work->Run();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A child of fork has none of its parent's threads, and OpenMP would wait for them. A thread that has not
// used OpenMP yet gets threads of its own.
bool RunOnNewThread(Work* work) {
  const auto run = [](void* data) -> void* {
    auto* given = static_cast<Work*>(data);
    omp_set_num_threads(given->threads);
    RunAndMakeThreads(given);
    return nullptr;
  };
  pthread_t thread;
  return pthread_create(&thread, nullptr, run, work) == 0 && pthread_join(thread, nullptr) == 0;
}

}  // namespace

Status Execute(const dnnl::primitive& primitive, const dnnl_exec_arg_t* arguments, int count) {
  Work work{primitive.get(), arguments, count, omp_get_max_threads()};
  const pid_t process = getpid();
  if (work.threads <= 1) {
    work.Run();
  } else if (t_threads.process != 0 && t_threads.process != process) {
    if (!RunOnNewThread(&work)) return RuntimeError("oneDNN: no thread could be made in a forked process");
  } else if (t_threads.count < work.threads) {
    RunAndMakeThreads(&work);
    t_threads = {process, work.threads};
  } else {
    work.Run();
  }
  if (work.status != dnnl_success)
    return RuntimeError("oneDNN: execution failed with status ", static_cast<int>(work.status));
  return Status();
}

Status Scratch(const dnnl::memory::desc& desc, void** memory) {
  *memory = nullptr;
  if (desc.get_size() == 0) return Status();
  *memory = __rewire_kernel_api->workspace(desc.get_size());
  return *memory != nullptr ? Status() : Status::AlreadySet();
}

dnnl::primitive_attr UserScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

}  // namespace rewire::kernel::onednn
