// SPDX-License-Identifier: Apache-2.0
// The row of a stock kernel says which arguments it writes, not the file: a program that declares otherwise
// does not link, or is stopped at the call. Memory of written arguments overlaps nothing but what the row
// allows.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// The message of linking a function f32[4] -> value with this body; "" when it links.
std::string LinkMessage(const std::string& declarations, const std::string& body) {
  const std::string text =
      declarations + "\n.func main(x: f32[4], i: i64[4]) -> value\n" + body + "\nret %x\n.end\n";
  return MessageOf(Program::Link(ExecutableOf(text), {}));
}

// With the stock kernels.
VirtualMachine MachineOf(const std::string& text) {
  Result<Program> program = Program::Link(ExecutableOf(text), {});
  if (!program) FAIL(program.error().message());
  return VirtualMachine(*program);
}

bool Has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

// Registers %a to %d: tensors of the function's own, apart from one another.
std::string Allocated() {
  std::string text;
  for (const char* name : {"a", "b", "c", "d"}) {
    text += std::string("%s") + name + " = alloc_storage _, alignment=64, f32[4], cpu\n%" + name +
            " = alloc_tensor %s" + name + ", _, f32[4]\n";
  }
  return text;
}

TEST_CASE("a call that declares fewer outputs than its kernel writes does not link") {
  const std::string add =
      LinkMessage(".kernel add = \"rewire.add\"", "invoke_packed add(%x, %x, %x), outputs=0");
  CHECK(Has(add, "kernels are declared otherwise than their libraries describe them:"));
  CHECK(Has(add,
            "main@0 (invoke_packed add(%x, %x, %x), outputs=0): 0 outputs are declared, expected 1; kernel "
            "'rewire.add' takes (a, b -> out over a|b)"));
  // Several, and of one kind each: optional ones, a list, a list as long as an attribute, none.
  CHECK(
      Has(LinkMessage(".kernel k = \"rewire.top_k\"", Allocated() + "invoke_packed k(%x, %a, %b), outputs=1"),
          "1 outputs are declared, expected 2; kernel 'rewire.top_k' takes (x -> out_values, out_indices)"));
  CHECK(Has(LinkMessage(".kernel k = \"rewire.layer_norm\"",
                        Allocated() + "invoke_packed k(%x, %x, %x, %a), outputs=0"),
            "0 outputs are declared, expected 1 to 3"));
  CHECK(Has(LinkMessage(".kernel k = \"rewire.layer_norm\"",
                        Allocated() + "invoke_packed k(%a, %b, %c, %d), outputs=4"),
            "4 outputs are declared, expected 1 to 3"));
  CHECK(Has(LinkMessage(".kernel k = \"rewire.shape.layout\" {program=[0, 4, 7], blocks=[0, 0, 0, 0], "
                        "offsets=[0, 1]}",
                        "invoke_packed k(%i, %i, %i), outputs=0"),
            "0 outputs are declared, expected 3; kernel 'rewire.shape.layout' takes (shapes... -> offsets[], "
            "total)"));
  CHECK(Has(
      LinkMessage(".kernel k = \"rewire.seq.at\" objects",
                  "%t = alloc_adt tag=0 (%x)\n" + Allocated() + "%r = invoke_packed k(%t, %a), outputs=1"),
      "1 outputs are declared, expected 0; kernel 'rewire.seq.at' takes (seq, position)"));
}

TEST_CASE("of a call with thousands of arguments the error shows the first") {
  std::string call = "invoke_packed add(%x";
  for (int i = 1; i < 5000; ++i) call += ", %x";
  CHECK(Has(LinkMessage(".kernel add = \"rewire.add\"", call + "), outputs=0"),
            "%x, %x, ... 4984 more), outputs=0): 0 outputs are declared, expected 1; kernel 'rewire.add'"));
}

TEST_CASE("what an import says of its kernel besides must be what the row says") {
  CHECK(Has(LinkMessage(".kernel add = \"rewire.add\" writes(0)",
                        Allocated() + "invoke_packed add(%a, %b, %c), outputs=1"),
            "import of 'rewire.add': argument 0 is declared as written besides the outputs, expected none"));
  CHECK(Has(LinkMessage(".kernel add = \"rewire.add\" objects",
                        Allocated() + "invoke_packed add(%a, %b, %c), outputs=1"),
            "import of 'rewire.add': with the flag `objects`, but the kernel takes tensors"));
  CHECK(Has(LinkMessage(".kernel at = \"rewire.seq.at\"", "%r = invoke_packed at(%x, %x), outputs=0"),
            "import of 'rewire.seq.at': without the flag `objects`, but the kernel takes ADTs whole"));
  CHECK(Has(LinkMessage(".kernel mm = \"rewire.matmul\" in_place",
                        Allocated() + "invoke_packed mm(%x, %x, %a), outputs=1"),
            "import of 'rewire.matmul': with the flag `in_place`, but the kernel's outputs may lie over no "
            "input"));
  CHECK(LinkMessage(".kernel add = \"rewire.add\" in_place",
                    Allocated() + "invoke_packed add(%x, %x, %a), outputs=1")
            .empty());
  CHECK(Has(LinkMessage(".kernel add = \"rewire.add\"",
                        Allocated() + "%r = invoke_packed add(%x, %x, %a), outputs=1"),
            "a result is expected, but the kernel returns none"));
  // All that is wrong is named at once, up to a limit.
  std::string body = Allocated();
  for (int i = 0; i < 100; ++i) body += "invoke_packed add(%a, %b, %c), outputs=0\n";
  const std::string many = LinkMessage(".kernel add = \"rewire.add\"", body);
  CHECK(Has(many, "main@"));
  CHECK(many.size() < 10000);
}

// The message of a run of `main`, whose body this is.
std::string RunMessage(const std::string& declarations, const std::string& body) {
  const std::string text = declarations + "\n.func main(x: f32[4]) -> value\n" + body + "\n.end\n";
  VirtualMachine vm = MachineOf(text);
  if (Status set = vm.TrySetInput("x", Floats({1, 2, 3, 4})); !set) return MessageOf(set);
  return MessageOf(vm.TryInvoke());
}

TEST_CASE("optional outputs count by how many arguments there are") {
  const std::string norm = ".kernel norm = \"rewire.layer_norm\"";
  // x, scale, bias, out: with one more, out_mean is written too, whatever the call declares.
  CHECK(RunMessage(norm, Allocated() + "invoke_packed norm(%x, %x, %x, %a), outputs=1\nret %a").empty());
  const std::string extra =
      RunMessage(norm, Allocated() + "invoke_packed norm(%x, %x, %x, %a, %b), outputs=1\nret %a");
  CHECK(Has(extra,
            "5 arguments with 1 outputs given after ADTs were flattened; kernel 'rewire.layer_norm' takes "
            "(x, scale, bias? -> out over x, out_mean?, out_inv_std?)"));
  // Arguments in an ADT count as its fields.
  CHECK(RunMessage(".kernel add = \"rewire.add\"", Allocated() +
                                                       "%t = alloc_adt tag=0 (%x, %x)\n"
                                                       "invoke_packed add(%t, %a), outputs=1\nret %a")
            .empty());
  const std::string hidden = RunMessage(norm, Allocated() +
                                                  "%t = alloc_adt tag=0 (%x, %a)\n"
                                                  "invoke_packed norm(%x, %x, %t, %b), outputs=1\nret %a");
  CHECK(Has(hidden, "5 arguments with 1 outputs given"));
}

// Tensors %p of `first` and %q of `second` on one storage of 64 bytes, q at the offset.
std::string Sharing(const std::string& first, const std::string& second, int offset) {
  return "%size = load_consti 64\n%s = alloc_storage %size, alignment=64, f32, cpu\n%p = alloc_tensor %s, "
         "_, " +
         first + "\n%at = load_consti " + std::to_string(offset) + "\n%q = alloc_tensor %s, %at, " + second +
         "\n";
}

TEST_CASE("a written argument shares memory only as its row allows") {
  const std::string add = ".kernel copy = \"rewire.copy\"\n.kernel add = \"rewire.add\"";
  const std::string fill = "invoke_packed copy(%x, %p), outputs=1\n";
  const std::string call = fill + "invoke_packed add(%p, %p, %q), outputs=1\nret %q";
  CHECK(RunMessage(add, Sharing("f32[4]", "f32[4]", 0) + call).empty());   // in place
  CHECK(RunMessage(add, Sharing("f32[4]", "f32[4]", 16) + call).empty());  // apart
  const std::string within = RunMessage(add, Sharing("f32[4]", "f32[4]", 4) + call);
  CHECK(Has(within,
            "argument 2 (out) is written and shares memory with argument 0 (a) in a way that kernel "
            "'rewire.add' does not allow: it takes (a, b -> out over a|b)"));
  // Not all of it: out begins where a does and is longer.
  CHECK(Has(
      RunMessage(add, Sharing("f32[1]", "f32[4]", 0) + "invoke_packed add(%p, %x, %q), outputs=1\nret %q"),
      "argument 2 (out) is written and shares memory with argument 0 (a)"));

  const std::string softmax = ".kernel mm = \"rewire.matmul\"";
  CHECK(Has(RunMessage(softmax, Sharing("f32[2, 2]", "f32[2, 2]", 0) +
                                    "invoke_packed mm(%p, %p, %q), outputs=1\nret %q"),
            "argument 2 (out) is written and shares memory with argument 0 (a)"));
  // Two written ones.
  CHECK(Has(RunMessage(".kernel k = \"rewire.top_k\"",
                       Sharing("f32[4]", "i64[4]", 8) + "invoke_packed k(%x, %p, %q), outputs=2\nret %q"),
            "argument 2 (out_indices) is written and shares memory with argument 1 (out_values)"));
  // Tensors without elements share nothing.
  CHECK(RunMessage(".kernel mm = \"rewire.matmul\"", Sharing("f32[0, 2]", "f32[2, 2]", 0) +
                                                         "%e = alloc_tensor %s, _, f32[0, 2]\n"
                                                         "invoke_packed mm(%p, %q, %e), outputs=1\nret %q")
            .empty());
}

TEST_CASE("parts of a concatenation and of a split may lie in place") {
  const std::string concat = ".kernel copy = \"rewire.copy\"\n.kernel concat = \"rewire.concat\" {axis=0}";
  const std::string parts = Sharing("f32[8]", "f32[4]", 16) + "invoke_packed copy(%x, %q), outputs=1\n";
  CHECK(RunMessage(concat, parts + "invoke_packed concat(%x, %q, %p), outputs=1\nret %p").empty());
  CHECK(Has(RunMessage(concat, parts + "invoke_packed concat(%q, %x, %p), outputs=1\nret %p"),
            "shares memory with"));  // where the other one goes: the kernel says so
  const std::string beyond = Sharing("f32[8]", "f32[4]", 20) + "invoke_packed copy(%x, %q), outputs=1\n";
  CHECK(Has(RunMessage(concat, beyond + "invoke_packed concat(%x, %q, %p), outputs=1\nret %p"),
            "argument 2 (out) is written and shares memory with argument 1 (x)"));
}

// One step of a layer runs in reverse over 4 steps; the lengths lie in the memory of its first output, where
// each step would overwrite them.
std::string RecurrentBody(const std::string& kernel, int gates, bool cell) {
  const std::string g = std::to_string(gates);
  return ".const x: f32[4, 1, 1] = {2, 2, 2, 2}\n.const w: f32[1, " + g + ", 1] = fill 1\n.const r: f32[1, " +
         g +
         ", 1] = zeros\n.const none: f32[0] = zeros\n.const length: i32[1] = {4}\n"
         ".kernel layer = \"" +
         kernel +
         "\" {direction=\"reverse\"}\n.kernel copy = \"rewire.copy\"\n"
         ".func main() -> value\n"
         "%x = load_const x\n%w = load_const w\n%r = load_const r\n%none = load_const none\n"
         "%length = load_const length\n%at = load_consti 12\n"
         "%s = alloc_storage _, alignment=64, f32[4], cpu\n%y = alloc_tensor %s, _, f32[4, 1, 1, 1]\n"
         "%lens = alloc_tensor %s, %at, i32[1]\n"
         "%sh = alloc_storage _, alignment=64, f32[1], cpu\n%h = alloc_tensor %sh, _, f32[1, 1, 1]\n"
         "%sc = alloc_storage _, alignment=64, f32[1], cpu\n%c = alloc_tensor %sc, _, f32[1, 1, 1]\n"
         "invoke_packed copy(%length, %lens), outputs=1\n"
         "invoke_packed layer(%x, %w, %r, %none, %lens, %none, " +
         (cell ? "%none, %none, %y, %h, %c), outputs=3\n" : "%y, %h), outputs=2\n") + "ret %y\n.end\n";
}

TEST_CASE("recurrent layers do not write over the lengths that they read again") {
  const auto run = [](const std::string& text) {
    VirtualMachine vm = MachineOf(text);
    return MessageOf(vm.TryInvoke());
  };
  const std::string expected = " (out_y) is written and shares memory with argument 4 (sequence_lens)";
  CHECK(Has(run(RecurrentBody("rewire.rnn", 1, false)), "argument 6" + expected));
  CHECK(Has(run(RecurrentBody("rewire.gru", 3, false)), "argument 6" + expected));
  CHECK(Has(run(RecurrentBody("rewire.lstm", 4, true)), "argument 8" + expected));
}

TEST_CASE("a stock kernel writes neither the host's input nor a constant that programs share") {
  // Both would be written by a call that declares no outputs; neither links.
  CHECK(Has(LinkMessage(".const c: f32[4] = {1, 2, 3, 4}\n.kernel add = \"rewire.add\"",
                        "%c = load_const c\ninvoke_packed add(%c, %c, %c), outputs=0"),
            "0 outputs are declared, expected 1"));
  CHECK(Has(LinkMessage(".kernel relu = \"rewire.relu\"", "invoke_packed relu(%x, %x), outputs=0"),
            "0 outputs are declared, expected 1"));
  // Through an ADT, whose fields only the run sees.
  const std::string message =
      RunMessage(".const c: f32[4] = {1, 2, 3, 4}\n.kernel norm = \"rewire.layer_norm\"",
                 Allocated() +
                     "%c = load_const c\n%t = alloc_adt tag=0 (%x, %c)\n"
                     "invoke_packed norm(%x, %x, %x, %t, %b), outputs=1\nret %a");
  CHECK(Has(message, "6 arguments with 1 outputs given"));
}

}  // namespace
}  // namespace rewire::test
