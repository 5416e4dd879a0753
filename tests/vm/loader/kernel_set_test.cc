// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/kernel_set.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rewire/base/array.h"
#include "rewire/vm/host_function.h"
#include "rewire/vm/kernel/attributes.h"
#include "rewire/vm/kernel/define.h"

// As a kernel library does that is linked into a program: its variable and the VM's become one.
REWIRE_KERNEL_LIBRARY;

namespace rewire {
namespace {

KernelImport Import(std::string name, Array<Attribute> attributes = {}) {
  KernelImport import;
  import.name = std::move(name);
  import.attributes = std::move(attributes);
  return import;
}

RewireFFIAny Int(std::int64_t value) {
  RewireFFIAny any{};
  any.type_index = kRewireFFIInt;
  any.v_int64 = value;
  return any;
}

// Calls a function of two integers; -1 when it fails.
std::int64_t Call(const PackedFunction& function, std::int64_t a, std::int64_t b) {
  const RewireFFIAny args[] = {Int(a), Int(b)};
  RewireFFIAny result{};
  return function.call(function.handle, args, 2, &result) == 0 ? result.v_int64 : -1;
}

std::string MessageOf(const Result<PackedFunction>& result) {
  return result ? "no error" : result.error().message();
}

// A kernel with every kind of attribute: what it computes shows what it was given.
struct Weighted {
  static constexpr const char kName[] = "test.weighted";
  std::int64_t total = 0;

  static kernel::Status Make(kernel::Attributes& attributes, Weighted* weighted) {
    weighted->total = attributes.Int("int", 0) + static_cast<std::int64_t>(attributes.Float("float", 0)) +
                      static_cast<std::int64_t>(attributes.String("string", "").size());
    for (std::int64_t value : attributes.Ints("ints", {})) weighted->total += value;
    for (double value : attributes.Floats("floats", {})) weighted->total += static_cast<std::int64_t>(value);
    return {};
  }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return total * a + b; }
};

struct Plus {
  static constexpr const char kName[] = "test.plus";
  std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};

const RewireKernelEntry kEntries[] = {kernel::Entry<Weighted>(), kernel::Entry<Plus>()};
const RewireKernelTable kTable = kernel::Table(kEntries);

TEST_CASE("a lambda becomes a kernel with typed arguments") {
  KernelSet kernels;
  kernels.AddFunction("test.add", MakePackedFunction([](std::int64_t a, std::int64_t b) { return a + b; }));
  const Result<PackedFunction> add = kernels.Resolve(Import("test.add"));
  REQUIRE(add);
  CHECK(Call(*add, 40, 2) == 42);

  const RewireFFIAny one = Int(1);
  RewireFFIAny result{};
  CHECK(add->call(add->handle, &one, 1, &result) == -1);
  CHECK(TakeErrorText(*add) == "TypeError: expected 2 arguments, got 1");
  CHECK(TakeErrorText(*add) == "it failed without setting an error");
}

std::int64_t Difference(std::int64_t a, std::int64_t b) { return a - b; }

TEST_CASE("a function, its address, an object and a lambda become the same kernel") {
  const auto minus = [](const KernelSet& kernels) {
    const Result<PackedFunction> function = kernels.Resolve(Import("test.minus"));
    REQUIRE(function);
    CHECK(Call(*function, 40, -2) == 42);
    const RewireFFIAny one = Int(1);
    RewireFFIAny result{};
    CHECK(function->call(function->handle, &one, 1, &result) == -1);
    CHECK(TakeErrorText(*function) == "TypeError: expected 2 arguments, got 1");
  };
  struct Object {
    std::int64_t sign;
    std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + sign * b; }
  };
  std::int64_t (*const address)(std::int64_t, std::int64_t) = &Difference;
  KernelSet by_function, by_address, by_object, by_lambda;
  by_function.AddFunction("test.minus", MakePackedFunction(Difference));
  by_address.AddFunction("test.minus", MakePackedFunction(address));
  by_object.AddFunction("test.minus", MakePackedFunction(Object{-1}));
  by_lambda.AddFunction("test.minus",
                        MakePackedFunction([](std::int64_t a, std::int64_t b) { return a - b; }));
  for (const KernelSet* kernels : {&by_function, &by_address, &by_object, &by_lambda}) minus(*kernels);
}

TEST_CASE("a lambda's captures live as long as a function made from it") {
  auto state = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = state;
  PackedFunction function;
  {
    KernelSet kernels;
    kernels.AddFunction("f",
                        MakePackedFunction([state](std::int64_t a, std::int64_t) { return a * *state; }));
    state.reset();
    function = *kernels.Resolve(Import("f"));
  }
  CHECK(Call(function, 6, 0) == 42);
  CHECK_FALSE(watch.expired());
  function = {};
  CHECK(watch.expired());
}

TEST_CASE("a lambda's exception and Status arrive with kind and message") {
  const PackedFunction throwing = MakePackedFunction(
      [](std::int64_t, std::int64_t) -> std::int64_t { throw std::runtime_error("boom"); });
  CHECK(Call(throwing, 1, 2) == -1);
  CHECK(TakeErrorText(throwing) == "RuntimeError: boom");

  const PackedFunction refusing = MakePackedFunction(
      [](std::int64_t a, std::int64_t) { return kernel::ValueError("a is ", a, ", expected 2"); });
  CHECK(Call(refusing, 1, 2) == -1);
  CHECK(TakeErrorText(refusing) == "ValueError: a is 1, expected 2");
}

TEST_CASE("the source added last wins") {
  KernelSet kernels;
  kernels.AddTable(kTable, "the table");
  CHECK(Call(*kernels.Resolve(Import("test.plus")), 3, 4) == 7);
  kernels.AddFunction("test.plus", MakePackedFunction([](std::int64_t a, std::int64_t b) { return a * b; }));
  const KernelSet before = kernels;
  kernels.AddFunction("test.plus", MakePackedFunction([](std::int64_t a, std::int64_t b) { return a - b; }));
  CHECK(Call(*kernels.Resolve(Import("test.plus")), 3, 4) == -1);
  CHECK(Call(*before.Resolve(Import("test.plus")), 3, 4) == 12);
}

TEST_CASE("a factory gets every kind of attribute and its function is the kernel") {
  KernelSet kernels;
  kernels.AddTable(kTable, "the table");
  const Result<PackedFunction> made =
      kernels.Resolve(Import("test.weighted", {{"int", std::int64_t{1}},
                                               {"float", 20.0},
                                               {"string", std::string("abc")},
                                               {"ints", std::vector<std::int64_t>{100, 200}},
                                               {"floats", std::vector<double>{1000.0, 2000.0}}}));
  REQUIRE(made);
  CHECK(Call(*made, 1, 0) == 3324);

  // A factory is one with and without attributes.
  CHECK(Call(*kernels.Resolve(Import("test.weighted")), 5, 6) == 6);
  CHECK(Call(*kernels.Resolve(Import("test.weighted", {{"ints", std::vector<std::int64_t>{}}})), 5, 6) == 6);
}

TEST_CASE("failures of factories name kernel and source and carry the message") {
  KernelSet kernels;
  kernels.AddTable(kTable, "the table");
  const Result<PackedFunction> wrong = kernels.Resolve(Import("test.weighted", {{"flaot", 1.0}}));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code() == StatusCode::kKernelFailed);
  CHECK(wrong.error().message() ==
        "factory of kernel 'test.weighted' (the table): ValueError: test.weighted: unknown attribute "
        "'flaot'; did "
        "you mean 'float'? (it takes: int, float, string, ints, floats)");

  kernels.AddFunction("test.seven", MakePackedFunction([](std::string_view, double) { return 7; }));
  CHECK(MessageOf(kernels.Resolve(Import("test.seven", {{"x", 1.0}}))) ==
        "factory of kernel 'test.seven' (functions of the host): it returned a value of type index 1, "
        "expected a "
        "function (type index 68); an import with attributes must name a factory");
}

TEST_CASE("a missing kernel is reported with the places searched and near names") {
  KernelSet kernels;
  CHECK(MessageOf(kernels.Resolve(Import("test.plus"))) ==
        "kernel 'test.plus': no kernels have been added to search");

  kernels.AddTable(kTable, "the table");
  const auto nothing = MakePackedFunction([] {});
  kernels.AddFunction("test.plug", nothing);
  kernels.AddFunction("other", nothing);
  const Result<PackedFunction> missing = kernels.Resolve(Import("test.plsu"));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == StatusCode::kNotFound);
  CHECK(missing.error().message() ==
        "kernel 'test.plsu' is not in: the table, functions of the host; did you mean 'test.plus' or "
        "'test.plug'?");
  CHECK(MessageOf(kernels.Resolve(Import("unlike anything"))) ==
        "kernel 'unlike anything' is not in: the table, functions of the host");
}

TEST_CASE("many threads resolve against one set") {
  KernelSet kernels;
  kernels.AddTable(kTable, "the table");
  kernels.AddFunction("host", MakePackedFunction([](std::int64_t a, std::int64_t b) { return a - b; }));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto made = kernels.Resolve(Import("test.weighted", {{"int", std::int64_t{t}}}));
        if (!made || Call(*made, 2, 1) != 2 * t + 1) ++wrong;
        if (Call(*kernels.Resolve(Import("host")), 9, t) != 9 - t) ++wrong;
        const auto missing = kernels.Resolve(Import("test.weighted", {{"none", std::int64_t{t}}}));
        if (missing || missing.error().message().find("unknown attribute 'none'") == std::string::npos)
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace rewire
