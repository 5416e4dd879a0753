// SPDX-License-Identifier: Apache-2.0
//
// Moves tensors between files, as the command line names them, and the VM.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/tensor_files/host_tensor.h"
#include "rewire/vm/parameter_set.h"
#include "rewire/vm/tensor.h"

namespace rewire::tools {

// All members of an .npz or .safetensors file, or of a parameter file of TVM.
Result<std::vector<NamedTensor>> ReadArchive(const std::string& path);

// Reads a file of --params: anything that ParameterSet reads, or an .npz file.
Result<ParameterSet> ReadParameters(const std::string& path);

// The ending decides the format: .npz and .safetensors contain all tensors by name; any other file is an .npy
// with exactly one. The file is complete or absent.
Status WriteTensors(const std::string& path, Span<const NamedTensor> tensors);

// Both tensors share the memory; a strided tensor is copied. Errors: kUnsupported for a tensor on another
// device.
Result<Tensor> ToTensor(const HostTensor& tensor);
Result<HostTensor> ToHostTensor(const Tensor& tensor);

}  // namespace rewire::tools
