// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/executable_format/bundle.h>.
//
// Bundle: several executables in one file. A constant that several of them contain is stored once. The code
// is in librewire_prepare.
//
// Each executable of a bundle is verified like one that has its own file. Constants stay in the mapped file,
// so Programs made from one bundle share them.
#pragma once

#include <string>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/base/export.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"

namespace rewire {

struct BundledExecutable {
  std::string name;
  Executable executable;
};

// Opens all executables of a bundle, in the order of the file. Errors are those of Executable::Open, and
// messages name the model. kInvalidFile also for a file that holds one executable and is no bundle.
REWIRE_API Result<Array<BundledExecutable>> OpenBundle(const std::string& path,
                                                       const OpenOptions& options = {});
// The same from memory. `bytes.owner` is kept for as long as a constant's bytes are in use.
REWIRE_API Result<Array<BundledExecutable>> BundleFromBytes(const SharedBytes& bytes,
                                                            const OpenOptions& options = {});
// True if these are the first bytes of a bundle, even of a damaged one.
REWIRE_API bool IsBundle(Span<const std::byte> bytes);

// Returns the executable of this name. The empty name means the only one. Errors: kNotFound, with the names
// that exist.
REWIRE_API Result<Executable> FindExecutable(Span<const BundledExecutable> bundle, const std::string& name);

// Writes a bundle. A failed write leaves no partial file. Errors: kInvalidArgument if a name is empty or used
// twice, or if there is no executable; kIo.
Status WriteBundle(Span<const BundledExecutable> models, const std::string& path);
Result<std::vector<std::byte>> SerializeBundle(Span<const BundledExecutable> models);

// Checks the names of a bundle's models: none is empty, each is UTF-8, and each occurs once. Fails with
// kInvalidArgument.
Status CheckModelNames(Span<const std::string> names);

}  // namespace rewire
