// SPDX-License-Identifier: Apache-2.0
// The data of a constant as text: the reverse of constant_parser.h.
#pragma once

#include <optional>
#include <string>

#include "executable_format/module.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire::text {

// The constant's tensor, when text or a file can hold it such that assembling gives the stored bytes again:
// its type is static, its size right, and its codec, if any, encodes the data to the same bytes.
std::optional<HostTensor> RestorableTensor(const Constant& constant);

// "{1, 2}", "zeros", or base64 where neither gives the bytes back.
std::string TensorDataText(const HostTensor& tensor);
// "stored 40 "..."": for what RestorableTensor refuses.
std::string StoredDataText(const Constant& constant);

}  // namespace rewire::text
