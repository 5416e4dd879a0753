// SPDX-License-Identifier: Apache-2.0
// The memory of one call: tensors in blocks of exactly their bytes, objects of sequences, attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/kernels/call.h"
#include "rewire/vm/kernel/kernel.h"

namespace rewire::test {

// `bytes` bytes and not one more, at a multiple of 64; to be freed.
void* AlignedBlock(std::uint64_t bytes);

// The memory and the DLTensor of an argument. Lies in `within` where that is given and large enough.
class HostBlock {
 public:
  HostBlock(const Argument& argument, const HostBlock* within);
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  DLTensor* dl() { return &tensor_; }

 private:
  std::vector<std::int64_t> shape_, strides_;
  DLTensor tensor_{};
  char* begin_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool owns_ = false;
};

// An object of the FFI ABI: a tensor, or a sequence of borrowed ones.
class Object {
 public:
  static Object* Tensor(const Argument& like);
  static Object* Sequence(std::vector<RewireFFIAny> fields);
  RewireFFIAny any();
  // Null when the value is no sequence.
  static const std::vector<RewireFFIAny>* FieldsOf(const RewireFFIAny& value);

 private:
  RewireFFITensorObject object_{};  // first: what the ABI points to
  std::unique_ptr<HostBlock> block_;
  std::vector<RewireFFIAny> fields_;
};

class Attributes {
 public:
  explicit Attributes(const Call& call);
  const std::vector<RewireFFIAny>& args() const { return args_; }

 private:
  std::vector<RewireFFIAny> args_;
  std::vector<std::unique_ptr<RewireFFIShapeObject>> shapes_;
  std::vector<std::unique_ptr<std::int64_t>> lengths_;
  std::vector<std::unique_ptr<DLTensor>> lists_;
};

class Memory {
 public:
  // Null when the call's arguments together are too large for the drill.
  static std::unique_ptr<Memory> Make(const Call& call);
  const std::vector<RewireFFIAny>& args() const { return args_; }
  // The tensor of each argument; null for what is no tensor.
  std::vector<const DLTensor*> tensors() const;

 private:
  std::vector<RewireFFIAny> args_;
  std::vector<std::unique_ptr<HostBlock>> blocks_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace rewire::test
