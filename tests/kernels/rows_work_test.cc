// SPDX-License-Identifier: Apache-2.0
// The work that rows declare (vm/kernel/work.h): what a rule may say, and that all rules of the stock
// libraries can be read in the names of their rows.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/product.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/prepare/kernel_work.h"

namespace rewire {
namespace {

RewireKernelArgument Argument(const char* name, std::uint8_t flags = 0) {
  return {name, REWIRE_DTYPE_F32, 0, static_cast<std::uint8_t>(std::strlen(name)), flags, 0};
}

// x, w? -> out, and x, all..., w -> out
const RewireKernelArgument kArguments[] = {Argument("x"), Argument("w", REWIRE_ARGUMENT_OPTIONAL),
                                           Argument("out", REWIRE_ARGUMENT_WRITTEN)};
const RewireKernelArgument kWithList[] = {Argument("x"), Argument("all", REWIRE_ARGUMENT_LIST), Argument("w"),
                                          Argument("out", REWIRE_ARGUMENT_WRITTEN)};
const RewireKernelRow kRow = {kArguments, 3, 0, "group = 2, factor = 1.5, pads = zeros", nullptr};
const RewireKernelRow kListRow = {kWithList, 4, 0, "", nullptr};

Array<std::int64_t> List(std::initializer_list<std::int64_t> values) {
  Array<std::int64_t> list;
  for (const std::int64_t value : values) list.push_back(value);
  return list;
}

// The products of a call with x [2, 3], w [4, 5] and out [6].
std::optional<double> Products(const char* rule, const Array<Attribute>& attributes = {}) {
  WorkCall call;
  call.read = {WorkDims{2, 3}, WorkDims{4, 5}};
  call.written = {WorkDims{6}};
  call.attributes = attributes;
  const RewireKernelWork work = {rule, nullptr, 0, nullptr};
  const std::optional<CallWork> done = WorkOf(&kRow, &work, call);
  return done ? std::optional(done->products) : std::nullopt;
}

std::string ErrorOf(const char* rule, const RewireKernelRow& row = kRow) {
  const Status checked = CheckWork(row, {rule, nullptr, 0, nullptr});
  return checked ? "no error" : checked.error().message();
}

TEST_CASE("a rule computes with elements, dimensions and attributes") {
  CHECK(Products("x") == 6);
  CHECK(Products("x[0]") == 2);
  CHECK(Products("x[-1] * out") == 18);
  CHECK(Products("w / w[0] + 2 * (x - 1)") == 15);
  CHECK(Products("7 / 2") == 3.5);
  CHECK(Products("x - 2 - 1") == 3);
  CHECK(Products("12 / 2 / 3") == 2);
  CHECK(Products("-x + 10") == 4);
  const Array<Attribute> attributes = {{"group", std::int64_t{3}}, {"pads", List({1, 2, 5})}};
  CHECK(Products("group", attributes) == 3);
  CHECK(Products("pads", attributes) == 10);
  CHECK(Products("pads[-1]", attributes) == 5);
}

TEST_CASE("what an import leaves out has the row's default, if that is an integer") {
  CHECK(Products("group") == 2);
  CHECK_FALSE(Products("factor"));
  CHECK_FALSE(Products("pads"));
}

TEST_CASE("a name without a value makes the work of a call unknown") {
  CHECK_FALSE(Products("columns"));
  CHECK_FALSE(Products("x[2]"));
  CHECK_FALSE(Products("group[0]"));
  CHECK_FALSE(Products("x *"));
}

TEST_CASE("a division by 0 is 0, and an argument that is left out has 0 elements") {
  CHECK_FALSE(Products("x / (2 - 2)"));  // no products, and nothing else is declared
  CHECK(Products("x / 0 + 1") == 1);
  WorkCall call;
  call.read = {WorkDims{2, 3}};
  call.written = {WorkDims{6}};
  const RewireKernelWork work = {"x + w + w[0]", nullptr, 0, nullptr};
  CHECK(WorkOf(&kRow, &work, call)->products == 6);
}

TEST_CASE("a list takes as many tensors as the others leave") {
  const RewireKernelWork work = {"x * 100 + w", nullptr, 0, nullptr};
  for (const std::size_t listed : {0, 1, 3}) {
    WorkCall call;
    call.read = {WorkDims{2}};
    for (std::size_t i = 0; i < listed; ++i) call.read.emplace_back(WorkDims{50});
    call.read.emplace_back(WorkDims{7});
    call.written = {WorkDims{1}};
    CHECK(WorkOf(&kListRow, &work, call)->products == 207);
  }
}

TEST_CASE("operations are done for each element of the largest tensor") {
  WorkCall call;
  call.read = {WorkDims{2, 3}, WorkDims{4, 5}};
  call.written = {WorkDims{6}};
  const RewireKernelWork three = {nullptr, nullptr, 3, nullptr},
                         window = {nullptr, nullptr, 3, "x[0] * x[1]"};
  CHECK(WorkOf(&kRow, &three, call)->operations == 60);
  CHECK(WorkOf(&kRow, &window, call)->operations == 360);
  call.written = {WorkDims{15}, WorkDims{15}};
  CHECK(WorkOf(&kRow, &three, call)->operations == 90);
  // An elementwise kernel does one if nothing is declared; of others nothing is known.
  CHECK_FALSE(WorkOf(&kRow, nullptr, call));
  RewireKernelRow elementwise = kRow;
  elementwise.traits = REWIRE_KERNEL_ELEMENTWISE;
  call.written = {WorkDims{15}};
  CHECK(WorkOf(&elementwise, nullptr, call)->operations == 20);
  CHECK(WorkOf(&elementwise, &three, call)->operations == 60);
}

TEST_CASE("errors name the place in a rule of work") {
  CHECK(ErrorOf("x * group") == "no error");
  CHECK(ErrorOf("x *") == "work 'x *': expected a number or a name, given its end");
  CHECK(ErrorOf("x y") == "work 'x y': expected an operator, given 'y'");
  CHECK(ErrorOf("floor(x)") == "work 'floor(x)': expected a name without '(', given 'floor(x)'");
  CHECK(ErrorOf("columns") == "work 'columns': 'columns' is no argument and no integer attribute");
  CHECK(ErrorOf("all", kListRow) == "work 'all': 'all' is no argument and no integer attribute");
  CHECK(WorkText({"x", nullptr, 0, nullptr}) == "products: x");
  CHECK(WorkText({nullptr, nullptr, 2.5, "x[0]"}) == "operations: 2.5 * x[0]");
  CHECK(WorkText({nullptr, nullptr, 20, nullptr}) == "operations: 20");
  CHECK(WorkText({}).empty());
}

TEST_CASE("a host's function with the name of a stock kernel's stem is no stock kernel") {
  CHECK(names::IsKernel("rewire.matmul", names::kMatMul));
  CHECK(names::IsKernel("rewire.device.matmul", names::kMatMul));
  CHECK_FALSE(names::IsKernel("matmul", names::kMatMul));
}

TEST_CASE("a table declares work in one more column, and a shorter table none") {
  const RewirePackedFunction nothing = [](void*, const RewireFFIAny*, std::int32_t, RewireFFIAny*) {
    return 0;
  };
  const RewireKernelArgument x = {"x", REWIRE_DTYPE_F32, 0, 1, 0, 0};
  const RewireKernelEntry entries[] = {{"b", nothing, 0}, {"a", nothing, 0}};
  const RewireKernelRow rows[] = {{&x, 1, 0, nullptr, nullptr}, {&x, 1, 0, nullptr, nullptr}};
  const RewireKernelWork work[] = {{"x", nullptr, 0, nullptr}, {nullptr, nullptr, 3, nullptr}};
  RewireKernelWorkTable table = {{sizeof(RewireKernelWorkTable), 2, entries, rows}, work};
  const auto declared = [&table](const char* name) {
    KernelSet set;
    set.AddTable(table.table, "the table");
    return set.sources().back()->Find(name).function;
  };
  CHECK(declared("a").work == &work[1]);
  CHECK(declared("b").work == &work[0]);
  table.table.struct_size = sizeof(RewireKernelTable);
  CHECK(declared("a").work == nullptr);
  CHECK(declared("a").row == &rows[1]);
  table.table.struct_size = sizeof(RewireKernelWorkTable);
  table.table.rows = nullptr;
  CHECK(declared("a").work == nullptr);
}

TEST_CASE("every kernel of a stock library declares work in the names of its row") {
  std::map<std::string, std::size_t> declared;
  for (const char* library :
       {"librewire_kernels_cpu.so", "librewire_kernels_device.so", "librewire_kernels_onednn.so"}) {
    KernelSet set;
    if (!set.AddLibrary(library)) continue;  // not every build has each
    const KernelSource& source = *set.sources().back();
    for (const std::string& name : source.Names()) {
      const PackedFunction function = source.Find(name).function;
      REQUIRE(function.row != nullptr);
      REQUIRE(function.work != nullptr);
      INFO(name);
      const Status checked = CheckWork(*function.row, *function.work);
      CHECK((checked ? "no error" : checked.error().message()) == "no error");
      if (!WorkText(*function.work).empty()) ++declared[library];
    }
  }
  CHECK(declared["librewire_kernels_cpu.so"] > 80);
}

}  // namespace
}  // namespace rewire
