// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/module.h>.
//
// Module: the content of an executable as plain data.
//
// Assembler, importers, compiler and tests fill a Module in. The reader returns one, and the verifier checks
// one. Nothing in a Module has been checked yet; an Executable (executable.h) is a module that passed the
// verifier.
//
// A module owns everything except the bytes of its constants. It shares those with their holder: a mapped
// file or a buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/executable_format/device_code.h"
#include "rewire/executable_format/types.h"

namespace rewire {

// A device on which tensors live. Entry 0 of a module's table is always the host: {kDLCPU, 0, ""}.
struct DeviceEntry {
  std::int32_t type = kDLCPU;  // a DLDeviceType
  std::int32_t id = 0;
  std::string memory_scope;  // "" means the device's ordinary memory

  bool operator==(const DeviceEntry& other) const {
    return type == other.type && id == other.id && memory_scope == other.memory_scope;
  }
};

struct NamedType {
  std::string name;
  Type type;
};

// Debug information: names the source of the instruction at `pc`, such as a node of the model or a line.
struct SourceNote {
  std::uint32_t pc = 0;  // word index in the function's code
  std::string text;
};

// Inputs arrive in registers 0 to inputs.size() - 1. The other registers start undefined.
struct Function {
  std::string name;
  Array<NamedType> inputs;
  Type result;
  Array<std::string> output_names;  // one name per leaf of `result`, in pre-order
  std::uint32_t register_count = 0;
  Array<std::uint32_t> code;  // 32-bit words; isa.h describes them
  Array<SourceNote> notes;    // sorted by pc
};

enum class ConstantKind : std::uint8_t {
  kData = 0,       // the file holds its bytes
  kParameter = 1,  // bound by name when a Program is linked
  kComputed = 2,   // computed once per Program by the function `__init`
};

// How a constant's bytes are stored. Ids from kFirstHostCodec on belong to codecs that the host registers.
enum Codec : std::uint32_t { kCodecNone = 0, kCodecZstd = 1, kFirstHostCodec = 256 };

// A tensor that LoadConst reads. Data constants have static shapes. A computed constant may have unknown
// dimensions (packed weights). A parameter may also have an unknown dtype until it is bound.
struct Constant {
  ConstantKind kind = ConstantKind::kData;
  std::string name;
  TypeNode type;  // always a tensor type (kTensor)
  std::uint32_t codec = kCodecNone;
  std::uint64_t raw_bytes = 0;  // size after decoding
  SharedBytes stored;           // the bytes as in the file; empty for kParameter and kComputed
  // XXH3-64 of `stored`. 0 means not yet known, and the writer fills it in. If it is known and the bytes no
  // longer match, the writer fails.
  std::uint64_t checksum = 0;
};

using AttributeValue = std::variant<std::int64_t, double, std::string, Array<std::int64_t>, Array<double>>;

struct Attribute {
  std::string name;
  AttributeValue value;

  bool operator==(const Attribute& other) const { return name == other.name && value == other.value; }
};

enum KernelFlags : std::uint32_t {
  kKernelObjects = 1,  // pass ADTs whole and integers as integers; otherwise both become tensors
  kKernelInPlace = 2,  // a written argument may use the same memory as one that is read
};

// A packed function that the executable calls. Its name is resolved when a Program is linked. If there are
// attributes, the name is that of a factory: it is called once with the attributes and returns the function.
struct KernelImport {
  std::string name;
  std::string debug_name;  // the name in errors, traces and profiles; may be empty
  Array<Attribute> attributes;
  std::uint32_t flags = 0;      // KernelFlags
  std::uint32_t alignment = 0;  // alignment in bytes that its tensor arguments need; 0: the element size
  Array<std::uint32_t> also_written;  // positions of written arguments besides the last `outputs` ones
};

// The name of the function that computes the kComputed constants. It has no inputs. Its result is an ADT with
// one field per computed constant, in the order of the table.
inline constexpr const char kInitFunction[] = "__init";

inline constexpr std::int64_t kNoLimit = -1;

struct Module {
  Array<DeviceEntry> devices = {DeviceEntry{}};
  Array<std::string> symbols;  // names of symbolic dimensions
  // The largest size of each symbol, or kNoLimit. Empty if no symbol has a limit.
  Array<std::int64_t> symbol_limits;
  Array<std::string> strings;  // what STRING operands refer to
  Array<Constant> constants;
  Array<KernelImport> kernels;
  Array<DeviceCodeEntry> device_code;
  Array<DeviceKernelEntry> device_kernels;
  Array<Function> functions;
  Array<std::pair<std::string, std::string>> metadata;  // e.g. {"producer", "vm-as 0.1.0"}
  // In the file, all but the constants' bytes is compressed (docs/format.md). Writers do so where it helps.
  bool compressed = false;
};

// The position of the function of this name, or the number of functions if there is none.
REWIRE_API std::size_t PositionOfFunction(const Module& module, std::string_view name);

// By constant: 1 if it is a blob of device code, which is no tensor of the program. The module is verified.
REWIRE_API Array<std::uint8_t> ConstantsOfDeviceCode(const Module& module);

}  // namespace rewire
