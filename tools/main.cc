// SPDX-License-Identifier: Apache-2.0
// The program of one of the tools in mains.h, which the build names.
#include "rewire/tools/mains.h"

int main(int argc, char** argv) { return rewire::tools::REWIRE_TOOL_MAIN(argc, argv); }
