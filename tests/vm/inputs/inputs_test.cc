// SPDX-License-Identifier: Apache-2.0
// Inputs reach the program as they lie, or as a copy for a reason that the report says.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "rewire/tests/vm/test_program.h"
#include "rewire/vm/host_function.h"

namespace rewire::test {
namespace {

// sum(x, out): adds up and notes where x lies.
constexpr char kSum[] = R"(
.kernel sum = "sum" align=ALIGN
.func main(x: f32[2, 2], t: value) -> f32[]
  %s = alloc_storage _, alignment=64, f32[], cpu
  %y = alloc_tensor %s, _, f32[]
  invoke_packed sum(%x, %y), outputs=1
  ret %y
.end)";

struct Sum {
  explicit Sum(const std::string& alignment) {
    std::string text = kSum;
    text.replace(text.find("ALIGN"), 5, alignment);
    LinkOptions options;
    options.kernels.AddFunction("sum",
                                MakePackedFunction([this](kernel::TensorView x, kernel::TensorView out) {
                                  seen = x.raw_data();
                                  *out.data<float>() = 0;
                                  for (int i = 0; i < 4; ++i) *out.data<float>() += x.data<float>()[i];
                                }));
    vm.emplace(ProgramOf(text, std::move(options)));
    vm->SetInput("t", Value(std::int64_t{1}));
  }
  float Run() {
    vm->Invoke();
    return *vm->Output().data<float>();
  }
  std::optional<VirtualMachine> vm;
  const void* seen = nullptr;
};

void CheckReport(const Sum& sum, bool copied, const std::string& reason) {
  const Result<InputReport> report = sum.vm->TryInputReport("x");
  REQUIRE(report.has_value());
  CHECK(report->copied == copied);
  CHECK(report->reason == reason);
}

const std::vector<std::int64_t> kShape = {2, 2};

TEST_CASE("a borrowed input is read where it lies when the function runs") {
  Sum sum("4");
  CHECK(MessageOf(sum.vm->TryInputReport("x")) == "function main, input 0 (x) is not set");
  float x[4] = {1, 2, 3, 4};
  sum.vm->SetInput("x", TensorView(x, {2, 2}));
  CHECK(sum.Run() == 10);
  CHECK(sum.seen == x);
  x[0] = 11;
  CHECK(sum.Run() == 20);
  CheckReport(sum, false, "");
}

TEST_CASE("an input that is taken over is not copied, and let go when it is set again") {
  Sum sum("4");
  bool released = false;
  auto owner = std::shared_ptr<float>(new float[4]{1, 2, 3, 4}, [&released](const float* memory) {
    released = true;
    delete[] memory;
  });
  const float* memory = owner.get();
  sum.vm->SetInput("x", *Tensor::Wrap(TensorView(owner.get(), {2, 2}), owner));
  owner.reset();
  CHECK(sum.Run() == 10);
  CHECK(sum.seen == memory);
  CheckReport(sum, false, "");
  CHECK_FALSE(released);
  const float other[4] = {};
  sum.vm->SetInput("x", TensorView(other, {2, 2}));
  CHECK(released);
  CHECK(sum.Run() == 0);
}

TEST_CASE("an input of another dtype of the same width is refused in every way of setting it") {
  Sum sum("4");
  float good[4] = {1, 2, 3, 4};
  std::int32_t integers[4] = {1, 2, 3, 4};
  const TensorView wrong(integers, {2, 2});
  const std::string message = "function main, input 0 (x): f32[2, 2] expected, i32[2, 2] given";
  for (bool rebound : {false, true}) {
    CAPTURE(rebound);
    if (rebound) sum.vm->SetInput("x", TensorView(good, {2, 2}));
    CHECK(MessageOf(sum.vm->TrySetInput("x", wrong)) == message);
    CHECK(MessageOf(sum.vm->TrySetInput("x", wrong, InputMode::kCopy)) == message);
    CHECK(MessageOf(sum.vm->TrySetInput("x", Value(*Tensor::Wrap(wrong, nullptr)))) == message);
  }
  CHECK(sum.Run() == 10);
}

TEST_CASE("a copied input is the caller's again at once") {
  Sum sum("4");
  float x[4] = {1, 2, 3, 4};
  sum.vm->SetInput("x", TensorView(x, {2, 2}), InputMode::kCopy);
  x[0] = 100;
  CHECK(sum.Run() == 10);
  CHECK(sum.seen != x);
  CheckReport(sum, true, "a copy was asked for");
}

TEST_CASE("strided and misaligned inputs are copied, borrowed or shared") {
  Sum sum("4");
  const float x[8] = {1, 0, 2, 0, 3, 0, 4, 0};
  const std::vector<std::int64_t> strides = {4, 2};
  const TensorView strided(const_cast<float*>(x), kFloat32, kShape, kHost, strides);
  sum.vm->SetInput("x", strided);
  CHECK(sum.Run() == 10);
  CheckReport(sum, true, "the memory is strided");
  sum.vm->SetInput("x", *Tensor::Wrap(strided, nullptr));
  CHECK(sum.Run() == 10);
  CheckReport(sum, true, "the memory is strided");

  alignas(64) char raw[32];
  const float contiguous[4] = {1, 2, 3, 4};
  std::memcpy(raw + 1, contiguous, sizeof(contiguous));
  const TensorView misaligned(raw + 1, kFloat32, kShape);
  sum.vm->SetInput("x", misaligned);
  CHECK(sum.Run() == 10);
  CheckReport(sum, true, "the memory is not aligned to its elements");
  sum.vm->SetInput("x", *Tensor::Wrap(misaligned, nullptr));
  CHECK(sum.Run() == 10);
  CheckReport(sum, true, "the memory is not aligned to its elements");
}

TEST_CASE("tensors of a tree are used where they lie, and strided ones are refused") {
  const Program program = ProgramOf(R"(
    .func main(t: (f32[2, 2], integer)) -> f32[2, 2]
      %x = get_field %t, index=0
      ret %x
    .end)");
  VirtualMachine vm(program);
  float x[8] = {1, 2, 3, 4};
  const auto tree = [](const TensorView& view) {
    const std::vector<Value> fields = {*Tensor::Wrap(view, nullptr), Value(std::int64_t{1})};
    return Value::Adt(0, fields);
  };
  REQUIRE(MessageOf(vm.TrySetInput("t", *tree(TensorView(x, {2, 2})))).empty());
  vm.Invoke();
  CHECK(vm.Output().data<float>() == x);
  const Value given = *tree(TensorView(x, {2, 2}));
  CHECK(vm.TryInvoke("main", {&given, 1})->tensor().data<float>() == x);
  const std::vector<std::int64_t> strides = {4, 2};
  CHECK(MessageOf(tree(TensorView(x, kFloat32, kShape, kHost, strides))) ==
        "ADT: field 0 is a strided tensor; copy it with Tensor::CopyOf");
}

TEST_CASE("a kernel that needs more alignment than an input has is given a copy in every run") {
  Sum sum("64");
  alignas(64) float x[8] = {0, 1, 2, 3, 4};
  sum.vm->SetInput("x", TensorView(x + 1, {2, 2}));
  CHECK(sum.Run() == 10);
  CHECK(sum.seen != x + 1);
  CheckReport(sum, false, "kernels that need memory aligned to 64 bytes are given copies, in every run");
  x[1] = 11;
  CHECK(sum.Run() == 20);
  sum.vm->SetInput("x", TensorView(x, {2, 2}));
  CHECK(sum.Run() == 16);
  CHECK(sum.seen == x);
  CheckReport(sum, false, "");
}

}  // namespace
}  // namespace rewire::test
