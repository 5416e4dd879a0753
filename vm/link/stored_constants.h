// SPDX-License-Identifier: Apache-2.0
//
// Checks and decodes the constants of verified executables. The constants of executables that are linked into
// the program (executable_format/linked/linked_executable.h) are decoded and need no check.
//
// A program that has only such executables has no verifier. It then has none of the functions that check and
// decode, nor xxHash and zstd: they are weak symbols here, which ask the linker for nothing.
#pragma once

#include <cstring>

#include "rewire/base/assert.h"
#include "rewire/executable_format/constant_data.h"

namespace rewire {

[[gnu::weak]] Status DecodeConstant(const Constant& constant, const ConstantCodecs& codecs,
                                    Span<std::byte> raw);
[[gnu::weak]] Status CheckDecodedSize(const Constant& constant);
[[gnu::weak]] Status CheckConstantData(const Constant& constant);

// As CheckConstantData.
inline Status CheckStored(const Constant& constant) {
  return CheckConstantData != nullptr ? CheckConstantData(constant) : Status();
}
// As CheckDecodedSize.
inline Status CheckStoredSize(const Constant& constant) {
  return CheckDecodedSize != nullptr ? CheckDecodedSize(constant) : Status();
}
// As DecodeConstant.
inline Status DecodeStored(const Constant& constant, const ConstantCodecs& codecs, Span<std::byte> raw) {
  if (DecodeConstant != nullptr) return DecodeConstant(constant, codecs, raw);
  REWIRE_ASSERT(constant.codec == kCodecNone, "constant {} is linked in with codec {}", constant.name,
                constant.codec);
  if (!raw.empty()) std::memcpy(raw.data(), constant.stored.view.data(), raw.size());
  return {};
}

}  // namespace rewire
