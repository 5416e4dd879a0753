/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for outputs that is handed over: kept until bound again, or gone when the call returns. */
#include <string.h>

#include "rewire/tests/vm/c_api/host.h"
#include "rewire/tests/vm/c_api/host_support.h"

static int two_deleted;
static void DeleteVersioned(DLManagedTensorVersioned* managed) {
  (void)managed;
  ++two_deleted;
}

/* One call after another into memory that goes with it: the deleter has run when the call is over, and has
 * seen what the kernel wrote. */
static void OwnedForACall(RewireVm* vm, RewireOutput y, const RewireValue* x) {
  int deleted = 0;
  const RewireValue* inputs[1] = {x};
  DLManagedTensor* owned[2] = {MakeOwned(0, 0, &deleted), NULL};
  CHECK_OK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, &y, owned, 1));
  CHECK(deleted == 1 && LastDeleted()[0] == 11 && LastDeleted()[1] == 22);

  /* A run that fails on its way. */
  const RewireLimits one_step = {.struct_size = sizeof(RewireLimits), .steps = 1};
  CHECK_OK(rewire_vm_set_limits(vm, &one_step));
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, &y, owned, 1) == kRewireStepLimit);
  CHECK(deleted == 2);
  CHECK_OK(rewire_vm_set_limits(vm, NULL));

  /* A call that is refused: another function's output, no function, no inputs, no VM, a tensor that is NULL
   * or of another shape. */
  const RewireOutput other = {1, 0};
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, &other, owned, 1) == kRewireInvalidArgument);
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, 99, inputs, 1, &y, owned, 1) == kRewireInvalidArgument);
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, NULL, 1, &y, owned, 1) == kRewireInvalidArgument);
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(NULL, y.function, inputs, 1, &y, owned, 1) == kRewireInvalidArgument);
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, NULL, owned, 1) == kRewireInvalidArgument);
  CHECK(strcmp(rewire_last_error_message(), "outputs is NULL") == 0);
  CHECK(deleted == 7);
  const RewireOutput both[2] = {y, y};
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, both, owned, 2) == kRewireInvalidArgument);
  CHECK(strcmp(rewire_last_error_message(), "tensors[1]: managed is NULL") == 0);
  CHECK(deleted == 8);
  CHECK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, &y, NULL, 1) == kRewireInvalidArgument);

  /* And the next call is right. */
  owned[0] = MakeOwned(0, 0, &deleted);
  CHECK_OK(rewire_vm_call_into_dlpack(vm, y.function, inputs, 1, &y, owned, 1));
  CHECK(deleted == 9 && LastDeleted()[0] == 11);

  float numbers[2] = {0, 0};
  DLManagedTensorVersioned versioned = {{1, 0}, NULL, DeleteVersioned, 0, Vector(numbers, two)};
  DLManagedTensorVersioned* given[1] = {&versioned};
  CHECK_OK(rewire_vm_call_into_dlpack_versioned(vm, y.function, inputs, 1, &y, given, 1));
  CHECK(two_deleted == 1 && numbers[1] == 22);
  versioned.flags = 1; /* read-only */
  CHECK(rewire_vm_call_into_dlpack_versioned(vm, y.function, inputs, 1, &y, given, 1) ==
        kRewireInvalidArgument);
  CHECK(two_deleted == 2);
}

/* The VM keeps the memory until the output is bound again. */
static void OwnedUntilBoundAgain(RewireVm* vm, RewireOutput y) {
  int deleted = 0;
  RewireValue* value = NULL;
  RewireValue* integer = NULL;
  CHECK_OK(rewire_value_from_dlpack(MakeOwned(0, 0, &deleted), &value));
  CHECK_OK(rewire_vm_set_output_value(vm, y, value));
  rewire_value_destroy(value);
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK_OK(rewire_value_from_integer(1, &integer));
  CHECK(rewire_vm_set_output_value(vm, y, integer) == kRewireInvalidArgument);
  CHECK(strcmp(rewire_last_error_message(), "the value is of kind integer, tensor expected") == 0);
  rewire_value_destroy(integer);
  CHECK(deleted == 0);
  CHECK_OK(rewire_vm_clear_output(vm, y));
  CHECK_OK(rewire_vm_invoke(vm, NULL)); /* the last result lay there */
  CHECK(deleted == 1 && LastDeleted()[0] == 11);
}

int RunCHostOwnedOutputs(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  StartChecks();
  OpenHost(data, size, &executable, &program, &vm);

  float numbers[2] = {1, 2};
  const DLTensor vector = Vector(numbers, two);
  RewireInput x;
  RewireOutput y;
  RewireValue* value = NULL;
  CHECK_OK(rewire_program_find_input(program, NULL, "x", &x));
  CHECK_OK(rewire_program_find_output(program, NULL, "y", &y));
  CHECK_OK(rewire_value_wrap_tensor(&vector, NULL, NULL, &value));
  OwnedForACall(vm, y, value);
  rewire_value_destroy(value);

  CHECK_OK(rewire_vm_set_input(vm, x, &vector, kRewireBorrow));
  OwnedUntilBoundAgain(vm, y);
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_executable_destroy(executable);
  return FailedChecks();
}

int RunCHostInputReports(const void* data, size_t size) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  StartChecks();
  OpenHost(data, size, &executable, &program, &vm);

  float numbers[4] = {1, -1, 2, -1};
  DLTensor vector = Vector(numbers, two);
  RewireInput x;
  int32_t copied = 7;
  char reason[64];
  CHECK_OK(rewire_program_find_input(program, NULL, "x", &x));
  CHECK(rewire_vm_input_report(vm, x, &copied, reason, sizeof(reason), NULL) == kRewireInvalidArgument);
  CHECK(strcmp(rewire_last_error_message(), "function main, input 0 (x) is not set") == 0);

  CHECK_OK(rewire_vm_set_input(vm, x, &vector, kRewireBorrow));
  CHECK_OK(rewire_vm_input_report(vm, x, &copied, reason, sizeof(reason), NULL));
  CHECK(copied == 0 && reason[0] == '\0');
  CHECK_OK(rewire_vm_set_input(vm, x, &vector, kRewireCopy));
  CHECK_OK(rewire_vm_input_report(vm, x, &copied, reason, sizeof(reason), NULL));
  CHECK(copied == 1 && strcmp(reason, "a copy was asked for") == 0);
  int64_t every_second[1] = {2};
  vector.strides = every_second;
  CHECK_OK(rewire_vm_set_input(vm, x, &vector, kRewireBorrow));
  CHECK_OK(rewire_vm_input_report(vm, x, &copied, reason, sizeof(reason), NULL));
  CHECK(copied == 1 && strcmp(reason, "the memory is strided") == 0);
  const RewireInput wrong = {0, 5};
  CHECK(rewire_vm_input_report(vm, wrong, &copied, NULL, 0, NULL) == kRewireInvalidArgument);

  DLTensor y;
  CHECK_OK(rewire_vm_invoke(vm, NULL));
  CHECK_OK(rewire_vm_output_tensor(vm, 0, &y));
  CHECK(((float*)y.data)[0] == 11 && ((float*)y.data)[1] == 22);
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_executable_destroy(executable);
  return FailedChecks();
}
