// SPDX-License-Identifier: Apache-2.0
// Kernels in C++ that fail in every way C++ has.
#include <stdexcept>

#include "rewire/vm/kernel/define.h"

REWIRE_KERNEL_LIBRARY;

namespace {

using rewire::kernel::Attributes;
using rewire::kernel::Status;

struct Throws {
  static constexpr const char kName[] = "cpp.throws";
  std::int64_t operator()(std::int64_t how) const {
    if (how == 0) throw std::out_of_range("index 7 of 5");
    if (how == 1) throw std::bad_alloc();
    throw 3;
  }
};

// A factory that throws for one attribute and makes a kernel otherwise.
struct Made {
  static constexpr const char kName[] = "cpp.made";
  std::int64_t factor = 0;
  static Status Make(Attributes& attributes, Made* made) {
    made->factor = attributes.Int("factor", 1);
    if (made->factor < 0) throw std::invalid_argument("negative factor");
    return Status();
  }
  std::int64_t operator()(std::int64_t x) const { return factor * x; }
};

constexpr RewireKernelEntry kEntries[] = {rewire::kernel::Entry<Throws>(), rewire::kernel::Entry<Made>()};

}  // namespace

extern "C" REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table =
    rewire::kernel::Table(kEntries);
