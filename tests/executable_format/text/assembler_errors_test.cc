// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/executable_format/text/assembler.h"

namespace rewire {
namespace {

std::string MessageOf(const std::string& text, std::size_t max_errors = 20) {
  AssembleOptions options;
  options.file_name = "t.asm";
  options.max_errors = max_errors;
  const Result<Module> module = Assemble(text, options);
  if (module) return "no error";
  CHECK(module.error().code() == StatusCode::kInvalidArgument);
  return module.error().message();
}

struct Case {
  std::string line;
  std::string message;  // behind "t.asm:"
};

// One line of a device kernel that reads x and writes y, with what follows its name.
std::string KernelLine(const std::string& rest) {
  return ".device_kernel k(x: f32[n] on cuda) -> (y: f32[n] on cuda) = code " + rest;
}

TEST_CASE("mistakes in device code") {
  const std::vector<Case> cases = {
      {".code c: u8[1] = text \"a\"", "1:8: expected '=', got ':'"},
      {".code c = {1}", "1:11: expected code: @file, text {...}, base64 or stored, got '{'"},
      {".code c = text {1}", "1:17: expected source text in quotes, got '1'"},
      {".code c = base64 \"?\"", "1:18: this is not base64 with padding"},
      {".device_code c opencl = c",
       "1:16: expected a form: opencl_c, spirv, cuda_cpp, ptx, cubin or fatbin, got 'opencl'"},
      {".device_code c ptx = c", "1:22: no constant 'c' is declared with .const, .param or .computed"},
      {".device_kernel k(x: value) -> () = c k groups(1) threads(1) args()",
       "1:21: a device kernel's parameter is a tensor"},
      {KernelLine("k threads(1)"), "1:69: expected 'groups', got 'threads'"},
      {KernelLine("k groups(1, 2, 3, 4)"), "1:83: expected ')', for there are three dimensions, got ','"},
      {KernelLine("k groups(\"x\" 1)"), "1:80: expected ',' or ')', got '1'"},
      {KernelLine("k groups(*)"),
       "1:76: expected a size: a number, a dimension's name, or an operation such as ceildiv(n, 64), got "
       "'*'"},
      {KernelLine("k groups(celdiv(n, 64))"),
       "1:76: sizes have no operation 'celdiv'; did you mean 'ceildiv'?"},
      {KernelLine("k groups(add(n))"), "1:81: expected ',', got ')'"},
      {KernelLine("k groups(1) threads(1) args(z)"), "1:95: the kernel has no parameter 'z'"},
      {KernelLine("k groups(1) threads(1) args(x y)"), "1:97: expected ',' or ')', got 'y'"},
      {KernelLine("k groups(1) threads(1) args(f32 x)"), "1:99: 'x' is no f64 value"},
  };
  for (const Case& each : cases) CHECK(MessageOf(each.line) == "t.asm:" + each.message);
  std::string deep = "1";
  for (int i = 0; i < 17; ++i) deep = "add(1, " + deep + ")";
  CHECK_THAT(MessageOf(KernelLine("k groups(" + deep + ")")),
             Catch::Contains("a size is nested more than 16 deep"));
}

TEST_CASE("mistakes in declarations") {
  const std::vector<Case> cases = {
      {"x", "1:1: expected a directive such as .func; instructions stand between .func and .end, got 'x'"},
      {".kernl a", "1:1: unknown directive '.kernl'; did you mean '.kernel'?"},
      {".end", "1:1: '.end' without '.func'"},
      {".metadata producer", "1:19: expected a value in quotes, got the end of the line"},
      {".metadata a \"b\" c", "1:17: expected the end of the line, got 'c'"},
      {".device 7", "1:9: expected a device such as cpu or cuda:0, got '7'"},
      {".device gpu = cuda:x", "1:20: expected the device's number, got 'x'"},
      {".device cuda:99999999999", "1:14: a device's number has 32 bits"},
      {".device a = cuda\n.device a = cuda:1", "2:9: device 'a' is declared twice"},
      {".symbol", "1:8: expected a symbol, got the end of the line"},
      {".string x", "1:9: expected a text in quotes, got 'x'"},
      {".kernel", "1:8: expected a kernel's name, got the end of the line"},
      {".kernel k = \"x\" {a=1, a=2}", "1:23: attribute 'a' is given twice"},
      {".kernel k = \"x\" {a=b}",
       "1:20: 'b' is no attribute value: expected a 64-bit integer, a float such as 1.0, a text in quotes or "
       "a list "
       "of numbers"},
      {".kernel k = \"x\" {a=[1, 2.0]}", "1:20: a list holds integers or floats, not both; write 1.0 for 1"},
      {".kernel k = \"x\" {a=1 b=2}", "1:22: expected ',' or '}', got 'b'"},
      {".kernel k = \"x\" fast",
       "1:17: expected objects, in_place, align=, flags=, writes(...) or the end of the line, got 'fast'"},
      {".kernel k = \"x\" align=-1", "1:23: expected an alignment in bytes, got '-1'"},
      {".kernel a\n.kernel a", "2:9: kernel 'a' is declared twice"},
      {".kernel #1 \"x\"", "1:9: this is entry #0 of its table, not #1"},
      {".const w: f32[2] = {1, 2\n.kernel k", "1:25: expected ',' or '}', got the end of the line"},
      {".const w = {1}", "1:10: expected ':', got '='"},
      {".const w: f32 = {1}", "1:15: expected '[' (a shape; [] for a scalar, [*] for any rank), got '='"},
      {".const w: valeu = {1}",
       "1:11: expected a type such as f32[N, 4], value or (f32[2], i64[]), got 'valeu'; did you mean "
       "'value'?"},
      {".const w: value = {1}", "1:11: a constant is a tensor"},
      {".const w: f32[N] = {1}", "1:20: data needs a tensor type with a dtype and static dimensions"},
      {".const w: f32[-1] = {1}", "1:15: a dimension cannot be negative"},
      {".const w: f32[2 3] = {1}", "1:17: expected ',' or ']', got '3'"},
      {".const w: f32[2] = 1", "1:20: expected data: {...}, zeros, fill, @file or base64, got '1'"},
      {".const w: f32[2] = {1}", "1:20: f32[2] has 2 elements, 1 are given"},
      {".const w: f32[2] = {{1}, {2}}", "1:21: expected an element of f32[2], got '{'"},
      {".const w: f32[2, 2] = {{1, 2}, {3}}", "1:34: dimension 1 of f32[2, 2] is 2, this group has 1"},
      {".const w: f32[2, 2] = {{1, 2}, 3, 4}",
       "1:32: expected '{', for the data is nested and f32[2, 2] has rank 2, got '3'"},
      {".const w: f32[2, 2] = {{1, 2}}", "1:30: dimension 0 of f32[2, 2] is 2, this group has 1"},
      {".const w: i8[2] = {1, 300}", "1:23: '300' does not fit i8"},
      {".const w: i8[2] = {1, 2.5}", "1:23: '2.5' is no i8 value"},
      {".const w: c64[1] = {1}", "1:20: c64 elements cannot be written as text; give base64 or a file"},
      {".const w: f32[1] = base64 \"AAAA\"", "1:27: f32[1] has 4 bytes, 3 are given"},
      {".const w: f32[1] = base64 \"AAA\"", "1:27: this is not base64 with padding"},
      {".const w: f32[1] codec=gzip = {1}", "1:24: expected zstd, none or a codec's number, got 'gzip'"},
      {".const w: f32[1] codec=300 = {1}", "1:30: codec 300 is the host's: give its bytes with 'stored'"},
      {".const w: f32[1000000, 1000000] = zeros",
       "1:35: f32[1000000, 1000000] has 4000000000000 bytes; put more than 1073741824 in a file"},
      {".const w: f32[1000000000000, 1000000000000] = zeros",
       "1:47: f32[1000000000000, 1000000000000] has more bytes than 64 bits can count"},
      {".const w: f32[1] = {1}\n.param w: f32[1]", "2:8: constant 'w' is declared twice"},
      {".func f(a: value) value\n.end", "1:19: expected '->', got 'value'"},
      {".func f(a: value, a: value) -> value\n.end", "1:19: two inputs are named 'a'"},
      {".func f(a: value -> value\n.end", "1:18: expected ',' or ')', got '->'"},
      {".func f() -> x: (value)\n.end", "1:14: only the leaves of a result have names, not a tuple"},
      {".func f() -> (value\n.end", "1:20: expected ',' or ')', got the end of the line"},
      {".func f() -> value extra\n.end", "1:20: expected the end of the line, got 'extra'"},
      {".func f() -> adt (value)\n.end", "1:18: expected the ADT's tag, a number, got '('"},
      {".func f() -> value\n", "2:1: function 'f' has no .end before this"},
      {".func f() -> value\n.func g() -> value\n.end", "2:1: function 'f' has no .end before this"},
      {".func f() -> value\n.end\n.func f() -> value\n.end", "3:7: function 'f' is declared twice"},
      {".metadata a \"b", "1:13: this string has no closing '\"' on its line"},
      {R"(.metadata a "\q")", R"(1:14: unknown escape; a string knows \" \\ \n \t \r and \xHH)"},
      {".metadata a \"b\\", "1:13: this string has no closing '\"' on its line"},
      {"\"\\", "1:1: this string has no closing '\"' on its line"},
      {"!", "1:1: unexpected character '!'"},
      {"\xc3\xa4", "1:1: unexpected byte 0xc3 outside a string"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line);
    const std::string message = MessageOf(c.line);
    // A broken string or signature may bring other reports; what matters is that the first says what is
    // wrong.
    CHECK(message.substr(0, message.find('\n')) == "t.asm:" + c.message);
  }
}

TEST_CASE("mistakes in instructions") {
  const std::vector<Case> cases = {
      {"%x = mvoe %a", "6: unknown instruction 'mvoe'; did you mean 'move'?"},
      {"= move %a", "1: expected an instruction, got '='"},
      {"move %a", "1: move gives a result; write '%dst = move ...'"},
      {"%x = ret %a", "1: ret gives no result; write it without '='"},
      {"%x ret %a", "4: expected '=', got 'ret'"},
      {"ret a", "5: expected a register such as %x, got 'a'"},
      {"ret %4294967295", "5: expected a register such as %x or %7, got '%4294967295'"},
      {"ret %", "5: expected a register such as %x or %7, got '%'"},
      {"ret %imgae", "5: %imgae is read, but nothing writes it; did you mean 'image'?"},
      {"ret %a %a", "8: expected the end of the line, got '%a'"},
      {"%x = load_const ww",
       "17: no constant 'ww' is declared with .const, .param or .computed; did you mean 'w'?"},
      {"invoke_packed ad(%a), outputs=1", "15: no kernel 'ad' is declared with .kernel; did you mean 'add'?"},
      {"%x = invoke g(%a)", "13: no function 'g' is declared with .func"},
      {"invoke_packed add(%a)", "22: expected ',', got the end of the line"},
      {"invoke_packed add(%a), 1", "24: expected 'outputs=', got '1'"},
      {"invoke_packed add(%a), outputs=-1", "32: expected an unsigned 32-bit number, got '-1'"},
      {"invoke_packed add(%a %a), outputs=1", "22: expected ',' or ')', got '%a'"},
      {"%x = load_consti 9223372036854775808", "18: expected a 64-bit number, got '9223372036854775808'"},
      {"%x = alloc_tensor %a, f32[2]", "23: expected a register such as %x, got 'f32'"},
      {"%x = alloc_tensor %a, _, q32[2]", "26: expected an element type such as f32, got 'q32'"},
      {"%x = alloc_tensor %a, _, f32[N]", "30: expected a dimension, a number, got 'N'"},
      {"%x = device_copy %a, cpu, tpu", "27: expected a device such as cpu or cuda:0, got 'tpu'"},
      {"goto nowhere", "6: label 'nowhere' is not defined in function 'f'"},
      {"goto 4", "6: expected a label, got '4'"},
      {"goto +99999999999", "6: a distance has 32 bits"},
      {"if %a = %a goto x else x", "7: expected '==', got '='"},
      {"if %a == %a goto x", "19: expected 'else', got the end of the line"},
      {"fatal stop", "7: expected a text in quotes, got 'stop'"},
      {"ret %a @ note", "10: expected a note in quotes, got 'note'"},
      {".registers x", "12: expected the number of registers, got 'x'"},
      {".words 1, 0x100000000", "11: expected a 32-bit word, got '0x100000000'"},
      {".worlds 1", "1: unknown directive '.worlds' inside a function; did you mean '.words'?"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.line);
    const std::string text =
        ".kernel add = \"rewire.add\"\n.const w: f32[1] = {1}\n"
        ".func f(a: value, image: value) -> value\n" +
        c.line + "\n.end\n";
    CHECK(MessageOf(text) == "t.asm:4:" + c.message);
  }
  CHECK(MessageOf(".func f(a: value) -> value\nx:\nx: ret %a\n.end") ==
        "t.asm:3:1: label 'x' is defined twice");
}

TEST_CASE("several mistakes are reported at once, in the order of the text") {
  CHECK(MessageOf(R"(.func f(a: value) -> value
  %x = mvoe %a
  ret a
.end
.kernl k
)") == "t.asm:2:8: unknown instruction 'mvoe'; did you mean 'move'?\n"
       "t.asm:3:7: expected a register such as %x, got 'a'\n"
       "t.asm:5:1: unknown directive '.kernl'; did you mean '.kernel'?");
}

TEST_CASE("the number of reports is limited") {
  const std::string message = MessageOf(".a\n.b\n.c\n.d\n", 3);
  CHECK(message ==
        "t.asm:1:1: unknown directive '.a'\nt.asm:2:1: unknown directive '.b'\nt.asm:3:1: unknown directive "
        "'.c'\n"
        "t.asm: stopped after 3 errors");
}

}  // namespace
}  // namespace rewire
