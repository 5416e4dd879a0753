// SPDX-License-Identifier: Apache-2.0
// run_kernels C_LIBRARY CPP_LIBRARY: runs saxpy.rwx and moving_average.rwx of this folder with the libraries.
#include <rewire/vm/vm.h>

#include <cstdio>
#include <vector>

namespace {

bool Expect(const char* what, const rewire::Tensor& tensor, const std::vector<float>& expected) {
  const float* values = tensor.data<float>();
  bool same = values != nullptr && tensor.view().size() == static_cast<std::int64_t>(expected.size());
  for (std::size_t i = 0; same && i < expected.size(); ++i) same = values[i] == expected[i];
  std::printf("%s: %s\n", what, same ? "right" : "wrong");
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  rewire::LinkOptions options;
  for (int i = 1; i < argc; ++i) {
    if (rewire::Status loaded = options.kernels.AddLibrary(argv[i]); !loaded)
      throw rewire::Error(loaded.error());
  }
  const auto saxpy = rewire::Program::Open("saxpy.rwx", options);
  rewire::VirtualMachine vm(saxpy);
  const float x[] = {1, 2, 3, 4}, y[] = {10, 20, 30, 40};
  vm.SetInput("x", rewire::TensorView(x, {4}));
  vm.SetInput("y", rewire::TensorView(y, {4}));
  vm.Invoke();
  bool right = Expect("saxpy", vm.Output(), {12, 24, 36, 48});

  const auto average = rewire::Program::Open("moving_average.rwx", options);
  rewire::VirtualMachine first(average), second(average);
  const auto call = [](rewire::VirtualMachine& machine, float a, float b) {
    const float sample[] = {a, b};
    machine.SetInput("x", rewire::TensorView(sample, {2}), rewire::InputMode::kCopy);
    machine.Invoke();
    return machine.Output();
  };
  right &= Expect("first mean", call(first, 3, 0), {3, 0});
  right &= Expect("mean of another VM", call(second, 100, 100), {100, 100});
  right &= Expect("second mean", call(first, 5, 2), {4, 1});
  right &= Expect("third mean", call(first, 7, 4), {5, 2});
  right &= Expect("mean without the first", call(first, 9, 6), {7, 4});
  return right ? 0 : 1;
} catch (const rewire::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
