// SPDX-License-Identifier: Apache-2.0
//
// Recorder: a run that is recorded once and replayed, one call of the driver in place of one for each kernel.
//
// The recording has the addresses of the run. So the VM keeps its memory as that run left it, and every
// change of the VM ends the recording. What the host itself computes is not in it. So a run is refused in
// which the host computes anything but what follows from shapes and constants, or writes an output.
//
// Automatic recording is the same for runs that repeat: once a function has run twice with the same bindings,
// the third run is recorded and replayed. Every change of the VM begins the count anew.
#pragma once

#include <cstdint>
#include <utility>

#include "rewire/base/status.h"
#include "rewire/executable_format/isa.h"
#include "rewire/vm/device/device_streams.h"
#include "rewire/vm/value.h"

namespace rewire {

struct Machine;  // run/machine.h

// While a recording exists, Machine::kRecorded is set.
class Recorder {
 public:
  // The machine outlives this.
  explicit Recorder(Machine* machine) : machine_(*machine) {}

  // Runs the function once without and once with recording. Errors: kUnsupported where the run cannot be
  // recorded.
  [[gnu::cold]] Status Record(std::uint32_t function);
  // Records a function that has been run like this before, if automatic recording is on. True if a recording
  // has just been made.
  [[gnu::cold]] bool RecordRepeated(std::uint32_t function, const RewireFFIAny* run_inputs);
  // Gives the recording to its device, and waits for it unless the run is asynchronous.
  Status Replay();
  [[gnu::cold]] void Drop();

  bool IsOf(std::uint32_t function) const { return function == function_; }
  // Notes a kernel that is called while a run is recorded. Returns the one before it, or kNone.
  std::uint32_t NoteCall(std::uint32_t kernel) { return std::exchange(last_call_, kernel); }

 private:
  Status RecordUsed(std::uint32_t function);
  Status RecordRun(std::uint32_t function, DeviceStreams::Stream* stream);
  Status GiveReplay();

  Machine& machine_;
  void* handle_ = nullptr;      // the device's
  std::uint32_t function_ = 0;  // that is recorded, or whose runs are counted
  std::uint32_t last_call_ = kNone;
  std::uint8_t repeats_ = 0;  // runs of the function since the last change
  DeviceStreams::Stream* stream_ = nullptr;
  DeviceStreams::Source first_;  // of the work that a replay gives
  DeviceStreams::Source last_;
  Value result_;  // of the recorded run, which each replay writes again
};

}  // namespace rewire
