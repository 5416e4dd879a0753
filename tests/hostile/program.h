// SPDX-License-Identifier: Apache-2.0
// The records in the sections of an executable, as docs/format.md, "Records", and docs/isa.md describe them.
// Every field can hold any value, so that damaged files can be written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/hostile/container.h"

namespace rewire::hostile {

struct Device {
  std::int32_t type = 1;
  std::int32_t id = 0;
  std::string scope;
};

enum TypeKind : std::uint8_t { kTensor, kAdt, kClosure, kStorage, kInteger, kValue };

struct TypeNode {
  std::uint8_t kind = kValue;
  std::array<std::uint32_t, 3> words{};  // dtype, rank, device of a tensor; tag, fields, 0 of an ADT
  std::vector<std::int64_t> dims;        // of a tensor
};
using Type = std::vector<TypeNode>;

enum ConstantKind : std::uint8_t { kDataConstant, kParameter, kComputed };

struct Constant {
  std::uint8_t kind = kDataConstant;
  std::string name;
  TypeNode type;
  std::uint32_t codec = 0;
  std::uint64_t raw_bytes = 0;
  Bytes stored;
  // Lies; otherwise what `stored` says.
  std::optional<std::uint64_t> stored_bytes;
  std::optional<std::uint64_t> checksum;
};

struct Attribute {
  std::string name;
  std::uint32_t kind = 0;
  std::string text;                    // kind 2
  std::vector<std::uint64_t> numbers;  // the bits; one for kinds 0 and 1, any for 3 and 4
};

struct Kernel {
  std::string name;
  std::string debug_name;
  std::vector<Attribute> attributes;
  std::uint32_t flags = 0;
  std::uint32_t alignment = 0;
  std::vector<std::uint32_t> also_written;
};

struct DeviceBlob {
  std::string name;
  std::uint32_t form = 0;
  std::string architecture;
  std::uint32_t constant = 0;
};

using Size = std::vector<std::int64_t>;

struct DeviceArgument {
  std::uint8_t kind = 0;
  std::uint32_t word = 0;  // a parameter (kind 0), or a dtype (1, 2)
  Size size;               // kinds 1, 3
  std::uint64_t real = 0;  // the bits; kind 2
};

struct DeviceKernel {
  std::string name, code, symbol;
  std::vector<std::pair<std::string, TypeNode>> parameters;
  std::uint32_t outputs = 0;
  std::vector<DeviceArgument> arguments;
  std::array<Size, 7> sizes;
};

// Opcodes that changes of a program name. Others have their row in code.cc alone.
enum Op : std::uint8_t {
  kMove,
  kRet,
  kInvoke,
  kInvokeClosure,
  kInvokePacked,
  kAllocTensor,
  kAllocTensorReg,
  kAllocAdt,
  kAllocClosure,
  kGetField,
  kIf,
  kLoadConst,
  kGoto,
  kGetTag,
  kLoadConsti,
  kFatal,
  kAllocStorage,
  kShapeOf,
  kReshapeTensor,
  kDeviceCopy,
  kKill,
};

// The kinds of an opcode's operands, one letter each. docs/isa.md describes the kinds.
//   r READ, o OPT_READ, w WRITE, v OPT_WRITE, k KILL, i IMM32, l IMM64, d DTYPE,
//   c CONSTANT, f FUNCTION, p KERNEL, e DEVICE, s STRING, t TARGET, R READS, D DIMS
const char* OperandsOf(std::uint32_t op);
// How many opcodes have a row: those from 0 on.
std::uint32_t OpCount();

// An operand's number, or a list's; of a jump to an instruction, that instruction's index.
struct Operand {
  char kind = 'i';
  std::int64_t value = 0;
  std::vector<std::int64_t> list;
  bool raw = false;                    // of a jump: value is the distance in words
  std::optional<std::uint32_t> count;  // of a list: lies about its length
};

struct Instruction {
  std::uint32_t op = kMove;
  std::vector<Operand> operands;
  std::optional<std::uint32_t> length;  // lies
};

struct Function {
  std::string name;
  std::vector<std::pair<std::string, Type>> inputs;
  Type result;
  std::vector<std::string> outputs;
  std::uint32_t registers = 0;
  std::vector<Instruction> code;
  std::vector<std::uint32_t> words;  // in place of `code`, where that is no stream of instructions
  std::vector<std::pair<std::uint32_t, std::string>> notes;  // at word indices
  std::optional<std::uint32_t> word_count;                   // lies
};

struct Program {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Device> devices;
  std::vector<std::string> symbols;
  std::vector<std::int64_t> symbol_limits;
  std::vector<std::string> strings;
  std::vector<Constant> constants;
  std::vector<Kernel> kernels;
  std::vector<DeviceBlob> device_blobs;
  std::vector<DeviceKernel> device_kernels;
  std::vector<Function> functions;
};

// Nothing where the sections do not hold what docs/format.md says.
std::optional<Program> ParseProgram(const Container& container);
// The sections, in order; those without content are left out.
Container ToContainer(const Program& program);

// Both steps at once.
std::optional<Program> ParseFile(std::string_view file);
Bytes WriteFile(const Program& program);

// Code words and back (code.cc). False: they are no stream of instructions.
bool DecodeWords(const std::vector<std::uint32_t>& words, std::vector<Instruction>* code);
std::vector<std::uint32_t> EncodeWords(const std::vector<Instruction>& code);

}  // namespace rewire::hostile
