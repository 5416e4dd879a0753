// SPDX-License-Identifier: Apache-2.0
// Several models in one process: one's outputs are another's inputs without a copy, and they share kernels.
#include <catch2/catch.hpp>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire::test {
namespace {

// The tensors that the kernels of both models saw.
struct Seen {
  const void* written = nullptr;
  const void* read = nullptr;
};

LinkOptions Recording(Seen* seen) {
  LinkOptions options;
  options.kernels.AddFunction("host.make",
                              MakePackedFunction([seen](kernel::TensorView x, kernel::TensorView y) {
                                seen->written = y.data<float>();
                                for (int i = 0; i < 4; ++i) y.data<float>()[i] = x.data<float>()[i] + 1;
                              }));
  options.kernels.AddFunction("host.use",
                              MakePackedFunction([seen](kernel::TensorView x, kernel::TensorView y) {
                                seen->read = x.data<float>();
                                for (int i = 0; i < 4; ++i) y.data<float>()[i] = x.data<float>()[i] * 10;
                              }));
  return options;
}

std::string Model(const std::string& kernel, const std::string& input, const std::string& output) {
  return ".kernel k = \"" + kernel + "\"\n.func main(" + input + ": f32[4]) -> " + output +
         ": f32[4]\n"
         "%s = alloc_storage _, alignment=64, f32[4], cpu\n%y = alloc_tensor %s, _, f32[4]\n"
         "invoke_packed k(%" +
         input + ", %y), outputs=1\nret %y\n.end";
}

TEST_CASE("a result of one model is an input of another by name, where it lies") {
  Seen seen;
  VirtualMachine encoder(ProgramOf(Model("host.make", "image", "code"), Recording(&seen)));
  VirtualMachine decoder(ProgramOf(Model("host.use", "code", "text"), Recording(&seen)));
  for (float step = 0; step < 3; ++step) {
    encoder.SetInput("image", Floats({step, 1, 2, 3}));
    encoder.Invoke();
    decoder.SetInput("code", Value(encoder.Output("code")));
    decoder.Invoke();
    CHECK(seen.read == seen.written);
    CHECK(FloatsOf(decoder.Output("text")) == std::vector<float>{10 * step + 10, 20, 30, 40});
  }
}

TEST_CASE("two models meet in one buffer that is set once") {
  Seen seen;
  VirtualMachine encoder(ProgramOf(Model("host.make", "image", "code"), Recording(&seen)));
  VirtualMachine decoder(ProgramOf(Model("host.use", "code", "text"), Recording(&seen)));
  const Tensor between = Floats({0, 0, 0, 0});
  encoder.SetOutput("code", between);
  decoder.SetInput("code", Value(between));
  float image[4] = {0, 1, 2, 3};
  encoder.SetInput("image", TensorView(image, {4}));
  for (float step = 0; step < 3; ++step) {
    image[0] = step;
    encoder.Invoke();
    decoder.Invoke();
    CHECK(seen.written == between.view().data());
    CHECK(seen.read == between.view().data());
    CHECK(FloatsOf(decoder.Output("text"))[0] == 10 * step + 10);
  }
}

TEST_CASE("models share the kernel libraries that they name") {
  const char* const text = R"(
    .kernel add = "rewire.add"
    .func main(x: f32[4]) -> y: f32[4]
      %s = alloc_storage _, alignment=64, f32[4], cpu
      %y = alloc_tensor %s, _, f32[4]
      invoke_packed add(%x, %x, %y), outputs=1
      ret %y
    .end)";
  const auto link = [&] {
    LinkOptions options;
    const Status added =
        options.kernels.AddLibrary(std::string(BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so");
    if (!added) FAIL(added.error().message());
    return ProgramOf(text, options);
  };
  const Program first = link();
  const Program second = link();
  CHECK(first.rep().kernels[0].function.call == second.rep().kernels[0].function.call);
}

}  // namespace
}  // namespace rewire::test
