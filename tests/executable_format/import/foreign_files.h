// SPDX-License-Identifier: Apache-2.0
// Writes files as TVM does, for tests that need one of a given layout or with a given fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/executable_format/import/relay_file.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

class StreamWriter {
 public:
  template <typename T>
  void Put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Count(std::uint64_t count) { Put(count); }
  void String(const std::string& text);
  void Strings(const std::vector<std::string>& texts);
  void Ints(const std::vector<std::int64_t>& ints);
  void Tensor(DLDataType dtype, const std::vector<std::int64_t>& shape, const std::string& elements);
  void Raw(const std::string& bytes) { bytes_ += bytes; }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// TVM's opcodes, as files have them.
inline constexpr std::int64_t kMove = 0, kRet = 1, kInvoke = 2, kInvokeClosure = 3, kInvokePacked = 4,
                              kAllocTensor = 5, kAllocTensorReg = 6, kAllocAdt = 7, kAllocClosure = 8,
                              kGetField = 9, kIf = 10, kLoadConst = 11, kGoto = 12, kGetTag = 13,
                              kLoadConsti = 14, kFatal = 15, kAllocStorage = 16, kShapeOf = 17, kReshape = 18,
                              kDeviceCopy = 19, kKill = 20;

// An instruction as the file has it, without its hash: opcode, fields.
using RelayWords = std::vector<std::int64_t>;

struct RelayFunctionSpec {
  std::string name = "main";
  std::string registers = "8";
  std::vector<std::string> parameters;
  std::vector<RelayWords> code;
  std::string instructions;  // the count as text; empty: that of `code`
};

struct RelaySpec {
  enum class Devices { kScoped, kPlain, kAbsent };
  Devices form = Devices::kScoped;
  bool tagged_constants = true;
  std::string version = "0.14.0";
  std::vector<DeviceEntry> devices = {DeviceEntry{}};
  std::int32_t host = 0;
  struct Constant {
    std::string name;  // not empty: bound later
    DLDataType dtype = kInt64;
    std::vector<std::int64_t> shape;
    std::string elements;
    std::int64_t device = 0;
  };
  std::vector<Constant> constants;
  std::vector<std::string> kernels = {"kernel_a", "kernel_b"};
  std::vector<RelayFunctionSpec> functions;
  std::vector<std::string> globals;  // empty: the functions' names
  std::int64_t parameter_device = 0;
};

// A file whose only function is "main".
RelaySpec OneFunction(std::vector<RelayWords> code, std::vector<std::string> parameters = {"x"},
                      std::string registers = "64");

RelaySpec::Constant Scalar64(std::int64_t value);
std::string WriteRelay(const RelaySpec& spec);

// The bytes as an importer takes them, kept alive by themselves.
SharedBytes Share(std::string bytes);

// `function`'s instructions as text, one a line.
std::string CodeText(const Module& module, std::size_t function = 0);

}  // namespace rewire::tvm
