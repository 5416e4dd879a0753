// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes parameter files for vm-params.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

struct StoredParameter {
  NamedTensor named;  // without bytes if it is compressed
  std::uint64_t stored_bytes = 0;
  std::string codec;  // "none", "zstd", "codec 300"
};

// Lists the content of a file: .safetensors, .npz, the constants of an .rwx, TVM's parameters. Nothing is
// decompressed.
Result<std::vector<StoredParameter>> ListParameters(const std::string& path);

// Reads all tensors of the files and decompresses them. Errors: kInvalidArgument if two files have the same
// name.
Result<std::vector<NamedTensor>> ReadParameterFiles(const std::vector<std::string>& paths);

// The ending decides the format: .safetensors, .npz, .rwx or .params (TVM's). For .rwx, a zstd level from 1
// on compresses each tensor that becomes smaller; 0 compresses none. The file is complete or absent. Errors:
// kInvalidArgument for another ending; kUnsupported for a dtype that the format does not have.
Status WriteParameterFile(const std::string& path, Span<const NamedTensor> tensors, int level);

// Compresses the uncompressed constants of a module where that makes them smaller. Returns the bytes saved.
Result<std::uint64_t> CompressConstants(Module* module, int level);

}  // namespace rewire::tools
