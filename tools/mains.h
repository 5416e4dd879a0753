// SPDX-License-Identifier: Apache-2.0
//
// The main functions of tools that are programs (main.cc) and commands of the Python package, too. A process
// calls one of them, once.
#pragma once

namespace rewire::tools {

int VmCompileMain(int argc, char** argv);
int VmDebugMain(int argc, char** argv);
int VmInspectMain(int argc, char** argv);
int VmRunMain(int argc, char** argv);

}  // namespace rewire::tools
