// SPDX-License-Identifier: Apache-2.0
// The side of Rewire in tvm_side_by_side.py. Reads lines "CASE CALLS" from standard input, where CASE is a
// directory of a generated case (tests/tvm/casefile.py), and answers each with the seconds that CALLS calls
// of the case's first call took, one after the other, or with "error: " and a message.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "tests/tvm/case_reader.h"
#include "vm/virtual_machine.h"

namespace {

using namespace rewire;

// A case with its inputs bound.
struct Peer {
  std::string directory;
  std::unique_ptr<VirtualMachine> vm;
  std::uint32_t function = 0;
};

Status Open(const std::string& directory, Peer& peer) {
  const Result<test::TvmCase> read = test::ReadTvmCase(directory);
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
  Peer peer;
  std::string directory;
  std::int64_t calls = 0;
  while (std::cin >> directory >> calls) {
    Status opened = peer.directory == directory ? Status() : Open(directory, peer);
    const Result<double> seconds = opened ? Seconds(peer, calls) : Result<double>(Forward(opened));
    fmt::print("{}\n", seconds ? fmt::format("{:.9f}", *seconds) : "error: " + seconds.error().message());
    std::fflush(stdout);
  }
  return 0;
}
