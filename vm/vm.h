// SPDX-License-Identifier: Apache-2.0
// Public header: <rewire/vm/vm.h>.
//
// Includes everything that a C++ host needs.
//
//   auto program = rewire::Program::Open("model.rwx");
//   rewire::VirtualMachine vm(program);
//   vm.SetInput("image", rewire::TensorView(pixels, {1, 1, 8, 8}));
//   vm.Invoke();
//   const float* scores = vm.Output("scores").data<float>();
#pragma once

#include "rewire/base/status.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/allocator.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/limits.h"
#include "rewire/vm/observer.h"
#include "rewire/vm/pipeline.h"
#include "rewire/vm/program.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/thread_pool.h"
#include "rewire/vm/value.h"
#include "rewire/vm/virtual_machine.h"
