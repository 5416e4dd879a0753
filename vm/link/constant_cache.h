// SPDX-License-Identifier: Apache-2.0
//
// Keeps one copy of each constant in a process. If two Programs load, decompress, upload or compute equal
// bytes, they share one copy, which is freed with its last user.
//
// Bytes are compared in full. A checksum only finds candidates, because it comes from a file. A file must not
// be able to read another model's weights, or to replace them, by writing a number.
//
// Thread-safe. The first thread that asks for a constant decodes it, while the others wait.
#pragma once

#include <cstdint>

#include "rewire/base/shared_bytes.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/vm/device/linked_device.h"

namespace rewire {

// Returns the bytes of a data constant in memory of `device` (view.data() is then an address there). On the
// host they lie at a multiple of `alignment`, which is a power of two, and of the dtype's own alignment. If
// they do so in the file, they are used there. An executable that was opened with `copy` never shares pages
// of a file.
//
// Errors: kInvalidFile, kUnsupported, kOutOfMemory; kLinkFailed if the device refused the copy.
Result<SharedBytes> SharedConstantBytes(const Constant& constant, const ConstantCodecs& codecs,
                                        const LinkedDevice& device, std::uint64_t alignment);

// The most memory that SharedConstantBytes takes, besides the file: the constant's size if it decodes or
// copies it, and 0 if it is used in place.
std::uint64_t DecodedBytes(const Constant& constant, const LinkedDevice& device, std::uint64_t alignment);

// Copies host bytes to a device. Errors: kOutOfMemory; kLinkFailed if the device refused.
Result<SharedBytes> CopyToDevice(const SharedBytes& bytes, const LinkedDevice& device);

// Returns bytes equal to these in host memory: either bytes that a Program already holds, or these, which
// others then find. They must never change. `alignment` is what they need. A host may end an allocator that
// has a context when the Programs that use it are gone. So its memory is shared with those alone, by its
// context.
SharedBytes SharedComputedBytes(const SharedBytes& bytes, std::uint64_t alignment,
                                const void* allocator_context);

}  // namespace rewire
