// SPDX-License-Identifier: Apache-2.0
// The side of Rewire in tvm_side_by_side.py. Reads lines "CASE CALLS TIMES" from standard input, where CASE
// is a directory of a generated case (tests/tvm/casefile.py), and answers each with the seconds that CALLS
// calls of the case's first call took, one after the other, or with "error: " and a message. TIMES 0 is the
// program as it is; otherwise each of its kernels is called so many times in place of once, through a
// function in between.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "rewire/tests/tvm/case_reader.h"
#include "rewire/vm/virtual_machine.h"

namespace {

using namespace rewire;

int g_times = 1;

int CallRepeatedly(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  const auto& kernel = *static_cast<const PackedFunction*>(handle);
  int status = 0;
  for (int i = 0; i < g_times && status == 0; ++i) {
    status = kernel.call(kernel.handle, args, num_args, result);
  }
  return status;
}

PackedFunction Repeated(const PackedFunction& kernel) {
  const auto owner = std::make_shared<PackedFunction>(kernel);
  PackedFunction repeated = kernel;
  repeated.call = &CallRepeatedly;
  repeated.handle = owner.get();
  repeated.owner = owner;
  return repeated;
}

// A case with its inputs bound.
struct Peer {
  std::string directory;
  std::unique_ptr<VirtualMachine> vm;
  std::uint32_t function = 0;
};

Status Open(const std::string& directory, const test::KernelWrapper& wrap, Peer& peer) {
  if (peer.directory == directory) return {};
  const Result<test::TvmCase> read = test::ReadTvmCase(directory, wrap);
  if (!read) return Forward(read);
  const test::TvmCall& call = read->calls[0];
  const Result<std::uint32_t> function = read->program.FindFunction(call.function);
  if (!function) return Forward(function);
  peer = {directory, std::make_unique<VirtualMachine>(read->program), *function};
  for (std::uint32_t i = 0; i < call.inputs.size(); ++i) {
    if (Status set = peer.vm->TrySetInput(InputHandle{*function, i}, call.inputs[i]); !set) return set;
  }
  return {};
}

Result<double> Seconds(Peer& peer, std::int64_t calls) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) {
    if (Status invoked = peer.vm->TryInvoke(peer.function); !invoked) return Forward(invoked);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  Peer plain;
  Peer repeated;
  std::string directory;
  std::int64_t calls = 0;
  int times = 0;
  while (std::cin >> directory >> calls >> times) {
    Peer& peer = times == 0 ? plain : repeated;
    g_times = times;
    const Status opened = Open(directory, times == 0 ? test::KernelWrapper() : &Repeated, peer);
    const Result<double> seconds = opened ? Seconds(peer, calls) : Result<double>(Forward(opened));
    fmt::print("{}\n", seconds ? fmt::format("{:.9f}", *seconds) : "error: " + seconds.error().message());
    std::fflush(stdout);
  }
  return 0;
}
