// SPDX-License-Identifier: Apache-2.0
// Every check that the interpreter makes while it runs, with its exact message; and the VM is usable after
// it.
#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/objects.h"

namespace rewire::test {
namespace {

// The text before each function under test.
constexpr char kHead[] = R"(
  .const f: f32[2] = {1, 2}
  .const matrix: i64[1, 1] = {{3}}
  .const shape: i64[2] = {2, -1}
  .const huge: i64[2] = {4611686018427387904, 4}
  .const long: i32[33] = fill 1
  .const floats: f32[2] = {1, 1}
  .kernel none = "host.nothing"
  .kernel odd = "host.odd"
  .kernel nested = "host.nested"
  .kernel fail = "host.fail"
  .kernel silent = "host.silent"
  .kernel adt = "host.nothing" objects
  .func identity(x: value) -> value
    ret %x
  .end
  .func good() -> integer
    %one = load_consti 1
    ret %one
  .end
)";

LinkOptions Kernels() {
  LinkOptions options;
  PackedFunction odd;
  odd.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
    *result = RewireFFIAny{};
    result->type_index = kRewireFFISmallStr;  // of no bytes
    return 0;
  };
  options.kernels.AddFunction("host.odd", odd);
  PackedFunction nested;
  nested.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
    // An array as tvm-ffi lays it out, in static memory with a reference that is never the last.
    struct Array {
      RewireFFIObject header;
      RewireFFISeqCell cell;
    };
    static RewireFFIAny item;
    static Array inner{{kNewObjectCount + 1000, kRewireFFIArray, 0, nullptr}, {nullptr, 0, 0, nullptr}};
    static Array outer{{kNewObjectCount + 1000, kRewireFFIArray, 0, nullptr}, {&item, 1, 1, nullptr}};
    item = MakeAny(kRewireFFIArray, &inner);
    *result = MakeAny(kRewireFFIArray, &outer);
    return 0;
  };
  options.kernels.AddFunction("host.nested", nested);
  PackedFunction silent;
  silent.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return -1; };
  options.kernels.AddFunction("host.silent", silent);
  options.kernels.AddFunction("host.fail", MakePackedFunction([]() -> kernel::Status {
                                return kernel::ValueError("the axis is ", 7);
                              }));
  PackedFunction nothing;
  nothing.call = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) { return 0; };
  options.kernels.AddFunction("host.nothing", nothing);
  return options;
}

struct Case {
  const char* body;     // of main() -> value
  const char* message;  // after "main@<pc> (<instruction>): "
  StatusCode code = StatusCode::kRuntimeFailed;
};

// `value` hides what a register holds from the verifier: the check is left to the run.
const Case kCases[] = {
    {R"(%t = load_const f
        %v = invoke identity(%t)
        %r = get_field %v, index=0)",
     "main@8 (%2 = get_field %1, index=0): %1 holds a tensor f32[2], an ADT is expected"},
    {R"(%i = load_consti 5
        %v = invoke identity(%i)
        %r = get_tag %v)",
     "main@9 (%2 = get_tag %1): %1 holds the integer 5, an ADT is expected"},
    {R"(%a = alloc_adt tag=2 ()
        %v = invoke identity(%a)
        %r = shape_of %v)",
     "main@9 (%2 = shape_of %1): %1 holds an ADT with tag 2 and 0 fields, a tensor is expected"},
    {R"(%c = alloc_closure identity()
        %v = invoke identity(%c)
        %s = load_const matrix
        %r = reshape_tensor %v, %v)",
     "main@12 (%3 = reshape_tensor %1, %1): %1 holds a closure, a tensor is expected"},
    {R"(%s = alloc_storage _, alignment=64, f32[2], cpu
        %v = invoke identity(%s)
        %r = invoke_closure %v())",
     "main@14 (%2 = invoke_closure %1()): %1 holds a storage, a closure is expected"},
    {R"(%t = load_const f
        %v = invoke identity(%t)
        %r = alloc_tensor %v, _, f32[2])",
     "main@8 (%2 = alloc_tensor %1, _, f32[2]): %1 holds a tensor f32[2], a storage is expected"},
    {R"(%i = load_consti 1
        %a = alloc_adt tag=9 (%i)
        %r = get_field %a, index=3)",
     "main@9 (%2 = get_field %1, index=3): field 3 asked for, the ADT (tag 9) has 1 fields"},
    {R"(fatal "the batch is too large")",
     "main@0 (fatal \"the batch is too large\"): the program stopped itself: the batch is too large"},
    {R"(fatal)", "main@0 (fatal _): the program stopped itself"},
    {R"(%n = load_consti -8
        %r = alloc_storage %n, alignment=64, f32, cpu)",
     "main@4 (%1 = alloc_storage %0, alignment=64, f32, cpu): a storage of -8 bytes asked for"},
    {R"(%n = load_const f
        %r = alloc_storage %n, alignment=64, f32, cpu)",
     "main@3 (%1 = alloc_storage %0, alignment=64, f32, cpu): size is a tensor f32[2], an integer scalar is "
     "expected"},
    {R"(%s = alloc_storage _, alignment=64, f32[2], cpu
        %o = load_consti 4
        %r = alloc_tensor %s, %o, f32[2])",
     "main@13 (%2 = alloc_tensor %0, %1, f32[2]): f32[2] at offset 4 takes 8 bytes, the storage has 8"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %o = load_consti 2
        %r = alloc_tensor %s, %o, f32[2])",
     "main@13 (%2 = alloc_tensor %0, %1, f32[2]): offset 2 is no multiple of the 4 bytes of an element"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %o = load_consti -4
        %r = alloc_tensor %s, %o, f32[2])",
     "main@13 (%2 = alloc_tensor %0, %1, f32[2]): f32[2] at offset -4 takes 8 bytes, the storage has 16"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %d = load_const shape
        %r = alloc_tensor_reg %s, _, %d, f32)",
     "main@12 (%2 = alloc_tensor_reg %0, _, %1, f32): a dimension of shape [2, -1] is negative, or its size "
     "overflows"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %d = load_const huge
        %r = alloc_tensor_reg %s, _, %d, f32)",
     "main@12 (%2 = alloc_tensor_reg %0, _, %1, f32): a dimension of shape [4611686018427387904, 4] is "
     "negative, or its size overflows"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %d = load_const matrix
        %r = alloc_tensor_reg %s, _, %d, f32)",
     "main@12 (%2 = alloc_tensor_reg %0, _, %1, f32): the shape is a tensor i64[1, 1], int32 or int64 of "
     "rank "
     "1 with at most 32 elements is expected"},
    {R"(%s = alloc_storage _, alignment=64, f32[4], cpu
        %d = load_const long
        %r = alloc_tensor_reg %s, _, %d, f32)",
     "main@12 (%2 = alloc_tensor_reg %0, _, %1, f32): the shape is a tensor i32[33], int32 or int64 of rank "
     "1 "
     "with at most 32 elements is expected"},
    {R"(%t = load_const f
        %d = load_const shape
        %r = reshape_tensor %t, %d)",
     "main@6 (%2 = reshape_tensor %0, %1): a tensor f32[2] has 2 elements, shape [2, -1] has a negative "
     "dimension, or more than 64 bits can count"},
    {R"(%t = load_const f
        %d = load_consti 3
        %r = reshape_tensor %t, %d)",
     "main@7 (%2 = reshape_tensor %0, %1): a tensor f32[2] has 2 elements, shape [3] has 3"},
    {R"(%t = load_const f
        %d = load_const floats
        %r = reshape_tensor %t, %d)",
     "main@6 (%2 = reshape_tensor %0, %1): the shape is a tensor f32[2], int32 or int64 of rank 1 with at "
     "most 32 elements is expected"},
    {R"(%t = load_const f
        %i = load_consti 1
        if %t == %i goto yes else yes
      yes:
        %r = move %i)",
     "main@7 (if %0 == %1 goto L12 else L12): test is a tensor f32[2], an integer scalar is expected"},
    {R"(%a = alloc_adt tag=0 ()
        %v = invoke identity(%a)
        %i = load_consti 1
        if %i == %v goto yes else yes
      yes:
        %r = move %i)",
     "main@13 (if %2 == %1 goto L18 else L18): target is no integer scalar"},
    {R"(%a = alloc_adt tag=0 ()
        %v = invoke identity(%a)
        %r = invoke_packed none(%v), outputs=1)",
     "main@9 (%2 = invoke_packed none(%1), outputs=1): 1 outputs declared, 0 arguments given after ADTs were "
     "flattened"},
    {R"(%a = alloc_adt tag=0 ()
        %b = alloc_adt tag=0 (%a)
        %v = invoke identity(%b)
        %r = invoke_packed none(%v), outputs=0)",
     "main@14 (%3 = invoke_packed none(%2), outputs=0): field 0 of an ADT argument is an ADT itself; only "
     "one "
     "level is flattened"},
    {R"(%c = alloc_closure identity()
        %v = invoke identity(%c)
        %r = invoke_packed none(%v), outputs=0)",
     "main@9 (%2 = invoke_packed none(%1), outputs=0): argument 0 is a closure or a storage, which kernels "
     "do "
     "not take"},
    {R"(%r = invoke_packed none(), outputs=0)",
     "main@0 (%0 = invoke_packed none(), outputs=0): the kernel returned nothing, a value is expected"},
    {R"(%r = invoke_packed odd(), outputs=0)",
     "main@0 (%0 = invoke_packed odd(), outputs=0): the kernel returned a value of type string; a tensor, a "
     "number or an array is expected"},
    {R"(%r = invoke_packed nested(), outputs=0)",
     "main@0 (%0 = invoke_packed nested(), outputs=0): the kernel returned an array inside an array; only "
     "one "
     "level is taken"},
    {R"(%r = invoke_packed fail(), outputs=0)",
     "main@0 (%0 = invoke_packed fail(), outputs=0): ValueError: the axis is 7", StatusCode::kKernelFailed},
    {R"(%r = invoke_packed silent(), outputs=0)",
     "main@0 (%0 = invoke_packed silent(), outputs=0): the kernel failed and set no error message",
     StatusCode::kKernelFailed},
};

TEST_CASE("run-time errors name the place, what is expected and what is given") {
  for (const Case& wrong : kCases) {
    CAPTURE(wrong.body);
    const bool ends = std::string(wrong.body).rfind("fatal", 0) == 0;
    VirtualMachine vm(ProgramOf(
        std::string(kHead) + ".func main() -> value\n" + wrong.body + (ends ? "\n.end" : "\nret %r\n.end"),
        Kernels()));
    const std::uint64_t before = vm.bytes_held();
    const Status status = vm.TryInvoke("main");
    REQUIRE_FALSE(status);
    CHECK(status.error().message() == wrong.message);
    CHECK(status.error().code() == wrong.code);
    CHECK(MessageOf(vm.TryOutput(0)) == "there is no result yet; invoke first");
    REQUIRE(MessageOf(vm.TryInvoke("good")).empty());
    CHECK(vm.result().integer() == 1);
    vm.Trim();
    CHECK(vm.bytes_held() == before);
  }
}

TEST_CASE("a failed run leaves no result, a call that is refused leaves the one before") {
  VirtualMachine vm(ProgramOf(R"(
    .func good() -> value
      %r = load_consti 1
      ret %r
    .end
    .func bad() -> value
      fatal
    .end
    .func needs(x: value) -> value
      ret %x
    .end)"));
  REQUIRE(MessageOf(vm.TryInvoke("good")).empty());
  CHECK_FALSE(vm.TryInvoke("needs"));
  CHECK_FALSE(vm.TryInvoke("none"));
  CHECK(vm.result().integer() == 1);
  CHECK_FALSE(vm.TryInvoke("bad"));
  CHECK(vm.result().kind() == ValueKind::kNone);
  CHECK(MessageOf(vm.TryOutput(0)) == "there is no result yet; invoke first");
}

TEST_CASE("source notes stand in the message, and callers unwind") {
  VirtualMachine vm(ProgramOf(R"(
    .func main(x: value) -> value
      %r = invoke inner(%x)
      ret %r
    .end
    .func inner(x: value) -> value
      %keep = alloc_adt tag=0 (%x)
      %r = get_field %keep, index=1 @ "Gather_7"
      ret %r
    .end)"));
  const Value x = Floats({1});
  const std::string message =
      "inner@5 (%2 = get_field %1, index=1) [Gather_7]: field 1 asked for, the ADT (tag 0) has 1 fields";
  for (int i = 0; i < 3; ++i) CHECK(MessageOf(vm.TryInvoke("main", {&x, 1})) == message);
}

}  // namespace
}  // namespace rewire::test
