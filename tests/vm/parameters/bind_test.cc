// SPDX-License-Identifier: Apache-2.0
// Parameters bound at link and bound again: what is refused, whose memory is used, what is shared.
#include <catch2/catch.hpp>

#include "rewire/base/array.h"
#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/link/program_rep.h"

namespace rewire::test {
namespace {

constexpr char kThree[] = R"(
  .param weight: f32[2]
  .param bias: f32[N]
  .param scale: f32[2]
  .func main() -> (weight: f32[2], bias: f32[N], scale: f32[2])
    %w = load_const weight
    %b = load_const bias
    %s = load_const scale
    %r = alloc_adt tag=0 (%w, %b, %s)
    ret %r
  .end)";

LinkOptions With(Array<ParameterSet> sets) {
  LinkOptions options;
  options.parameters = std::move(sets);
  return options;
}

std::string LinkError(Array<ParameterSet> sets) {
  const Result<Program> program = Program::Link(ExecutableOf(kThree), With(std::move(sets)));
  if (!program) CHECK(program.error().code() == StatusCode::kLinkFailed);
  return MessageOf(program);
}

Named Three(float first = 1) {
  return {{"weight", Floats({first, 2})}, {"bias", Floats({3})}, {"scale", Floats({4, 5})}};
}

std::vector<float> Run(const Program& program, const std::string& output) {
  VirtualMachine vm(program);
  vm.Invoke();
  return FloatsOf(vm.Output(output));
}

TEST_CASE("all missing, extra and mismatched parameters are one error") {
  CHECK(LinkError({}) ==
        "parameters do not match:\n"
        "  weight: no parameter of this name given, f32[2] expected\n"
        "  bias: no parameter of this name given, f32[N] expected\n"
        "  scale: no parameter of this name given, f32[2] expected");
  Named wrong = {
      {"wieght", Floats({1, 2})}, {"bias", Ints({3})}, {"scale", Floats({4, 5, 6})}, {"z", Floats({1})}};
  CHECK(LinkError({SetOf(wrong)}) ==
        "parameters do not match:\n"
        "  weight: no parameter of this name given, f32[2] expected\n"
        "  bias: f32[N] expected, i64[1] given\n"
        "  scale: f32[2] expected, f32[3] given\n"
        "  wieght: the executable has no parameter of this name; did you mean 'weight'?\n"
        "  z: the executable has no parameter of this name");
  const std::vector<float> numbers = {1, 0, 2, 0};
  Named strided = Three();
  strided[0].second =
      *Tensor::Wrap(TensorView(const_cast<float*>(numbers.data()), kFloat32, {2}, kHost, {2}), nullptr);
  CHECK(LinkError({SetOf(strided)}) ==
        "parameters do not match:\n  weight: a strided tensor given; make it contiguous");
  CHECK(LinkError({SetOf(Three())}) == "");
}

TEST_CASE("a parameter of unknown dtype has that of the tensor that is bound") {
  constexpr char kOpen[] = R"(
    .param weight: ?[2]
    .func main() -> weight: ?[2]
      %w = load_const weight
      ret %w
    .end)";
  const Executable executable = ExecutableOf(kOpen);
  for (const auto& [tensor, dtype] : {std::pair(Floats({1, 2}), kFloat32), std::pair(Ints({3, 4}), kInt64)}) {
    const Program program = *Program::Link(executable, With({SetOf({{"weight", tensor}})}));
    VirtualMachine vm(program);
    vm.Invoke();
    CHECK(DTypeName(vm.Output("weight").dtype()) == DTypeName(dtype));
  }
  // Its shape is not unknown.
  const Result<Program> longer = Program::Link(executable, With({SetOf({{"weight", Floats({1, 2, 3})}})}));
  CHECK(MessageOf(longer) == "parameters do not match:\n  weight: ?[2] expected, f32[3] given");
}

TEST_CASE("of several sets the last one with a name counts, and what is extra can be left alone") {
  const Folder folder;
  Named file = Three(8);
  file.emplace_back("other model's", Floats({1}));
  const ParameterSet opened = *ParameterSet::Open(WriteSafetensorsFile(folder / "p", file));
  LinkOptions options = With({opened, SetOf({{"bias", Floats({30, 31})}})});
  CHECK(MessageOf(Program::Link(ExecutableOf(kThree), options)) ==
        "parameters do not match:\n  other model's: the executable has no parameter of this name");
  options.ignore_extra_parameters = true;
  const Program program = ProgramOf(kThree, options);
  CHECK(Run(program, "weight") == std::vector<float>{8, 2});
  CHECK(Run(program, "bias") == std::vector<float>{30, 31});
  // In the file's memory.
  CHECK(AddressIn(program, "weight") == At(opened, "weight").view().data());
}

TEST_CASE("a Program gives its parameters and constants to others, which need it no more") {
  std::optional<Program> donor =
      ProgramOf(R"(
    .const scale: f32[2] = {4, 5}
    .param weight: f32[2]
    .param unused: f32[1]
    .func main() -> y: f32[2]
      %w = load_const weight
      ret %w
    .end)",
                With({SetOf({{"weight", Floats({6, 7})}, {"unused", Floats({1})}})}));
  const void* weight = AddressIn(*donor, "weight");
  const void* scale = AddressIn(*donor, "scale");
  const Program program = ProgramOf(kThree, With({ParameterSet::Of(*donor), SetOf({{"bias", Floats({3})}})}));
  donor.reset();
  CHECK(AddressIn(program, "weight") == weight);
  CHECK(AddressIn(program, "scale") == scale);
  CHECK(Run(program, "weight") == std::vector<float>{6, 7});
  CHECK(Run(program, "scale") == std::vector<float>{4, 5});
}

TEST_CASE("what __init computes is what the constant's type says") {
  constexpr char kText[] = R"(
    .computed packed: f32[?]
    .kernel make = "host.make"
    .func __init() -> (f32[?])
      %p = invoke_packed make(), outputs=0
      %r = alloc_adt tag=0 (%p)
      ret %r
    .end
    .func main() -> y: f32[?]
      %p = load_const packed
      ret %p
    .end)";
  const auto link = [&kText](Value made) {
    LinkOptions options;
    options.kernels.AddFunction("host.make",
                                Packed(
                                    [](void* value, const RewireFFIAny*, std::int32_t, RewireFFIAny* result) {
                                      *result = static_cast<Value*>(value)->any();
                                      ObjectOf(*result)->AddStrong();
                                      return 0;
                                    },
                                    &made));
    return Program::Link(ExecutableOf(kText), std::move(options));
  };
  const Result<Program> good = link(Floats({1, 2, 3}));
  REQUIRE(MessageOf(good) == "");
  CHECK(Run(*good, "y") == std::vector<float>{1, 2, 3});
  const Result<Program> other = link(Ints({1, 2}));
  CHECK(MessageOf(other) == "computed constant packed: f32[?] expected, i64[2] given");
  const std::int32_t same_width[2] = {1, 2};
  CHECK(MessageOf(link(*Tensor::Wrap(TensorView(same_width, {2}), nullptr))) ==
        "computed constant packed: f32[?] expected, i32[2] given");
}

TEST_CASE("binding other parameters makes another Program that shares everything else") {
  int made = 0;
  LinkOptions options =
      With({SetOf({{"w", Floats({1, 2})}, {"v", Floats({10, 20})}, {"after", Floats({0, 0})}})});
  options.kernels.AddFunction(
      "host.add",
      MakePackedFunction([&made](kernel::TensorView a, kernel::TensorView b, kernel::TensorView out) {
        ++made;
        for (int i = 0; i < 2; ++i) out.data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
      }));
  const char* const text = R"(
    .const c: f32[2] = {100, 200}
    .param w: f32[2]
    .param v: f32[2]
    .param after: f32[2]
    .computed sum: f32[2]
    .kernel add = "host.add"
    .func load_v() -> f32[2]
      %v = load_const v
      ret %v
    .end
    .func __init() -> (f32[2])
      %w = load_const w
      %v = invoke load_v()
      %s = alloc_storage _, alignment=64, f32[2], cpu
      %y = alloc_tensor %s, _, f32[2]
      invoke_packed add(%w, %v, %y), outputs=1
      %r = alloc_adt tag=0 (%y)
      ret %r
    .end
    .func main() -> (sum: f32[2], c: f32[2], after: f32[2])
      %s = load_const sum
      %c = load_const c
      %a = load_const after
      %r = alloc_adt tag=0 (%s, %c, %a)
      ret %r
    .end)";
  std::optional<Program> first = ProgramOf(text, options);
  CHECK(Run(*first, "sum") == std::vector<float>{11, 22});

  const Result<Program> second = first->Rebind({SetOf({{"w", Floats({3, 4})}})});
  REQUIRE(MessageOf(second) == "");
  CHECK(made == 2);
  CHECK(Run(*second, "sum") == std::vector<float>{13, 24});
  CHECK(Run(*first, "sum") == std::vector<float>{11, 22});
  CHECK(second->executable() == first->executable());
  CHECK(second->rep().code == first->rep().code);
  for (const char* shared : {"c", "v"}) CHECK(AddressIn(*second, shared) == AddressIn(*first, shared));

  // A parameter that `__init` does not load is bound anew without it, and what it made is shared.
  const Result<Program> third = second->Rebind({SetOf({{"after", Floats({5, 6})}})});
  REQUIRE(MessageOf(third) == "");
  CHECK(made == 2);
  CHECK(Run(*third, "sum") == std::vector<float>{13, 24});
  CHECK(Run(*third, "after") == std::vector<float>{5, 6});
  CHECK(AddressIn(*third, "sum") == AddressIn(*second, "sum"));
  // Neither is one that lies where it lay, given anew by a set.
  const Result<Program> same = third->Rebind({ParameterSet::Of(*third)});
  REQUIRE(MessageOf(same) == "");
  CHECK(made == 2);
  CHECK(AddressIn(*same, "sum") == AddressIn(*third, "sum"));
  // A parameter that it loads by a function that it calls counts.
  const Result<Program> fourth = third->Rebind({SetOf({{"v", Floats({1, 1})}})});
  REQUIRE(MessageOf(fourth) == "");
  CHECK(made == 3);
  CHECK(Run(*fourth, "sum") == std::vector<float>{4, 5});
  CHECK(Run(*third, "sum") == std::vector<float>{13, 24});

  CHECK(MessageOf(first->Rebind({SetOf({{"ww", Floats({3, 4})}, {"v", Floats({3})}})})) ==
        "parameters do not match:\n  v: f32[2] expected, f32[1] given\n"
        "  ww: the executable has no parameter of this name; did you mean 'w'?");
  first.reset();
  CHECK(Run(*second, "sum") == std::vector<float>{13, 24});
  CHECK(Run(*second, "c") == std::vector<float>{100, 200});
}

}  // namespace
}  // namespace rewire::test
