// SPDX-License-Identifier: Apache-2.0
//
// Reads files that TVM saved and converts them to Rewire's modules: Relay VM executables of TVM 0.8 to 0.19,
// graph-executor artifacts, parameter files, and the blobs inside exported libraries. TVM is not needed.
//
// The bytes are untrusted: every reader checks counts before it allocates. The resulting module is not
// verified yet; Executable::FromModule does that.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire::tvm {

// A tensor inside a foreign file: contiguous, row-major, little-endian, not necessarily aligned. `bytes`
// points into the file.
struct ForeignTensor {
  DLDataType dtype{};
  Array<std::int64_t> shape;
  Span<const std::byte> bytes;
};

using NamedTensors = Array<std::pair<std::string, ForeignTensor>>;

// True if the bytes begin like one of TVM's formats. IsVmExecutable: a VM executable, of Relay or of Relax
// (which is not supported), with or without the length that a module saved by itself has in front. The other:
// a parameter list.
bool IsVmExecutable(Span<const std::byte> bytes);
bool IsParameterList(Span<const std::byte> bytes);

// Reads a file of relay.save_param_dict, in its order. The tensors point into `bytes`. Errors: kInvalidFile,
// kUnsupported.
Result<NamedTensors> ReadParameterList(Span<const std::byte> bytes);

// Reads a Relay VM executable (Executable.save() in TVM, the "code" beside a library of kernels).
//
// Names of functions, parameters and constants are those of the file. Late-bound constants become parameters.
// The file has no types, so signatures are open. The module's constants keep `file.owner`, or share aligned
// copies if the file has them unaligned. Kernels are imported by their names in the library.
//
// Errors: kInvalidFile if the file is damaged or a hash does not match. kUnsupported for a Relax executable
// or vector dtypes.
Result<Module> ImportRelayExecutable(const SharedBytes& file);

// Reads a graph-executor artifact: its JSON and the named parameters (from ReadParameterList; `owner` keeps
// their bytes alive).
//
// The module has one function, "main". Its inputs are those of the graph that are not among the parameters,
// in the graph's order. It returns a tuple of the outputs, or the output if there is only one. Errors:
// kInvalidFile, kUnsupported.
Result<Module> ImportGraph(std::string_view json, const NamedTensors& parameters,
                           const std::shared_ptr<const void>& owner);

// The error for a Relax executable, wherever one is found: kUnsupported.
Status RefuseRelax();

// The contents of an exported library (TVM up to 0.20) besides its compiled functions: the data of its symbol
// __tvm_dev_mblob. Everything points into the blob.
struct LibraryBlob {
  // The model: one of the two, or both empty if there is none.
  Span<const std::byte> relay_executable;  // for ImportRelayExecutable
  std::string graph_json;                  // for ImportGraph, with `parameters`
  NamedTensors parameters;
};

// `blob` is the whole symbol. If there are several models, the root module is used, as in TVM. Errors:
// kInvalidFile. kUnsupported for a part that cannot run here, which is named (code for a device, external
// code generators, the ahead-of-time executor), or if none of several models is the root.
Result<LibraryBlob> ReadLibraryBlob(Span<const std::byte> blob);

}  // namespace rewire::tvm
