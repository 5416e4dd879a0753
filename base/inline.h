// SPDX-License-Identifier: Apache-2.0
//
// REWIRE_INLINE marks a function that is inlined into each caller because a run executes it very often. In
// builds for size, such as the preset minimal, it is not inlined.
//
// REWIRE_INLINE_TINY marks a function that takes no more code than its call does. It is inlined in builds for
// size, too. The linker keeps one copy of each inline function for all files. If that copy comes from a file
// that is compiled for size, what it calls stays a call, even where a run executes it very often.
#pragma once

#if defined(__OPTIMIZE_SIZE__)
#define REWIRE_INLINE inline
#else
#define REWIRE_INLINE __attribute__((always_inline)) inline
#endif

#define REWIRE_INLINE_TINY __attribute__((always_inline)) inline
