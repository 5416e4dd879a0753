// SPDX-License-Identifier: Apache-2.0
// The data of a constant as text: the reverse of constant_parser.h.
#pragma once

#include <optional>
#include <string>

#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::text {

// Returns the constant's tensor, if assembling its text gives the stored bytes again. For this its type must
// be static and its size correct, and its codec, if any, must encode the data to the same bytes.
std::optional<HostTensor> RestorableTensor(const Constant& constant);

// "{1, 2}" or "zeros"; base64 if neither would give the same bytes.
std::string TensorDataText(const HostTensor& tensor);
// "stored 40 "..."", for constants that RestorableTensor refuses.
std::string StoredDataText(const Constant& constant);

}  // namespace rewire::text
