// SPDX-License-Identifier: Apache-2.0
//
// The main functions of tools: of those that are programs alone (main.cc), and of those that are commands of
// the Python package, too. A process calls one of them, once.
#pragma once

namespace rewire::tools {

int VmAsMain(int argc, char** argv);
int VmBenchMain(int argc, char** argv);
int VmBundleMain(int argc, char** argv);
int VmCompileMain(int argc, char** argv);
int VmConvertMain(int argc, char** argv);
int VmDebugMain(int argc, char** argv);
int VmDisMain(int argc, char** argv);
int VmInspectMain(int argc, char** argv);
int VmParamsMain(int argc, char** argv);
int VmRunMain(int argc, char** argv);
int VmStripMain(int argc, char** argv);

}  // namespace rewire::tools
