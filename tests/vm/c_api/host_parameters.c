/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter sets as a C host has them: from a file, added by hand, of a program; bound and bound again. */
#include <string.h>

#include "rewire/tests/vm/c_api/host.h"
#include "rewire/tests/vm/c_api/host_support.h"
#include "rewire/vm/c_api.h"

/* The model's y = x + w for x = 1, 2. */
static int Gives(const RewireProgram* program, float first, float second) {
  RewireVm* vm = NULL;
  float x[2] = {1, 2};
  const DLTensor input = Vector(x, two);
  DLTensor y;
  if (rewire_vm_make(program, NULL, &vm) != kRewireOk) return 0;
  int right = rewire_vm_set_input_by_name(vm, "x", &input, kRewireBorrow) == kRewireOk &&
              rewire_vm_invoke(vm, NULL) == kRewireOk && rewire_vm_output_tensor(vm, 0, &y) == kRewireOk &&
              ((float*)y.data)[0] == first && ((float*)y.data)[1] == second;
  rewire_vm_destroy(vm);
  return right;
}

static int Decode(void* context, const void* stored, size_t stored_bytes, void* raw, size_t raw_bytes) {
  (void)context, (void)stored, (void)stored_bytes, (void)raw, (void)raw_bytes;
  return 1;
}

int RunCHostParameters(const void* data, size_t size, const char* path) {
  RewireExecutable* executable = NULL;
  RewireLinkOptions* options = Options();
  RewireParameterSet *file = NULL, *own = NULL, *offer = NULL;
  RewireProgram *program = NULL, *rebound = NULL, *other = NULL;
  StartChecks();
  CHECK_OK(rewire_executable_open_memory(data, size, NULL, NULL, NULL, &executable));

  /* The file has w and one more, which is too many until it is said to be none. */
  CHECK_OK(rewire_parameter_set_open(path, NULL, NULL, 0, &file));
  uint32_t count = 0;
  const char* name = NULL;
  CHECK_OK(rewire_parameter_set_count(file, &count));
  CHECK_OK(rewire_parameter_set_name(file, 1, &name));
  CHECK(count == 2 && strcmp(name, "w") == 0);
  CHECK(rewire_parameter_set_name(file, 2, &name) == kRewireInvalidArgument);
  RewireValue* weight = NULL;
  CHECK(rewire_parameter_set_get(file, "ww", &weight) == kRewireNotFound);
  CHECK(strcmp(rewire_last_error_message(),
               "the set has no parameter named \"ww\"; did you mean 'w'? The "
               "parameters: another, w") == 0);
  CHECK_OK(rewire_parameter_set_get(file, "w", &weight));
  CHECK_OK(rewire_link_options_add_parameters(options, file));
  CHECK(rewire_program_link(executable, options, &program) == kRewireLinkFailed);
  CHECK_OK(rewire_link_options_ignore_extra_parameters(options, 1));
  CHECK_OK(rewire_program_link(executable, options, &program));
  CHECK(Gives(program, 31, 42));

  /* Bound again, to the caller's tensor. */
  float numbers[2] = {100, 200};
  const DLTensor tensor = Vector(numbers, two);
  RewireValue* value = NULL;
  CHECK_OK(rewire_value_wrap_tensor(&tensor, NULL, NULL, &value));
  CHECK_OK(rewire_parameter_set_make(&own));
  CHECK_OK(rewire_parameter_set_add(own, "w", value));
  const RewireParameterSet* sets[1] = {own};
  CHECK_OK(rewire_program_rebind(program, sets, 1, &rebound));
  CHECK(Gives(rebound, 101, 202));
  CHECK(Gives(program, 31, 42));
  CHECK(rewire_program_rebind(program, NULL, 1, &other) == kRewireInvalidArgument);

  /* A program as donor, gone before it is used. */
  CHECK_OK(rewire_parameter_set_of_program(rebound, &offer));
  rewire_program_destroy(rebound);
  CHECK_OK(rewire_link_options_add_parameters(options, offer));
  CHECK_OK(rewire_program_link(executable, options, &other));
  CHECK(Gives(other, 101, 202));
  /* A parameter that is added after an offer is a set of its own. */
  CHECK_OK(rewire_link_options_add_parameter(options, "w", weight));
  rewire_program_destroy(other);
  CHECK_OK(rewire_program_link(executable, options, &other));
  CHECK(Gives(other, 31, 42));

  RewireCodec codec = {sizeof(RewireCodec), 300, NULL, Decode};
  CHECK_OK(rewire_link_options_add_codec(options, &codec));
  const RewireCodec* codecs[1] = {&codec};
  RewireParameterSet* again = NULL;
  CHECK_OK(rewire_parameter_set_open(path, NULL, codecs, 1, &again));
  rewire_parameter_set_destroy(again);
  codec.id = 1;
  CHECK(rewire_link_options_add_codec(options, &codec) == kRewireInvalidArgument);
  CHECK(rewire_parameter_set_open("no/such/file", NULL, NULL, 0, &again) == kRewireNotFound);
  const RewireValue* none = NULL;
  CHECK(rewire_parameter_set_add(own, "w", none) == kRewireInvalidArgument);

  rewire_value_destroy(weight);
  rewire_value_destroy(value);
  rewire_parameter_set_destroy(file);
  rewire_parameter_set_destroy(own);
  rewire_parameter_set_destroy(offer);
  rewire_program_destroy(other);
  rewire_program_destroy(program);
  rewire_link_options_destroy(options);
  rewire_executable_destroy(executable);
  return FailedChecks();
}
