// SPDX-License-Identifier: Apache-2.0
// Reads what TVM saved and makes Rewire's modules of it: Relay VM executables of TVM 0.8 to 0.19,
// graph-executor artefacts, parameter files and the blobs inside exported libraries. TVM is not needed.
//
// The bytes are untrusted: every reader checks counts before it allocates, and the module that comes out is
// not yet verified (Executable::FromModule does that).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/array.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/module.h"

namespace rewire::tvm {

// A tensor inside a foreign file: contiguous, row-major, little-endian, not necessarily aligned. `bytes`
// points into the file.
struct ForeignTensor {
  DLDataType dtype{};
  Array<std::int64_t> shape;
  Span<const std::byte> bytes;
};

using NamedTensors = Array<std::pair<std::string, ForeignTensor>>;

// True when the bytes start as a VM executable of TVM does (Relay's or Relax's, which is not read), or as a
// parameter list does.
bool IsVmExecutable(Span<const std::byte> bytes);
bool IsParameterList(Span<const std::byte> bytes);

// What relay.save_param_dict wrote, in its order. The tensors point into `bytes`. kInvalidFile, kUnsupported.
Result<NamedTensors> ReadParameterList(Span<const std::byte> bytes);

// A Relay VM executable (Executable.save() in TVM, the "code" beside a library of kernels). Function names,
// parameter names and constants are those of the file; late-bound constants become parameters; signatures are
// open, for the file has no types. The module's constants keep `file.owner`, or share aligned copies of their
// own where the file has them unaligned. Kernels are imported by their names in the library.
// kInvalidFile: damaged, or a hash does not match. kUnsupported: a Relax executable, vector dtypes.
Result<Module> ImportRelayExecutable(const SharedBytes& file);

// A graph-executor artefact: its JSON and the named parameters (of ReadParameterList; their bytes are kept
// alive by `owner`). The one function, "main", takes the inputs that are not among the parameters, in the
// graph's order, and gives the outputs as a tuple, or the output when there is one. kInvalidFile,
// kUnsupported.
Result<Module> ImportGraph(std::string_view json, const NamedTensors& parameters,
                           const std::shared_ptr<const void>& owner);

// The refusal of a Relax executable, wherever one is met: kUnsupported.
Status RefuseRelax();

// What an exported library (TVM up to 0.20) carries beside its compiled functions: the data behind its symbol
// __tvm_dev_mblob. Everything points into the blob.
struct LibraryBlob {
  // An importable part, at most one of the two.
  Span<const std::byte> relay_executable;  // for ImportRelayExecutable
  std::string graph_json;                  // for ImportGraph, with `parameters`
  NamedTensors parameters;
};

// `blob` is the data of that symbol, up to its end or beyond. kUnsupported: a part that cannot be run here
// (code for a device, external code generators); the message names it. kInvalidFile.
Result<LibraryBlob> ReadLibraryBlob(Span<const std::byte> blob);

}  // namespace rewire::tvm
