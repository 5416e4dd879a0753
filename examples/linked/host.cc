// SPDX-License-Identifier: Apache-2.0
// A host with everything in it: the executable, the VM without reader and verifier, and the kernels. It
// recognizes one handwritten digit and opens no file. README.md says how it is built.
#include <rewire/kernels/cpu/kernels_cpu.h>
#include <rewire/vm/vm.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <digits.h>  // by vm-aot digits.rwx --bytecode -o digits.c --prefix digits

// A held-out image of examples/digits, eight rows of eight pixels from paper to ink.
constexpr std::string_view kInk = " .:-=+*#";
constexpr std::string_view kPicture =
    "  =#=   "
    "  #-#   "
    " := +.  "
    "   -#.  "
    "   :*#. "
    "     +- "
    "  +==#. "
    "  =##-  ";

int main() try {
  rewire::LinkOptions options;
  options.kernels.AddTable(*RewireCpuKernels(), "the kernels of this program");
  const rewire::Executable executable = rewire::OpenLinked(digits_executable).value();
  const rewire::Program program = rewire::Program::Link(executable, options).value();
  rewire::VirtualMachine vm(program);
  float pixels[64];
  for (int i = 0; i < 64; ++i) pixels[i] = static_cast<float>(kInk.find(kPicture[i])) / 7;
  vm.SetInput("image", rewire::TensorView(pixels, {1, 1, 8, 8}));
  vm.Invoke();
  const float* scores = vm.Output("probabilities").data<float>();
  const auto digit = std::max_element(scores, scores + 10) - scores;
  std::printf("this is a %d, with probability %.2f\n", static_cast<int>(digit), scores[digit]);
} catch (const rewire::Error& error) {
  std::fprintf(stderr, "host: %s\n", error.what());
  return 1;
}
