// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/import/result_types.h"

#include <catch2/catch.hpp>
#include <string>

#include "rewire/executable_format/executable.h"
#include "rewire/executable_format/text/assembler.h"

namespace rewire::tvm {
namespace {

// The signature's result and output names after inference; the module is still one that the verifier accepts.
std::string Inferred(const std::string& text) {
  Result<Module> module = Assemble(text);
  if (!module) FAIL(module.error().message());
  InferResults(&*module);
  const Function& function = module->functions[0];
  std::string result = TypeText(function.result, {});
  for (const std::string& name : function.output_names) result += " " + name;
  const Result<Executable> executable = Executable::FromModule(*std::move(module));
  if (!executable) FAIL(executable.error().message());
  return result;
}

TEST_CASE("a tuple that every return makes becomes the result's tree") {
  CHECK(Inferred(R"(
.func main(x: value, y: value) -> out: value
  %inner = alloc_adt tag=0(%y, %x)
  %r = alloc_adt tag=0(%x, %inner)
  ret %r
.end
)") == "(value, (value, value)) out.0 out.1.0 out.1.1");
}

TEST_CASE("calls, moves, fields and arms that agree are followed") {
  CHECK(Inferred(R"(
.func main(x: value, c: i64[]) -> out: value
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %r = invoke pair(%x)
  goto done
no:
  %p = invoke pair(%x)
  %q = alloc_adt tag=1(%p, %x)
  %r = get_field %q, index=0
done:
  %s = move %r
  ret %s
.end
.func pair(x: value) -> pair: value
  %r = alloc_adt tag=0(%x, %x)
  ret %r
.end
)") == "(value, value) out.0 out.1");
}

TEST_CASE("what differs between returns stays opaque there") {
  CHECK(Inferred(R"(
.func main(x: value, c: i64[]) -> out: value
  %one = load_consti 1
  %t = alloc_adt tag=0(%x)
  if %c == %one goto yes else no
yes:
  %a = alloc_adt tag=0(%t, %t)
  ret %a
no:
  %b = alloc_adt tag=0(%t, %x)
  ret %b
.end
)") == "((value), value) out.0.0 out.1");
  CHECK(Inferred(R"(
.func main(x: value, c: i64[]) -> out: value
  %one = load_consti 1
  if %c == %one goto yes else no
yes:
  %a = alloc_adt tag=0(%x)
  ret %a
no:
  %b = alloc_adt tag=1(%x)
  ret %b
.end
)") == "value out");
}

TEST_CASE("a list that a loop or a recursion builds stays opaque") {
  CHECK(Inferred(R"(
.func main(x: value, c: i64[]) -> out: value
  %one = load_consti 1
  %list = alloc_adt tag=0()
again:
  %list = alloc_adt tag=1(%x, %list)
  if %c == %one goto again else done
done:
  ret %list
.end
)") == "adt 1 (value, value) out.0 out.1");
  CHECK(Inferred(R"(
.func main(x: value, c: i64[]) -> out: value
  %one = load_consti 1
  if %c == %one goto base else more
base:
  %nil = alloc_adt tag=0()
  ret %nil
more:
  %rest = invoke main(%x, %c)
  %cell = alloc_adt tag=1(%x, %rest)
  ret %cell
.end
)") == "value out");
}

TEST_CASE("declared results, and what a kernel or a closure returns, are left as they are") {
  CHECK(Inferred(R"(
.func main(x: f32[4]) -> (y: f32[4], z: f32[4])
  %r = alloc_adt tag=0(%x, %x)
  ret %r
.end
)") == "(f32[4], f32[4]) y z");
  CHECK(Inferred(R"(
.func main(x: value) -> y: value
  %f = alloc_closure pair(%x)
  %r = invoke_closure %f()
  ret %r
.end
.func pair(x: value) -> y: value
  %r = alloc_adt tag=0(%x, %x)
  ret %r
.end
)") == "value y");
}

}  // namespace
}  // namespace rewire::tvm
