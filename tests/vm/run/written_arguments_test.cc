// SPDX-License-Identifier: Apache-2.0
// Kernels write what the program allocated, and nothing else: constants, parameters, inputs, integers and
// views of them are refused by the verifier where it can see them, and by the interpreter everywhere.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

int WriteLast(void*, const RewireFFIAny* args, std::int32_t count, RewireFFIAny*) {
  static_cast<float*>(RewireTensorOf(&args[count - 1])->data)[0] = 99;
  return 0;
}

TEST_CASE("a program that writes what it must not is stopped: by the verifier where it shows") {
  const auto verify = [](const std::string& body) {
    Result<Module> module = [&] {
      const std::string text =
          ".const c: f32[2] = {1, 2}\n.param p: f32[2]\n.kernel write = \"host.write\"\n"
          ".func main(x: f32[2]) -> f32[2]\n" +
          body + "\nret %x\n.end";
      return Assemble(text);
    }();
    REQUIRE(MessageOf(module).empty());
    return MessageOf(Executable::FromModule(*std::move(module)));
  };
  CHECK(verify("%c = load_const c\ninvoke_packed write(%c), outputs=1").find("read-only") !=
        std::string::npos);
  CHECK(verify("%c = load_const p\ninvoke_packed write(%c), outputs=1").find("read-only") !=
        std::string::npos);
  CHECK(verify("invoke_packed write(%x), outputs=1").find("read-only") != std::string::npos);
  CHECK(verify("%i = load_consti 1\ninvoke_packed write(%i), outputs=1").find("is an integer") !=
        std::string::npos);
  CHECK(verify("%c = load_const c\n%t = alloc_adt tag=0 (%c)\n%v = get_field %t, index=0\n"
               "invoke_packed write(%v), outputs=1")
            .find("read-only") != std::string::npos);
  CHECK(verify("%c = load_const c\n%s = shape_of %c\n%v = reshape_tensor %c, %s\n"
               "invoke_packed write(%v), outputs=1")
            .find("read-only") != std::string::npos);
}

TEST_CASE("a program that writes what it must not is stopped: at run time where it does not") {
  LinkOptions options;
  options.kernels.AddFunction("host.write", Packed(WriteLast));
  options.parameters.resize(1);
  options.parameters[0].Set("p", Floats({3, 4}));
  VirtualMachine vm(ProgramOf(R"(
    .const c: f32[2] = {1, 2}
    .param p: f32[2]
    .kernel write = "host.write"
    .kernel reads_last = "host.write" writes(0)
    .func identity(x: value) -> value
      ret %x
    .end
    .func constant() -> value
      %c = load_const c
      %v = invoke identity(%c)
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func parameter() -> value
      %c = load_const p
      %v = invoke identity(%c)
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func integer() -> value
      %i = load_consti 5
      %v = invoke identity(%i)
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func input(x: value) -> value
      %v = invoke identity(%x)
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func field() -> value
      %c = load_const c
      %t = alloc_adt tag=0 (%c)
      %u = invoke identity(%t)
      %v = get_field %u, index=0
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func flattened() -> value
      %c = load_const c
      %t = alloc_adt tag=0 (%c, %c)
      %v = invoke identity(%t)
      invoke_packed write(%v), outputs=1
      ret %v
    .end
    .func view() -> value
      %c = load_const c
      %v = invoke identity(%c)
      %s = shape_of %v
      %w = reshape_tensor %v, %s
      invoke_packed write(%w), outputs=1
      ret %w
    .end
    .func also(x: value) -> value
      %v = invoke identity(%x)
      invoke_packed reads_last(%v), outputs=0
      ret %v
    .end)",
                              std::move(options)));
  const std::string given = "is written by the kernel, but the tensor given, ";
  const std::string reason =
      ", is read-only (a constant, a parameter, the caller's input, an integer or a view of one)";
  const std::string first = "argument 0 " + given;
  const std::string tensor = first + "f32[2]" + reason;
  for (const char* function : {"constant", "parameter", "field", "view"}) {
    CAPTURE(function);
    const std::string message = MessageOf(vm.TryInvoke(function));
    CHECK(message.find(tensor) != std::string::npos);
  }
  CHECK(MessageOf(vm.TryInvoke("integer")).find(first + "i64[]" + reason) != std::string::npos);
  CHECK(MessageOf(vm.TryInvoke("flattened")).find("argument 1 " + given) != std::string::npos);
  const Value owned = Floats({1, 2});
  for (const char* function : {"input", "also"}) {
    CAPTURE(function);
    CHECK(MessageOf(vm.TryInvoke(function, {&owned, 1})).find(first) != std::string::npos);
    float borrowed[2] = {7, 8};
    const InputHandle handle = *vm.program().FindInput(0u, function);
    for (const InputMode mode : {InputMode::kBorrow, InputMode::kCopy}) {
      REQUIRE(MessageOf(vm.TrySetInput(handle, TensorView(borrowed, {2}), mode)).empty());
      CHECK(MessageOf(vm.TryInvoke(function)).find("argument 0 " + given) != std::string::npos);
    }
    CHECK(borrowed[0] == 7);
  }
  CHECK(FloatsOf(owned.tensor())[0] == 1);
}

}  // namespace
}  // namespace rewire::test
