/* SPDX-License-Identifier: Apache-2.0 */
/* A host program in C: recognizes one handwritten digit. usage: embed_c digits.rwx
 *
 * tests/embedding builds it as an outside project does, with the installed headers and librewire alone. */
#include <rewire/vm/c_api.h>
#include <stdio.h>
#include <string.h>

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
static RewireStatus Recognize(const char* path, DLTensor* image, RewireExecutable** executable,
                              RewireProgram** program, RewireVm** vm, DLTensor* scores) {
  RewireStatus status = rewire_executable_open(path, NULL, executable); /* read, verify */
  if (status == kRewireOk) status = rewire_program_link(*executable, NULL, program);
  if (status == kRewireOk) status = rewire_vm_make(*program, NULL, vm);
  if (status == kRewireOk) status = rewire_vm_set_input_by_name(*vm, "image", image, kRewireBorrow);
  if (status == kRewireOk) status = rewire_vm_invoke(*vm, NULL);
  if (status == kRewireOk) status = rewire_vm_output_tensor(*vm, 0, scores);
  return status;
}

int main(int argc, char** argv) {
  RewireExecutable* executable = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  float pixels[64];
  int64_t shape[] = {1, 1, 8, 8};
  DLTensor image = {pixels, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  DLTensor scores;
  for (int i = 0; i < 64; ++i) pixels[i] = (float)(strchr(kInk, kPicture[i]) - kInk) / 7;
  const RewireStatus status = Recognize(argv[argc - 1], &image, &executable, &program, &vm, &scores);
  if (status == kRewireOk) {
    const float* score = (const float*)scores.data;
    int digit = 0;
    for (int i = 1; i < 10; ++i) digit = score[i] > score[digit] ? i : digit;
    printf("this is a %d, with probability %.2f\n", digit, score[digit]);
  } else {
    fprintf(stderr, "embed_c: %s\n", rewire_last_error_message());
  }
  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_executable_destroy(executable);
  return status == kRewireOk ? 0 : 1;
}
