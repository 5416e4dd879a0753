/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "rewire/tests/vm/c_api/host.h"
#include "rewire/tests/vm/c_api/host_support.h"

static void* GiveBlock(void* context, uint64_t bytes, uint64_t alignment) {
  (void)alignment;
  CHECK(bytes == 8);
  return context;
}

int RunCHostOutputs(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  StartChecks();
  OpenHost(data, size, &executable, &program, &vm);

  float x[2] = {1, 2};
  float y[2] = {0, 0};
  const DLTensor input = Vector(x, two);
  const DLTensor bound = Vector(y, two);
  const DLDevice cpu = {kDLCPU, 0};
  RewireOutput output;
  RewireInput x_handle;
  CHECK_OK(rewire_program_find_output(program, NULL, "y", &output));
  CHECK_OK(rewire_program_find_input(program, NULL, "x", &x_handle));
  CHECK_OK(rewire_vm_set_input(vm, x_handle, &input, kRewireBorrow));
  CHECK_OK(rewire_vm_require_zero_copy(vm, 1));
  CHECK_OK(rewire_vm_set_output_by_name(vm, "y", &bound));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(y[0] == 11 && y[1] == 22);
  y[0] = 0;
  CHECK_OK(rewire_vm_clear_output(vm, output));
  CHECK_OK(rewire_vm_set_output_by_index(vm, 0, &bound));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(y[0] == 11 && y[1] == 22);
  CHECK(rewire_vm_set_output_by_index(vm, 1, &bound) == kRewireNotFound);
  int32_t copied = 1;
  uint32_t rank = 0;
  int64_t dims[1] = {0};
  CHECK_OK(rewire_vm_output_report(vm, output, &copied, NULL, 0, NULL));
  CHECK_OK(rewire_vm_output_shape(vm, output, dims, 1, &rank));
  CHECK(copied == 0 && rank == 1 && dims[0] == 2);
  const RewireOutput no_output = {7, 7};
  CHECK(rewire_vm_output_report(vm, no_output, &copied, NULL, 0, NULL) == kRewireInvalidArgument);
  CHECK(rewire_vm_output_shape(vm, no_output, dims, 1, &rank) == kRewireInvalidArgument);

  /* The words of the plan without a run. */
  int32_t rewired = 0;
  char text[256];
  CHECK_OK(rewire_program_output_plan(program, output, &rewired, text, sizeof(text), NULL));
  CHECK(rewired == 1 && strstr(text, "rewired\n  main@") == text && strstr(text, "): in place") != NULL);
  CHECK(rewire_program_output_plan(program, no_output, NULL, NULL, 0, NULL) == kRewireInvalidArgument);
  const RewireOutput vector = {1, 1}; /* of swap, which returns what it was given */
  CHECK_OK(rewire_program_output_plan(program, vector, &rewired, text, sizeof(text), NULL));
  CHECK(rewired == 0 && strcmp(text, "copied: it is an input, or part of one") == 0);

  _Alignas(64) float block[2] = {0, 0};
  CHECK_OK(rewire_vm_set_output_capacity(vm, output, block, sizeof(block), cpu));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(block[1] == 22);
  block[1] = 0;
  CHECK_OK(rewire_vm_set_output_allocator(vm, output, GiveBlock, block, cpu));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(block[1] == 22);
  CHECK_OK(rewire_vm_clear_output(vm, output));
  CHECK_OK(rewire_vm_clear_outputs(vm, NULL));
  block[1] = 0;
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(block[1] == 0);

  /* For one call. */
  RewireValue* value = NULL;
  const DLTensor* tensors[1] = {&bound};
  x[0] = 7;
  y[0] = 0;
  CHECK_OK(rewire_value_wrap_tensor(&input, NULL, NULL, &value));
  CHECK_OK(
      rewire_vm_call_into(vm, output.function, (const RewireValue* const*)&value, 1, &output, tensors, 1));
  CHECK(y[0] == 17);

  /* Without a VM of ours. */
  RewireValue* result = NULL;
  DLTensor described;
  CHECK_OK(rewire_program_run(program, output.function, NULL, (const RewireValue* const*)&value, 1, &result));
  CHECK_OK(rewire_value_tensor(result, &described));
  CHECK(((float*)described.data)[0] == 17);
  rewire_value_destroy(result);
  y[0] = 0;
  CHECK_OK(rewire_program_run_into(program, output.function, NULL, (const RewireValue* const*)&value, 1,
                                   &output, tensors, 1));
  CHECK(y[0] == 17);
  CHECK(rewire_program_run(program, 99, NULL, (const RewireValue* const*)&value, 1, NULL) ==
        kRewireInvalidArgument);
  rewire_value_destroy(value);

  /* The output takes the input's memory. */
  CHECK_OK(rewire_vm_donate(vm, x_handle, output));
  CHECK(rewire_vm_invoke(vm, NULL) == kRewireRuntimeFailed); /* x is read while y is written: no zero copy */
  CHECK_OK(rewire_vm_require_zero_copy(vm, 0));
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK(x[0] == 17 && x[1] == 22);

  const DLTensor wrong = {y, cpu, 0, {kDLFloat, 32, 1}, NULL, NULL, 0};
  CHECK(rewire_vm_set_output(vm, output, &wrong) == kRewireInvalidArgument);
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_executable_destroy(executable);
  return FailedChecks();
}
