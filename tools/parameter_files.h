// SPDX-License-Identifier: Apache-2.0
// Parameter files as vm-params reads and writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/span.h"
#include "base/status.h"
#include "executable_format/module.h"
#include "executable_format/tensor_files/host_tensor.h"

namespace rewire::tools {

struct StoredParameter {
  NamedTensor named;  // without bytes where it is compressed: ParameterBytes decompresses
  std::uint64_t stored_bytes = 0;
  std::string codec;  // "none", "zstd", "codec 300"
};

// What a file holds: .safetensors, .npz, the constants of an .rwx, TVM's parameters. Nothing is decompressed.
Result<std::vector<StoredParameter>> ListParameters(const std::string& path);

// All tensors of the files, compressed ones decompressed. kInvalidArgument: two files have one of a name.
Result<std::vector<NamedTensor>> ReadParameterFiles(const std::vector<std::string>& paths);

// By the ending: .safetensors, .npz, .rwx (with a zstd level from 1, each tensor that becomes smaller is
// compressed; 0: none) or .params, TVM's. The file is whole or absent. kInvalidArgument: another ending;
// kUnsupported: a dtype that the format does not have.
Status WriteParameterFile(const std::string& path, Span<const NamedTensor> tensors, int level);

// Compresses the constants of a module that are not, where that makes them smaller; the bytes saved.
Result<std::uint64_t> CompressConstants(Module* module, int level);

}  // namespace rewire::tools
