// SPDX-License-Identifier: Apache-2.0
// numpy's .npy files, versions 1 to 3.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "executable_format/tensor_files/host_tensor.h"

namespace rewire {

// Reads a file into memory. Column-major arrays become row-major. Errors name the file.
// kNotFound, kIo; kInvalidFile: no .npy file, or damaged; kUnsupported: what ParseNpyHeader refuses.
Result<HostTensor> ReadNpy(const std::string& path);

// The same from bytes, which the tensor shares where they are aligned. Errors name no file.
Result<HostTensor> ParseNpy(const SharedBytes& bytes);

// A whole file. kUnsupported: a dtype that numpy has no name for.
Result<std::vector<std::byte>> SerializeNpy(const HostTensor& tensor);
Status WriteNpy(const std::string& path, const HostTensor& tensor);

// What stands before the elements, at least `size` bytes of it: the format allows any number of spaces.
// kUnsupported as above.
Result<std::vector<std::byte>> NpyPrefix(DLDataType dtype, Span<const std::int64_t> shape,
                                         std::size_t size = 0);

}  // namespace rewire
