// SPDX-License-Identifier: Apache-2.0
//
// Computes how much work a call is by the rules that its kernel's library declares (vm/kernel/work.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"
#include "rewire/vm/packed_function.h"

namespace rewire {

struct CallWork {
  // Multiplications, each with an addition, that the kernel does, and that its plain form would do.
  double products = 0;
  double plain_products = 0;
  // Simple operations of kernels that are no products.
  double operations = 0;
  // Elements of the largest tensor that is read, and of all that are written.
  double most_read = 0;
  double written = 0;
};

using WorkDims = std::vector<std::int64_t>;

// A call, as far as the rules read it.
struct WorkCall {
  // The tensors in the order of the row; nullopt for one that is left out.
  std::vector<std::optional<WorkDims>> read, written;
  Span<const Attribute> attributes;
};

// nullopt if the row or the rules are null, do not tell the work of this call, or cannot be read.
std::optional<CallWork> WorkOf(const RewireKernelRow* row, const RewireKernelWork* work,
                               const WorkCall& call);
// The same of a call in a run, with its arguments as the kernel received them. Only shapes are read, so
// tensors may lie on any device.
std::optional<CallWork> WorkOf(const PackedFunction& kernel, const KernelImport& import,
                               Span<const RewireFFIAny> args);

// Errors: kInvalidArgument for a rule that cannot be read, or that has a name which is neither an argument
// nor an attribute of the row.
Status CheckWork(const RewireKernelRow& row, const RewireKernelWork& work);
// "products: out * x[-1]", "operations: 3"; empty if nothing is declared.
std::string WorkText(const RewireKernelWork& work);

}  // namespace rewire
