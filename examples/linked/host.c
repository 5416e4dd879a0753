/* SPDX-License-Identifier: Apache-2.0 */
/* A host with everything in it: the executable, the VM without reader and verifier, and the kernels. It
 * recognizes one handwritten digit and opens no file. README.md says how it is built. */
#include <rewire/kernels/cpu/kernels_cpu.h>
#include <rewire/vm/c_api.h>
#include <rewire/vm/c_api/linked_executable.h>
#include <stdio.h>
#include <string.h>

#include <digits.h> /* by vm-aot digits.rwx --bytecode -o digits.c --prefix digits */

/* A held-out image of examples/digits, eight rows of eight pixels from paper to ink. */
static const char kInk[] = " .:-=+*#";
static const char kPicture[] =
    "  =#=   "
    "  #-#   "
    " := +.  "
    "   -#.  "
    "   :*#. "
    "     +- "
    "  +==#. "
    "  =##-  ";

/* Each step is tried only when those before it have succeeded. */
static RewireStatus Recognize(DLTensor* image, RewireExecutable** executable, RewireLinkOptions** options,
                              RewireProgram** program, RewireVm** vm, DLTensor* scores) {
  RewireStatus status = rewire_executable_open_linked(&digits_executable, executable);
  if (status == kRewireOk) status = rewire_link_options_make(options);
  if (status == kRewireOk) status = rewire_link_options_add_table(*options, RewireCpuKernels(), NULL);
  if (status == kRewireOk) status = rewire_program_link(*executable, *options, program);
  if (status == kRewireOk) status = rewire_vm_make(*program, NULL, vm);
  if (status == kRewireOk) status = rewire_vm_set_input_by_name(*vm, "image", image, kRewireBorrow);
  if (status == kRewireOk) status = rewire_vm_invoke(*vm, NULL);
  if (status == kRewireOk) status = rewire_vm_output_tensor(*vm, 0, scores);
  return status;
}

int main(void) {
  RewireExecutable* executable = NULL;
  RewireLinkOptions* options = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  float pixels[64];
  int64_t shape[] = {1, 1, 8, 8};
  DLTensor image = {pixels, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor scores;
  for (int i = 0; i < 64; ++i) pixels[i] = (float)(strchr(kInk, kPicture[i]) - kInk) / 7;
  const RewireStatus status = Recognize(&image, &executable, &options, &program, &vm, &scores);
  if (status == kRewireOk) {
    const float* score = (const float*)scores.data;
    int digit = 0;
    for (int i = 1; i < 10; ++i) digit = score[i] > score[digit] ? i : digit;
    printf("this is a %d, with probability %.2f\n", digit, score[digit]);
  } else {
    fprintf(stderr, "host: %s\n", rewire_last_error_message());
  }
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_link_options_destroy(options);
  rewire_executable_destroy(executable);
  return status == kRewireOk ? 0 : 1;
}
