// SPDX-License-Identifier: Apache-2.0
// Says which calls a kernel's row (vm/kernel/row.h) allows.
//
// For such a call it says how many arguments there may be and how many of them are written. It also finds the
// row's argument that describes each argument of the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rewire/executable_format/module.h"
#include "rewire/vm/kernel/row.h"

namespace rewire {

class KernelCalls {
 public:
  // For a kernel without a row, or with a row that declares no arguments: nothing is known about its calls.
  KernelCalls() = default;
  // The row must outlive this.
  KernelCalls(const RewireKernelRow* row, const KernelImport& import);

  bool known() const { return row_ != nullptr; }
  const RewireKernelRow& row() const { return *row_; }

  struct Range {
    std::uint32_t least;
    std::uint32_t most;
    bool Has(std::uint32_t value) const { return least <= value && value <= most; }
  };
  // Number of arguments that a call writes; they are its last ones. The first form is for any call, the
  // second for a call with `count` arguments; nullopt if there is no such call.
  Range Outputs() const;
  std::optional<Range> Outputs(std::uint32_t count) const;

  // The argument of the row that describes the argument `position` of a call. The call has `count` arguments,
  // of which `outputs` are written. Outputs(count) must allow such a call.
  const RewireKernelArgument& At(std::uint32_t position, std::uint32_t count, std::uint32_t outputs) const {
    return row_->arguments[IndexOf(position, count, outputs)];
  }
  std::uint32_t IndexOf(std::uint32_t position, std::uint32_t count, std::uint32_t outputs) const;

  // If all calls have the same arguments and write one: bit k is set if that one may exactly cover argument
  // k. Otherwise 0.
  std::uint32_t InPlace() const;

  // "x, bias? -> out over x"
  std::string Text() const;

 private:
  // The arguments of a call that are read, or those that are written.
  struct Side {
    std::uint32_t required = 0;
    std::uint32_t optional = 0;
    bool list = false;  // any number of tensors in addition
  };
  Side Read() const { return {read_required_, read_optional_, read_list_ != 0}; }
  Side Written() const { return {written_required_, written_optional_, written_list_ != 0}; }
  std::uint32_t IndexIn(const Side& side, std::uint32_t first, std::uint32_t position,
                        std::uint32_t given) const;

  const RewireKernelRow* row_ = nullptr;
  std::uint32_t counted_ = 0;  // number of tensors in a list whose length an attribute gives
  // The two sides, packed: a linked kernel has room for no more.
  std::uint32_t read_required_ = 0;
  std::uint32_t written_required_ = 0;
  std::uint16_t first_written_ = 0;  // in the row
  std::uint8_t read_optional_ : 7 = 0;
  std::uint8_t read_list_ : 1 = 0;
  std::uint8_t written_optional_ : 7 = 0;
  std::uint8_t written_list_ : 1 = 0;
};

}  // namespace rewire
