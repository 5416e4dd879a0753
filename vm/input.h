// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/input.h>.
//
// How a host names an input, how its memory is taken, and what became of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewire/vm/program.h"

namespace rewire {

class BoundInputs;  // inputs/bound_inputs.h

// Whether an input refers to the caller's memory or is copied.
enum class InputMode : std::uint8_t {
  kBorrow,  // the memory must stay valid until the input is set again or cleared, or the VM is destroyed
  kCopy,    // copied at once; the caller may reuse the memory when the call returns
};

// Refers to an input: by name or index in the entry function, or by a handle.
class InputRef {
 public:
  InputRef(InputHandle handle) : handle_(handle), kind_(kHandle) {}  // NOLINT: implicit on purpose
  InputRef(const char* name) : name_(name), kind_(kName) {}          // NOLINT
  InputRef(std::string_view name) : name_(name), kind_(kName) {}     // NOLINT
  InputRef(const std::string& name) : name_(name), kind_(kName) {}   // NOLINT
  InputRef(int index) : handle_{0, static_cast<std::uint32_t>(index)}, kind_(kIndex) {}  // NOLINT

 private:
  friend class BoundInputs;
  InputHandle handle_;
  std::string_view name_;
  enum : std::uint8_t { kHandle, kName, kIndex } kind_;
};

// How an input that is set is stored.
struct InputReport {
  bool copied = false;  // it was copied when it was set
  // why it was copied; for an input that was not, a note if some kernels must copy it in each call
  std::string reason;
};

}  // namespace rewire
