// SPDX-License-Identifier: Apache-2.0
//
// REWIRE_INLINE marks a function that is inlined into each caller because a run executes it very often. In
// builds for size, such as the preset minimal, it is not inlined.
#pragma once

#if defined(__OPTIMIZE_SIZE__)
#define REWIRE_INLINE inline
#else
#define REWIRE_INLINE __attribute__((always_inline)) inline
#endif
