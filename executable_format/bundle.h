// SPDX-License-Identifier: Apache-2.0
// Bundle: several executables in one file, each constant stored once however many of them have it. In
// librewire_prepare.
//
// Every executable of a bundle is verified as one of its own would be. Constants stay in the mapped file, so
// that Programs of a bundle share them.
#pragma once

#include <string>
#include <vector>

#include "base/array.h"
#include "base/export.h"
#include "base/shared_bytes.h"
#include "base/span.h"
#include "base/status.h"
#include "executable_format/executable.h"

namespace rewire {

struct BundledExecutable {
  std::string name;
  Executable executable;
};

// In the order of the file. Errors as Executable::Open; messages name the model. kInvalidFile also for a file
// with one executable, not in a bundle.
REWIRE_API Result<Array<BundledExecutable>> OpenBundle(const std::string& path,
                                                       const OpenOptions& options = {});
// The same from memory; `bytes.owner` is kept as long as a constant's bytes are in use.
REWIRE_API Result<Array<BundledExecutable>> BundleFromBytes(const SharedBytes& bytes,
                                                            const OpenOptions& options = {});
// Whether these are the first bytes of a bundle, damaged or not.
REWIRE_API bool IsBundle(Span<const std::byte> bytes);

// The one of this name, or the only one for the empty name. kNotFound, with the names that there are.
REWIRE_API Result<Executable> FindExecutable(Span<const BundledExecutable> bundle, const std::string& name);

// The file is whole or absent. kInvalidArgument: a name that is empty or used twice, no executable at all;
// kIo.
Status WriteBundle(Span<const BundledExecutable> models, const std::string& path);
Result<std::vector<std::byte>> SerializeBundle(Span<const BundledExecutable> models);

// What the names of a bundle's models must be: there, of UTF-8, each once. kInvalidArgument.
Status CheckModelNames(Span<const std::string> names);

}  // namespace rewire
