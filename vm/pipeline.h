// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/pipeline.h>.
//
// Pipeline: keeps several calls of one function under way. Each call has a VM and a stream of its own, so the
// copies in of one call, the work of another and the copies out of a third overlap. Results come in the order
// of the calls.
//
// The host's part of a call is done by the thread that pushes it: kernels on the CPU, and waits in the middle
// of a call (docs/devices.md). Calls of a program without devices are done when TryPush returns.
//
// Threads: one thread may push while another pops; each of the two at a time. A single thread pops when
// size() is depth(), or it would wait for itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/output.h"
#include "rewire/vm/program.h"
#include "rewire/vm/value.h"

namespace rewire {

class REWIRE_API Pipeline {
 public:
  // `depth` VMs of the program; 3 is enough to overlap copies in, work and copies out. The empty name means
  // the entry function. The limits are those of each VM. Errors: kInvalidArgument for a depth of 0 or above
  // 64, kNotFound for the name.
  static Result<Pipeline> TryMake(const Program& program, std::uint32_t depth,
                                  const std::string& function = {}, const Limits& limits = {});
  // Waits for all calls that are under way; their memory must stay until then.
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  // Starts a call with these inputs into these outputs. If `depth` calls are under way, it first waits until
  // one has been popped. Memory of inputs and outputs must stay, and inputs stay unchanged, until the call is
  // popped. Errors: those of VirtualMachine::TryInvoke, with nothing started; kCancelled after Close.
  Status TryPush(Span<const Value> inputs, Span<const OutputBinding> outputs = {});

  // Waits for the oldest call and gives its result, or its failure. Tensors for which TryPush was given
  // outputs have no data in it. If no call is under way, it first waits for one. Errors: kCancelled if the
  // pipeline is closed and no call is left.
  Result<Value> TryPop();

  // No call can be pushed any more. Threads that wait in TryPush return; TryPop gives what is left.
  void Close();

  std::uint32_t size() const;  // calls that are under way
  std::uint32_t depth() const;

 private:
  struct Impl;
  explicit Pipeline(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rewire
