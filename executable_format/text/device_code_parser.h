// SPDX-License-Identifier: Apache-2.0
// Device code in text assembly:
//
//   .device_code name form ["architecture"] "=" constant
//   .device_kernel name "(" parameters ")" "->" "(" parameters ")" "=" name name launch
//
//   form       = "opencl_c" | "spirv" | "cuda_cpp" | "ptx" | "cubin" | "fatbin" | "form" "=" n
//   parameters = [name ":" type {"," name ":" type}]       read on the left, written on the right
//   launch     = "groups" sizes "threads" sizes ["shared" "(" size ")"] "args" "(" [arg {"," arg}] ")"
//   sizes      = "(" size ["," size ["," size]] ")"        what is left out is 1
//   arg        = name | "#" n | dtype (size | number) | "local" size
//   size       = number | symbol | operation "(" size "," size ")" | "words" "(" n {"," n} ")"
//   operation  = "add" | "sub" | "mul" | "div" | "ceildiv" | "mod" | "min" | "max"
#pragma once

#include <string_view>

#include "rewire/executable_format/text/cursor.h"
#include "rewire/executable_format/text/tables.h"

namespace rewire::text {

// Read the text after the directive and add an entry to the module. Return false after a report.
bool TakeDeviceCode(Cursor& cursor, Tables& tables);
bool TakeDeviceKernel(Cursor& cursor, Tables& tables);

// The names of operations, by SizeOp; empty for those that have none.
inline constexpr std::string_view kSizeOpNames[] = {"",    "",        "add", "sub", "mul",
                                                    "div", "ceildiv", "mod", "min", "max"};
static_assert(std::size(kSizeOpNames) == kSizeOps);

// True if an argument of this name has to be quoted, because it would read as something else.
bool IsArgumentWord(std::string_view name);

}  // namespace rewire::text
