// SPDX-License-Identifier: Apache-2.0
// numpy's .npz files: zip archives of one .npy file a tensor.
#pragma once

#include <string>
#include <vector>

#include "base/span.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire {

// All tensors in the order of the archive, named as their entries without ".npy". Errors name the file and
// the entry: kNotFound, kIo, kInvalidFile (damaged, encrypted, an entry that is no .npy file), kUnsupported.
Result<std::vector<NamedTensor>> ReadNpz(const std::string& path);

enum class NpzCompression { kNone, kDeflate };

// Equal tensors give equal files. The file is whole or absent. kInvalidArgument: a name twice; kIo;
// kUnsupported: a dtype that numpy has no name for.
Status WriteNpz(const std::string& path, Span<const NamedTensor> tensors,
                NpzCompression compression = NpzCompression::kNone);

}  // namespace rewire
