// SPDX-License-Identifier: Apache-2.0
// A Relay VM executable as it stands in its file, counts and hashes checked, before it means anything.
//
// The layout (from TVM's executable.cc, 0.8 to 0.19), all of it little-endian; list<T> and str are a u64
// count and the elements:
//
//   u64 length of what follows   in a file that a module wrote by itself, as `mod.save` does; else absent
//   u64 magic | str version
//   | virtual devices   absent in 0.8; list<DLDevice> to 0.13; list<(DLDevice, str memory scope)> from 0.14
//   | i32 host device   absent in 0.8
//   | list<str> global names, one per function
//   | u64 n constants, each a tensor, preceded from 0.9 on by u32 tag: 0 tensor, 1 str name (bound later)
//   | list<i64> device of each constant      an index of the virtual devices
//   | list<str> kernel names | u64 n, per kernel: u64 index, u64 m, m (str, str) attributes
//   | u64 n functions, each: list<str> {name, registers, instructions} with the counts in decimal,
//     list<str> parameters, list<i64> device of each parameter, the instructions
//   an instruction: list<i64> {hash, opcode, fields...}
//
// In 0.8 every field that names a device is a DLDeviceType instead of an index.
//
// Development builds lie between releases, so the layout is found by trying, not by the version string.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/import/relay_opcode.h"
#include "rewire/executable_format/import/tvm.h"

namespace rewire::tvm {

struct RelayInstruction {
  RelayOpcode opcode;
  Array<std::int64_t> fields;
};

struct RelayFunction {
  std::string name;
  std::uint64_t register_count = 0;
  Array<std::string> parameters;
  Array<std::int64_t> parameter_devices;  // indices in `devices`
  Array<RelayInstruction> instructions;
};

struct RelayFile {
  std::string version;
  // Fields that name a device are indices of this table; 0.8, which has none and stores a DLDeviceType in
  // each, is brought into this form.
  Array<DeviceEntry> devices;
  std::uint32_t host_device = 0;
  Array<std::variant<ForeignTensor, std::string>> constants;  // a string: the name it is bound by
  Array<std::int64_t> constant_devices;                       // one per constant
  Array<std::string> kernels;
  Array<RelayFunction> functions;
};

// Errors: kInvalidFile, kUnsupported; they say which part of the file.
Result<RelayFile> ReadRelayFile(Span<const std::byte> bytes);

// The hash that TVM stores with an instruction.
std::int64_t RelayInstructionHash(std::int64_t opcode, Span<const std::int64_t> fields);

}  // namespace rewire::tvm
