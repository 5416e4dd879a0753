// SPDX-License-Identifier: Apache-2.0
// Checks values that a host gives against the types of a signature.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "executable_format/module.h"
#include "vm/objects.h"

namespace rewire {

// The devices of a module by their DLPack numbers, as types name them by index.
bool IsOnDevice(const Module& module, std::uint32_t device, DLDevice given);

// True when a tensor fits a tensor type as far as it is known. Symbols are free: each matches anything. The
// fast path of binding; MismatchText says what is wrong when it is false.
bool TensorFits(const Module& module, const TypeNode& type, const DLTensor& tensor);
// "f32[N, 4] on cpu:0 expected, f64[2, 4] on cpu:0 given"
std::string TensorMismatchText(const Module& module, const TypeNode& type, const DLTensor& tensor);

// kInvalidArgument, with the place in the tree, unless the value fits the type. Never recurses.
Status CheckValue(const Module& module, const Type& type, const RewireFFIAny& value);

}  // namespace rewire
