// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/kernel/compiled.h>.
//
// How the functions of this folder that are not for inlining are compiled. C++17.
//
// A kernel library links nothing: by default these functions are inline, and each source that calls one
// compiles it. A library of many sources compiles them once: all of its sources define
// REWIRE_KERNEL_COMPILED, which leaves declarations, and one of them defines REWIRE_KERNEL_DEFINITIONS
// besides and includes <rewire/vm/kernel/define.h>. Both forms of a function do the same.
#pragma once

#ifdef REWIRE_KERNEL_COMPILED
#define REWIRE_KERNEL_INLINE
#else
#define REWIRE_KERNEL_INLINE inline
#define REWIRE_KERNEL_DEFINITIONS 1
#endif
