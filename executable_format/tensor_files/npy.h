// SPDX-License-Identifier: Apache-2.0
// numpy's .npy files, versions 1 to 3.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rewire/executable_format/tensor_files/host_tensor.h"

namespace rewire {

// Reads a file into memory. Column-major arrays become row-major. Errors name the file: kNotFound, kIo;
// kInvalidFile if it is no .npy file or damaged; kUnsupported for what ParseNpyHeader refuses.
Result<HostTensor> ReadNpy(const std::string& path);

// The same from bytes, which the tensor shares if they are aligned. Errors name no file.
Result<HostTensor> ParseNpy(const SharedBytes& bytes);

// Returns a complete file. Errors: kUnsupported for a dtype that numpy has no name for.
Result<std::vector<std::byte>> SerializeNpy(const HostTensor& tensor);
Status WriteNpy(const std::string& path, const HostTensor& tensor);

// Returns the part of a file before the elements, padded with spaces to at least `size` bytes, which the
// format allows. Errors: kUnsupported as above.
Result<std::vector<std::byte>> NpyPrefix(DLDataType dtype, Span<const std::int64_t> shape,
                                         std::size_t size = 0);

}  // namespace rewire
