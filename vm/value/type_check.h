// SPDX-License-Identifier: Apache-2.0
// Checks values that a host gives against the types of a signature.
#pragma once

#include <cstdint>
#include <string>

#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/value/objects.h"

namespace rewire {

// The devices of a module by their DLPack numbers, as types name them by index.
bool IsOnDevice(const Module& module, std::uint32_t device, DLDevice given);

// True if an input of this type is to be on another device than the one where the tensor is. An open value
// may name a device, too.
bool IsWantedElsewhere(const Module& module, const TypeNode& type, DLDevice given);

// True if a tensor fits a tensor type, as far as the type is known. Symbols match any size. This is the fast
// path of binding; if it returns false, TensorMismatchText explains the difference.
bool TensorFits(const Module& module, const TypeNode& type, const DLTensor& tensor);
// "f32[N, 4] on cpu:0 expected, f64[2, 4] on cpu:0 given"
std::string TensorMismatchText(const Module& module, const TypeNode& type, const DLTensor& tensor);

// Checks that the value fits the type. An integer fits where a host scalar of its width does. `nodes`
// provides room for one value per node of the type. Never recurses. Errors: kInvalidArgument with the place
// in the tree.
Status CheckValue(const Module& module, const Type& type, const RewireFFIAny& value, RewireFFIAny* nodes);

}  // namespace rewire
