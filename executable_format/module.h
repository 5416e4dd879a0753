// SPDX-License-Identifier: Apache-2.0
// Module: the content of an executable as plain data.
//
// Whoever makes executables (assembler, importers, compiler, tests) fills one in; the reader gives one back;
// the verifier judges one. Nothing here has been checked: Executable (executable.h) is a module that has. A
// module owns everything but its constants' bytes, which it shares with whoever holds them (a mapped file, a
// buffer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/array.h"
#include "base/shared_bytes.h"
#include "executable_format/types.h"

namespace rewire {

// A place where tensors live. Entry 0 of a module's table is always the host: {kDLCPU, 0, ""}.
struct DeviceEntry {
  std::int32_t type = kDLCPU;  // a DLDeviceType
  std::int32_t id = 0;
  std::string memory_scope;  // "" is the device's ordinary memory

  bool operator==(const DeviceEntry& other) const {
    return type == other.type && id == other.id && memory_scope == other.memory_scope;
  }
};

struct NamedType {
  std::string name;
  Type type;
};

// Says which source (a node of the model, a line) the instruction at `pc` came from. Debug information.
struct SourceNote {
  std::uint32_t pc = 0;  // word index in the function's code
  std::string text;
};

// Inputs arrive in registers 0 .. inputs.size()-1; the others start undefined.
struct Function {
  std::string name;
  Array<NamedType> inputs;
  Type result;
  Array<std::string> output_names;  // one per leaf of `result`, in pre-order
  std::uint32_t register_count = 0;
  Array<std::uint32_t> code;  // isa.h
  Array<SourceNote> notes;    // sorted by pc
};

enum class ConstantKind : std::uint8_t {
  kData = 0,       // its bytes are in the file
  kParameter = 1,  // bound by name when a Program is linked
  kComputed = 2,   // filled once per Program by the function `__init`
};

// How a constant's bytes are stored. Values from kFirstHostCodec belong to codecs that the host registers.
enum Codec : std::uint32_t { kCodecNone = 0, kCodecZstd = 1, kFirstHostCodec = 256 };

// A tensor slot that LoadConst reads. Data constants have static shapes; a computed one's dimensions may be
// unknown (packed weights), a parameter's dtype too, until it is bound.
struct Constant {
  ConstantKind kind = ConstantKind::kData;
  std::string name;
  TypeNode type;  // kTensor
  std::uint32_t codec = kCodecNone;
  std::uint64_t raw_bytes = 0;  // size after decoding
  SharedBytes stored;           // the bytes as in the file; empty for kParameter and kComputed
  // XXH3-64 of `stored`. 0 while unknown: the writer fills it in, and refuses bytes that no longer match a
  // known one.
  std::uint64_t checksum = 0;
};

using AttributeValue = std::variant<std::int64_t, double, std::string, Array<std::int64_t>, Array<double>>;

struct Attribute {
  std::string name;
  AttributeValue value;

  bool operator==(const Attribute& other) const { return name == other.name && value == other.value; }
};

enum KernelFlags : std::uint32_t {
  kKernelObjects = 1,  // ADT arguments are passed whole, not flattened
  kKernelInPlace = 2,  // a written argument may be the same memory as an argument that is read
};

// A packed function that the executable calls, resolved by name when a Program is linked. With attributes,
// the name is that of a factory which is called once with them and returns the function.
struct KernelImport {
  std::string name;
  std::string debug_name;  // what errors, traces and profiles call it; may be empty
  Array<Attribute> attributes;
  std::uint32_t flags = 0;            // KernelFlags
  std::uint32_t alignment = 0;        // bytes its tensor arguments need; 0: their element size
  Array<std::uint32_t> also_written;  // argument positions written besides the last `outputs`
};

// The name of the function that fills computed constants: no inputs, a result ADT with one field per computed
// constant in the order of the table.
inline constexpr const char kInitFunction[] = "__init";

inline constexpr std::int64_t kNoLimit = -1;

struct Module {
  Array<DeviceEntry> devices = {DeviceEntry{}};
  Array<std::string> symbols;  // names of symbolic dimensions
  // The largest size of each, kNoLimit where it may be any; empty: of none.
  Array<std::int64_t> symbol_limits;
  Array<std::string> strings;  // what STRING operands point at
  Array<Constant> constants;
  Array<KernelImport> kernels;
  Array<Function> functions;
  Array<std::pair<std::string, std::string>> metadata;  // e.g. {"producer", "vm-as 0.1.0"}
};

}  // namespace rewire
