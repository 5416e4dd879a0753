// SPDX-License-Identifier: Apache-2.0
// The door: everything a C++ host needs.
//
//   auto program = rewire::Program::Open("model.rwx");
//   rewire::VirtualMachine vm(program);
//   vm.SetInput("image", rewire::TensorView(pixels, {1, 1, 8, 8}));
//   vm.Invoke();
//   const float* scores = vm.Output("scores").data<float>();
#pragma once

#include "base/status.h"
#include "executable_format/executable.h"
#include "vm/allocator.h"
#include "vm/limits.h"
#include "vm/loader/kernel_set.h"
#include "vm/observer.h"
#include "vm/program.h"
#include "vm/tensor.h"
#include "vm/thread_pool.h"
#include "vm/value.h"
#include "vm/virtual_machine.h"
