// SPDX-License-Identifier: Apache-2.0
//
// Functions that ask a custom operator about itself. Callbacks that came later are read only if the
// operator's version has them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rewire/onnxruntime_api/api.h"

namespace rewire::onnxruntime_api {

inline constexpr std::uint32_t kCharacteristicsSince = 8;
inline constexpr std::uint32_t kStatusesSince = 16;
inline constexpr std::uint32_t kVersionsSince = 17;

inline OrtCustomOpInputOutputCharacteristic InputCharacteristic(const OrtCustomOp& op, std::size_t index) {
  if (op.version < kCharacteristicsSince || op.GetInputCharacteristic == nullptr)
    return INPUT_OUTPUT_REQUIRED;
  return op.GetInputCharacteristic(&op, index);
}
inline OrtCustomOpInputOutputCharacteristic OutputCharacteristic(const OrtCustomOp& op, std::size_t index) {
  if (op.version < kCharacteristicsSince || op.GetOutputCharacteristic == nullptr)
    return INPUT_OUTPUT_REQUIRED;
  return op.GetOutputCharacteristic(&op, index);
}
inline bool ServesVersion(const OrtCustomOp& op, std::int64_t version) {
  if (op.version < kVersionsSince || op.GetStartVersion == nullptr || op.GetEndVersion == nullptr)
    return true;
  return op.GetStartVersion(&op) <= version && version <= op.GetEndVersion(&op);
}
inline bool CreatesWithStatus(const OrtCustomOp& op) {
  return op.version >= kStatusesSince && op.CreateKernelV2 != nullptr;
}
inline bool ComputesWithStatus(const OrtCustomOp& op) {
  return op.version >= kStatusesSince && op.KernelComputeV2 != nullptr;
}

}  // namespace rewire::onnxruntime_api
