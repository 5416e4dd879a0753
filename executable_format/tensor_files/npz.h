// SPDX-License-Identifier: Apache-2.0
//
// numpy's .npz files: zip archives with one .npy file per tensor.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire {

// Reads all tensors in the order of the archive. Their names are those of the entries without ".npy". Errors
// name the file and the entry: kNotFound, kIo, kInvalidFile (damaged, encrypted, or an entry that is no .npy
// file), kUnsupported.
Result<std::vector<NamedTensor>> ReadNpz(const std::string& path);

enum class NpzCompression { kNone, kDeflate };

// Equal tensors give equal files. The file is complete or absent. Errors: kInvalidArgument if a name occurs
// twice; kIo; kUnsupported for a dtype that numpy has no name for.
Status WriteNpz(const std::string& path, Span<const NamedTensor> tensors,
                NpzCompression compression = NpzCompression::kNone);

}  // namespace rewire
