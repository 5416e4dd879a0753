// SPDX-License-Identifier: Apache-2.0
// Rows that a library of somebody else brings are the word on its kernels, as those of the stock kernels are:
// a program that declares otherwise does not link, or is stopped at the call.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/text/assembler.h"
#include "rewire/tests/vm/loader/run_kernel.h"
#include "rewire/vm/vm.h"

namespace rewire {
namespace {

using test::MessageOf;
using test::TestLibrary;

Result<Program> Link(const std::string& import, const std::string& body,
                     const std::string& library = "rows") {
  Result<Module> module =
      Assemble(".kernel k = " + import + "\n.func main(x: f32[4]) -> value\n" + body + "\n.end\n", {});
  if (!module) return Forward(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) return Forward(executable);
  LinkOptions options;
  options.stock_kernels = false;
  if (Status added = options.kernels.AddLibrary(TestLibrary(library)); !added) return Forward(added);
  return Program::Link(*executable, std::move(options));
}

// Tensors %p and %q on one storage, %q at the offset, and %r on another.
std::string Tensors(int offset) {
  return "%size = load_consti 64\n%s = alloc_storage %size, alignment=64, f32, cpu\n"
         "%p = alloc_tensor %s, _, f32[4]\n%at = load_consti " +
         std::to_string(offset) +
         "\n%q = alloc_tensor %s, %at, f32[4]\n%t = alloc_storage _, alignment=64, f32[4], cpu\n"
         "%r = alloc_tensor %t, _, f32[4]\n";
}

// The elements of the result for x = {1, 2, 3, 4}.
Result<std::vector<float>> Run(const std::string& import, const std::string& body) {
  const Result<Program> program = Link(import, body);
  if (!program) return Forward(program);
  VirtualMachine vm(*program);
  const std::vector<float> x = {1, 2, 3, 4};
  if (Status set = vm.TrySetInput("x", TensorView(x.data(), {4})); !set) return Forward(set);
  if (Status done = vm.TryInvoke(); !done) return Forward(done);
  const float* elements = vm.result().tensor().data<float>();
  return std::vector<float>(elements, elements + 4);
}

TEST_CASE("calls that agree with the row of their kernel run, whichever row of the table it is") {
  const Result<std::vector<float>> both =
      Run("\"rows.both\"", Tensors(32) + "invoke_packed k(%x, %x, %r, %p), outputs=2\nret %r");
  CHECK(MessageOf(both) == "no error");
  if (both) CHECK(*both == std::vector<float>{2, 4, 6, 8});
  const Result<std::vector<float>> add =
      Run("\"rows.add\"", Tensors(32) + "invoke_packed k(%x, %x, %p), outputs=1\nret %p");
  CHECK(MessageOf(add) == "no error");
  if (add) CHECK(*add == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("a program whose calls or imports differ from a library's row does not link") {
  const std::string what = "kernels are declared otherwise than their libraries describe them:\n  ";
  const std::string both = "; kernel 'rows.both' takes (a, b -> sum, difference)";
  const std::string add = "; kernel 'rows.add' takes (a, b -> out over a)";
  CHECK(
      MessageOf(Link("\"rows.both\"", Tensors(32) + "invoke_packed k(%x, %x, %r, %p), outputs=1\nret %r")) ==
      what + "main@48 (invoke_packed k(%x, %x, %7, %3), outputs=1): 1 outputs are declared, expected 2" +
          both);
  CHECK(MessageOf(Link("\"rows.add\"", "invoke_packed k(%x, %x, %x), outputs=0\nret %x")) ==
        what + "main@0 (invoke_packed k(%x, %x, %x), outputs=0): 0 outputs are declared, expected 1" + add);
  const std::string body = Tensors(32) + "invoke_packed k(%x, %x, %p), outputs=1\nret %p";
  CHECK(MessageOf(
            Link("\"rows.add\" writes(0)", Tensors(32) + "invoke_packed k(%q, %x, %p), outputs=1\nret %p")) ==
        what + "import of 'rows.add': argument 0 is declared as written besides the outputs, expected none" +
            add);
  CHECK(MessageOf(Link("\"rows.add\" objects", body)) ==
        what + "import of 'rows.add': with the flag `objects`, but the kernel takes tensors" + add);
  CHECK(MessageOf(Link("\"rows.add\" in_place", body)) == "no error");
  CHECK(MessageOf(Link("\"rows.both\" in_place",
                       Tensors(32) + "invoke_packed k(%x, %x, %r, %p), outputs=2\nret %r")) ==
        what +
            "import of 'rows.both': with the flag `in_place`, but the kernel's outputs may lie over no "
            "input" +
            both);
}

TEST_CASE("arguments share memory as a library's row allows, and not otherwise") {
  const auto over = [](int offset, const char* args) {
    return MessageOf(Run("\"rows.add\"", Tensors(offset) + "invoke_packed k(%x, %x, %p), outputs=1\n" +
                                             "invoke_packed k(" + args + "), outputs=1\nret %q"));
  };
  CHECK(over(0, "%p, %x, %q") == "no error");
  CHECK_THAT(
      over(0, "%x, %p, %q"),
      Catch::Contains("argument 2 (out) is written and shares memory with argument 1 (b) in a way that "
                      "kernel 'rows.add' does not allow: it takes (a, b -> out over a)"));
  CHECK_THAT(over(4, "%p, %x, %q"),
             Catch::Contains("argument 2 (out) is written and shares memory with argument 0 (a)"));
}

TEST_CASE("what a library does not declare is the import's word") {
  // The kernel would write its last argument, which the import says is none of its outputs.
  const std::string none = "invoke_packed k(%x, %x, %x), outputs=0\nret %x";
  CHECK(MessageOf(Link("\"rows.bare\"", none)) == "no error");
  CHECK(MessageOf(Link("\"rows.add\"", none, "rows_old")) == "no error");
}

// Gives its input to the kernel `mine`.
Executable CallOfMine() {
  Result<Module> module = Assemble(
      ".kernel k = \"mine\"\n.func main(x: f32[4]) -> value\n"
      "invoke_packed k(%x), outputs=0\nret %x\n.end\n");
  REQUIRE(module);
  Result<Executable> executable = Executable::FromModule(*std::move(module));
  REQUIRE(executable);
  return *std::move(executable);
}

TEST_CASE("rows of a host's own table count as those of a library, and of two kernels the later one's") {
  const RewirePackedFunction nothing = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    return 0;
  };
  const RewireKernelArgument x = {"x", REWIRE_DTYPE_F32, 0, 1, 0, 0};
  const RewireKernelArgument moved[] = {x, {"y", REWIRE_DTYPE_F32, 0, 1, REWIRE_ARGUMENT_WRITTEN, 0}};
  const RewireKernelEntry entries[] = {{"mine", nothing, 0}, {"other", nothing, 0}, {"mine", nothing, 0}};
  const RewireKernelRow rows[] = {{&x, 1, 0, nullptr, nullptr}, {}, {moved, 2, 0, nullptr, nullptr}};
  const RewireKernelTable table = {sizeof(RewireKernelTable), 3, entries, rows};
  LinkOptions options;
  options.stock_kernels = false;
  options.kernels.AddTable(table, "the table");
  const Executable executable = CallOfMine();
  CHECK_THAT(MessageOf(Program::Link(executable, options)),
             Catch::EndsWith("0 outputs are declared, expected 1; kernel 'mine' takes (x -> y)"));
}

TEST_CASE("a row with more arguments than `over` has bits is refused") {
  const RewirePackedFunction nothing = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    return 0;
  };
  const RewireKernelEntry entry = {"mine", nothing, 0};
  const std::vector<RewireKernelArgument> arguments(70'000, {"x", 0, 0, 1, REWIRE_ARGUMENT_OPTIONAL, 0});
  const Executable executable = CallOfMine();
  for (const std::uint32_t count : {1U, 16U, 17U, 128U, 65'537U}) {
    const RewireKernelRow row = {arguments.data(), count, 0, nullptr, nullptr};
    const RewireKernelTable table = {sizeof(RewireKernelTable), 1, &entry, &row};
    LinkOptions options;
    options.stock_kernels = false;
    options.kernels.AddTable(table, "the table");
    const std::string refused = "kernels could not be resolved:\n  mine: its row declares " +
                                std::to_string(count) +
                                " arguments, at most 16 may be; declare several as a list";
    CHECK(MessageOf(Program::Link(executable, options)) == (count > 16 ? refused : "no error"));
  }
}

}  // namespace
}  // namespace rewire
