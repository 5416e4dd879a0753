// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rewire::test {

// The places where a test finds its data and the programs it runs, independent of its working directory.
// Absolute, without a trailing slash, valid for the whole program.
const char* SourceDir();  // root of the source tree
const char* BuildDir();   // root of the build tree: tools in bin/, kernel libraries in lib/rewire/

}  // namespace rewire::test
