// SPDX-License-Identifier: Apache-2.0
// The main of every test program. Alone in its file because Catch2's implementation is slow to compile.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
