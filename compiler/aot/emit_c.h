// SPDX-License-Identifier: Apache-2.0
//
// EmitC: an executable as C source, for systems on which no interpreter, no heap and no standard library is
// wanted. docs/aot.md explains what the source needs and what cannot be emitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/parameter_set.h"

namespace rewire {

// The functions that the emitted source calls for its kernel imports.
enum class CKernels : std::uint8_t {
  kEmbedded,  // functions of kernels/embedded, in plain C
  kPacked,    // packed functions, which a host links by name (compiler/aot/packed_host.h)
};

// CWeights says where the constants of the program lie.
enum class CWeights : std::uint8_t {
  kInline,   // arrays of the source
  kSection,  // arrays of the source in an ELF section of their own, ".PREFIX_weights"
  kPointer,  // memory that the caller passes to each call, such as a mapped file (CSource::weights)
};

struct EmitCOptions {
  // Begins every name that other files can see: letters, digits and "_".
  std::string prefix = "model";
  // Functions that become entry points. Empty: "main", or the only function of the executable.
  std::vector<std::string> functions;
  CKernels kernels = CKernels::kEmbedded;
  CWeights weights = CWeights::kInline;
  // Values of the constants that the executable names but does not hold: its parameters, and what `__init`
  // computes. ParameterSet::Of(Program) of the linked executable has all of them. Other entries are ignored.
  ParameterSet constants;
  // The largest sizes of symbolic dimensions of inputs, by name. The executable's own limits hold too.
  std::map<std::string, std::int64_t> max_dims;
  // Calls inside each other. A call that is deeper fails as it does in the VM (kDepthLimit). As calls are
  // expanded where they are made, the source grows with this number if the depth of a recursion depends on
  // data.
  std::uint32_t depth = 16;
  // The texts of the .ci files, by their names, that GCC writes with -fcallgraph-info=su when it compiles
  // this source and the kernels. The header then states how deep the stack becomes (PREFIX_STACK_BYTES). The
  // source stays as it is. With kEmbedded alone.
  std::map<std::string, std::string> call_graphs;
  // Bytes of stack that each function of the C library is taken to need. Call graphs have none for these.
  std::uint64_t library_stack = 0;
  // Limits the instructions after calls are expanded, of all versions of an entry point together.
  std::uint64_t max_instructions = 1u << 18;
};

struct CSource {
  std::string header;
  std::string source;
  std::uint64_t arena_bytes = 0;     // the most that one entry point needs
  std::uint64_t constant_bytes = 0;  // of all constants that the program reads
  // By the call graphs, if there are any: the most stack that a call needs.
  std::optional<std::uint64_t> stack_bytes;
  // kPointer: the bytes to which the caller's pointer has to point, at a multiple of 16.
  std::vector<std::byte> weights;
};

// Emits the source. `header_name` is how the source includes the header.
//
// Errors:
// - kNotFound if there is no function of that name.
// - kInvalidArgument if there is no dimension of that name, a largest size is below 1, or the prefix is no C
// name. Also if call graphs are given that lack a function, or are given with kPacked.
// - kUnsupported if the program cannot be made static. The message names the function and the instruction.
// Also if call graphs have no limit: a circle of calls, or a frame of unknown size.
REWIRE_API Result<CSource> EmitC(const Executable& executable, const EmitCOptions& options,
                                 const std::string& header_name);

}  // namespace rewire
