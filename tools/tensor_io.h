// SPDX-License-Identifier: Apache-2.0
// Tensors between files, as the command line names them, and the VM.
#pragma once

#include <string>
#include <vector>

#include "base/span.h"
#include "base/status.h"
#include "executable_format/tensor_files/host_tensor.h"
#include "vm/parameter_set.h"
#include "vm/tensor.h"

namespace rewire::tools {

// All members of an .npz or .safetensors file, or of a parameter file of TVM.
Result<std::vector<NamedTensor>> ReadArchive(const std::string& path);

// What --params names: anything that ParameterSet reads, or an .npz file.
Result<ParameterSet> ReadParameters(const std::string& path);

// By the ending: .npz and .safetensors hold all tensors by name; any other file is an .npy of exactly one.
// The file is whole or absent.
Status WriteTensors(const std::string& path, Span<const NamedTensor> tensors);

// Both share the memory; a strided tensor is copied. kUnsupported for a tensor on another device.
Result<Tensor> ToTensor(const HostTensor& tensor);
Result<HostTensor> ToHostTensor(const Tensor& tensor);

}  // namespace rewire::tools
