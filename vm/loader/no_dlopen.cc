// SPDX-License-Identifier: Apache-2.0
//
// Replaces load_library.cc in builds without dlopen.
#include "rewire/base/array.h"
#include "rewire/vm/loader/load_library.h"

namespace rewire {

Result<std::shared_ptr<const KernelSource>> LoadKernelLibrary(const std::string& name,
                                                              const Array<std::string>& /*directories*/) {
  return Fail(StatusCode::kUnsupported,
              "kernel library '{}': this build of Rewire loads no libraries (REWIRE_WITH_DLOPEN is off); "
              "link the kernels in and add them with AddTable",
              name);
}

}  // namespace rewire
