// SPDX-License-Identifier: Apache-2.0
// The functions that all sources of this library share, compiled once (vm/kernel/compiled.h).
#define REWIRE_KERNEL_DEFINITIONS 1

#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/vm/kernel/define.h"
