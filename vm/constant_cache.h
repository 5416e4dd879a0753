// SPDX-License-Identifier: Apache-2.0
// One copy of each constant in a process: what two Programs load from equal bytes, decompress, upload or
// compute in `__init` is held once, and let go with its last user.
//
// Equal means equal byte by byte. A checksum only finds the candidates: it comes from a file, and a file must
// not be able to get at another model's weights, or to put its own in their place, by writing a number.
//
// Any thread; each constant is decoded by the first thread that asks for it while the others wait.
#pragma once

#include <cstdint>

#include "base/shared_bytes.h"
#include "base/status.h"
#include "executable_format/constant_data.h"
#include "vm/linked_device.h"

namespace rewire {

// The bytes of a data constant as a tensor has them, in memory of `device` (view.data() is then an address
// there). On the host they lie at a multiple of `alignment`, a power of two, and of what the dtype needs;
// where they do so in the file, they are used there. An executable that was opened with `copy` never shares
// pages of a file. kInvalidFile, kUnsupported, kOutOfMemory; kLinkFailed: the device refused the copy.
Result<SharedBytes> SharedConstantBytes(const Constant& constant, const ConstantCodecs& codecs,
                                        const LinkedDevice& device, std::uint64_t alignment);

// A copy of host bytes on a device. kOutOfMemory; kLinkFailed: the device refused.
Result<SharedBytes> CopyToDevice(const SharedBytes& bytes, const LinkedDevice& device);

// Bytes equal to these in host memory: those that a Program already holds, or these, which are then found by
// others. They must never change, and `alignment` is what they need.
SharedBytes SharedComputedBytes(const SharedBytes& bytes, std::uint64_t alignment);

}  // namespace rewire
