// SPDX-License-Identifier: Apache-2.0
// REWIRE_INLINE: a function that is put into each of its callers because a run executes it all the time.
// Where the code is built for size, as in the preset minimal, it is there once.
#pragma once

#if defined(__OPTIMIZE_SIZE__)
#define REWIRE_INLINE inline
#else
#define REWIRE_INLINE __attribute__((always_inline)) inline
#endif
