/* SPDX-License-Identifier: Apache-2.0 */
/* A host with everything in it, as on a device that loads no libraries: librewire and the stock CPU kernels
 * are linked statically. Recognizes one digit. usage: static_kernels digits.rwx */
#include <rewire/kernels/cpu/kernels_cpu.h>
#include <rewire/vm/c_api.h>
#include <stdio.h>

static int Failed(const char* what) {
  fprintf(stderr, "static_kernels: %s: %s\n", what, rewire_last_error_message());
  return 1;
}

int main(int argc, char** argv) {
  RewireExecutable* executable = NULL;
  RewireLinkOptions* options = NULL;
  RewireProgram* program = NULL;
  RewireVm* vm = NULL;
  DLTensor scores;
  /* A ring of ink on paper. */
  float pixels[64] = {0};
  for (int i = 2; i < 6; ++i) {
    pixels[8 + i] = pixels[48 + i] = 1;
    pixels[8 * i + 2] = pixels[8 * i + 5] = 1;
  }
  int64_t shape[] = {1, 1, 8, 8};
  DLTensor image = {pixels, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};

  if (rewire_executable_open(argv[argc - 1], NULL, &executable) != kRewireOk) return Failed("open");
  if (rewire_link_options_make(&options) != kRewireOk) return Failed("options");
  if (rewire_link_options_add_table(options, RewireCpuKernels(), "the kernels of this program") != kRewireOk)
    return Failed("table");
  if (rewire_program_link(executable, options, &program) != kRewireOk) return Failed("link");
  if (rewire_vm_make(program, NULL, &vm) != kRewireOk) return Failed("vm");
  if (rewire_vm_set_input_by_name(vm, "image", &image, kRewireBorrow) != kRewireOk) return Failed("input");
  if (rewire_vm_invoke(vm, NULL) != kRewireOk) return Failed("run");
  if (rewire_vm_output_tensor(vm, 0, &scores) != kRewireOk) return Failed("output");
  const float* score = (const float*)scores.data;
  int digit = 0;
  for (int i = 1; i < 10; ++i) digit = score[i] > score[digit] ? i : digit;
  printf("this is a %d, with probability %.2f\n", digit, score[digit]);

  rewire_vm_destroy(vm);
  rewire_program_destroy(program);
  rewire_link_options_destroy(options);
  rewire_executable_destroy(executable);
  return 0;
}
