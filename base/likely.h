// SPDX-License-Identifier: Apache-2.0
//
// REWIRE_LIKELY and REWIRE_UNLIKELY tell the compiler which way a branch mostly goes, so that the fast path
// lies in a straight line.
#pragma once

#define REWIRE_LIKELY(condition) __builtin_expect(static_cast<bool>(condition), true)
#define REWIRE_UNLIKELY(condition) __builtin_expect(static_cast<bool>(condition), false)
