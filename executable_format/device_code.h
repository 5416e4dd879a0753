// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/device_code.h>.
//
// Device code in an executable: native code of devices, and how its kernels are launched.
//
// The bytes are constants of the module, so that they are compressed, shared and checked as constants are. No
// instruction may load them. Device code is native code: a host decides whether it may run
// (LinkOptions::trust_device_code).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/span.h"
#include "rewire/executable_format/types.h"

namespace rewire {

// The operations of a SizeExpression. The numbers are those of the file.
enum class SizeOp : std::int64_t {
  kNumber = 0,  // the next word
  kSymbol = 1,  // the size of the symbolic dimension that the next word names
  kAdd = 2,     // the rest take two values
  kSubtract = 3,
  kMultiply = 4,
  kDivide = 5,  // rounds down
  kCeilDivide = 6,
  kRemainder = 7,
  kMin = 8,
  kMax = 9,
};
inline constexpr std::int64_t kSizeOps = 10;

// An integer computed from the dimensions of a call's tensors, in postfix order: "n 64 ceildiv" is
// {kSymbol, 0, kNumber, 64, kCeilDivide}.
struct SizeExpression {
  Array<std::int64_t> words;
};
inline constexpr std::uint32_t kMostSizeWords = 128;
inline constexpr std::uint32_t kMostSizeDepth = 16;  // values that wait for their operation

// Returns null if the expression has one value and keeps the limits, else what is wrong. Symbols are not
// looked up.
REWIRE_API const char* SizeExpressionFault(Span<const std::int64_t> words);

// The size of a symbolic dimension.
struct SymbolSize {
  std::int64_t symbol;
  std::int64_t size;
};

// Computes the value of an expression without fault. False if a step overflows, or divides by a number below
// 1, or uses a symbol that is not in `symbols`.
bool EvaluateSize(Span<const std::int64_t> words, Span<const SymbolSize> symbols, std::int64_t* value);

// The language of a blob of device code. The numbers are those of the file and of RewireDeviceCode.
enum class DeviceCodeForm : std::uint32_t {
  kOpenClC = 1,  // source text
  kSpirV = 2,
  kCudaCpp = 3,  // source text
  kPtx = 4,
  kCubin = 5,
  kFatbin = 6,
};
inline constexpr std::uint32_t kMostDeviceCodeForm = 6;

// "opencl_c", "spirv", "cuda_cpp", "ptx", "cubin" or "fatbin"; empty for another number.
REWIRE_API std::string_view DeviceCodeFormName(std::uint32_t form);

// One blob. Several may have the same name: they hold the same kernels in other forms or for other
// architectures, and the best one that the device takes is used.
struct DeviceCodeEntry {
  std::string name;
  std::uint32_t form = 0;  // a DeviceCodeForm
  // cubin: "sm_90", needed. PTX: the oldest architecture that it runs on. Others: the only architecture for
  // which this is meant, or "" for all.
  std::string architecture;
  std::uint32_t constant = 0;  // a data constant u8[n]
};

enum class DeviceArgumentKind : std::uint8_t {
  kTensor = 0,       // the address of a parameter's first element
  kInteger = 1,      // `value`, as `dtype`
  kReal = 2,         // `real`, as `dtype`
  kLocalMemory = 3,  // OpenCL alone: `value` bytes of memory that a group shares
};

// One argument of a launch.
struct DeviceArgument {
  DeviceArgumentKind kind = DeviceArgumentKind::kTensor;
  std::uint32_t parameter = 0;
  DLDataType dtype = kUnknownDType;
  SizeExpression value;
  double real = 0;
};

// True for an integer of 8 to 64 bits, or a real number of 32 or 64, by the argument's kind.
constexpr bool IsArgumentDType(const DeviceArgument& argument) {
  const DLDataType dtype = argument.dtype;
  if (argument.kind == DeviceArgumentKind::kReal) return dtype == kFloat32 || dtype == kFloat64;
  const bool sized = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  return (dtype.code == kDLInt || dtype.code == kDLUInt) && sized && dtype.lanes == 1;
}

struct DeviceParameter {
  std::string name;
  TypeNode type;  // a tensor on a device
};

// A packed function that launches device code. Imports of this name get it.
struct DeviceKernelEntry {
  std::string name;
  std::string code;    // the name of the blobs
  std::string symbol;  // the kernel's name in them
  // The arguments of a call. The last `outputs` parameters are written. A symbolic dimension has one size
  // within a call.
  Array<DeviceParameter> parameters;
  std::uint32_t outputs = 0;
  Array<DeviceArgument> arguments;
  // The number of groups in each dimension, the threads of a group, and the bytes of dynamic shared memory
  // (CUDA).
  SizeExpression groups[3], threads[3], shared_bytes;
};
inline constexpr std::uint32_t kMostDeviceParameters = 16;
inline constexpr std::uint32_t kMostDeviceArguments = 64;

}  // namespace rewire
