// SPDX-License-Identifier: Apache-2.0
// A host program: recognizes one handwritten digit. usage: embed digits.rwx
//
// tests/embedding builds it as an outside project does, with the installed headers and librewire alone.
#include <rewire/vm/vm.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

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

int main(int argc, char** argv) try {
  const auto program = rewire::Program::Open(argv[argc - 1]);  // read, verify, link
  rewire::VirtualMachine vm(program);
  float pixels[64];
  for (int i = 0; i < 64; ++i) pixels[i] = static_cast<float>(kInk.find(kPicture[i])) / 7;
  vm.SetInput("image", rewire::TensorView(pixels, {1, 1, 8, 8}));
  vm.Invoke();
  const float* scores = vm.Output("probabilities").data<float>();
  const auto digit = std::max_element(scores, scores + 10) - scores;
  std::printf("this is a %d, with probability %.2f\n", static_cast<int>(digit), scores[digit]);
} catch (const rewire::Error& error) {
  std::fprintf(stderr, "embed: %s\n", error.what());
  return 1;
}
