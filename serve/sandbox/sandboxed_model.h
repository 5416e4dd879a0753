// SPDX-License-Identifier: Apache-2.0
//
// A model that is not trusted: each VM runs it in a process of its own, which can compute and nothing else
// (serve/worker/lock_down.h).
//
// The server reads neither the executable nor its parameters. It has a program with one kernel in its place,
// as for a model on another server, which gives inputs to the process and takes outputs from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/serve/core/description.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/limits.h"

namespace rewire::serve {

struct SandboxedModel {
  Executable executable;
  KernelSet kernels;  // its only kernel
};

struct SandboxStart {
  bool is_onnx = false;                 // the file is a model of ONNX, which is compiled first
  std::vector<std::string> parameters;  // files
  std::vector<std::string> kernels;     // libraries that the host trusts
  SandboxSettings settings;
  Limits limits;  // of a run
  std::int32_t threads = 1;
};

// Starts a process with the executable of a file, or with what another one compiles of a model of ONNX. Files
// of parameters are mapped there, so all processes share them. Libraries of kernels are loaded there before
// the process gives up anything, and this process does not load them. Errors: kUnsupported if this server has
// no sandbox; kNotFound and kIo for files; kIo if no process can be started, or if it ends. Those of
// KernelSet::AddLibrary, of compiling, opening and linking.
Result<SandboxedModel> OpenSandboxed(const std::string& path, const SandboxStart& start);

}  // namespace rewire::serve
