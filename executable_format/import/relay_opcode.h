// SPDX-License-Identifier: Apache-2.0
//
// The opcodes of TVM's Relay VM, as its files number them. Rewire's own (isa.h) began with the same ones and
// may get more; a file of TVM's knows these alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rewire::tvm {

enum class RelayOpcode : std::uint8_t {
  kMove,
  kRet,
  kInvoke,
  kInvokeClosure,
  kInvokePacked,
  kAllocTensor,
  kAllocTensorReg,
  kAllocADT,
  kAllocClosure,
  kGetField,
  kIf,
  kLoadConst,
  kGoto,
  kGetTag,
  kLoadConsti,
  kFatal,
  kAllocStorage,
  kShapeOf,
  kReshapeTensor,
  kDeviceCopy,
  kKillRegister,
};
inline constexpr std::size_t kRelayOpcodes =
    std::size_t{1} + static_cast<std::size_t>(RelayOpcode::kKillRegister);

}  // namespace rewire::tvm
