// SPDX-License-Identifier: Apache-2.0
// The stock libraries as the compiler asks them.
#include "rewire/compiler/ir/stock_kernels.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/libraries.h"

namespace rewire::compiler {
namespace {

bool Has(const KernelSet& kernels, const std::string& name) {
  return std::any_of(kernels.sources().begin(), kernels.sources().end(),
                     [&](const auto& source) { return static_cast<bool>(source->Find(name).function); });
}

bool Describes(const KernelSet& kernels, const char* file) {
  return std::any_of(kernels.sources().begin(), kernels.sources().end(),
                     [&](const auto& source) { return source->Description() == file; });
}

TEST_CASE("stock kernels are found by their names, and those for this machine alone only where they serve") {
  const KernelSet portable = StockKernels({});
  CHECK(Has(portable, names::kAdd));
  CHECK_FALSE(Has(portable, "rewire.nothing"));
  CHECK_FALSE(Has(portable, "add"));  // a name of another library
  CHECK_FALSE(Describes(portable, names::kOneDnnLibrary));
  CHECK_FALSE(Describes(portable, names::kDeviceLibrary));
  CHECK(Describes(StockKernels({.not_portable = true}), names::kOneDnnLibrary));
  CHECK(Describes(StockKernels({.for_device = true}), names::kDeviceLibrary));
}

TEST_CASE("stock kernels give what their libraries give: names, functions and notes") {
  const KernelSet kernels = StockKernels({});
  std::size_t names = 0;
  for (const auto& source : kernels.sources()) {
    KernelSet library;
    if (!library.AddLibrary(source->Description())) continue;  // one that is not built
    const KernelSource& opened = *library.sources()[0];
    REQUIRE(source->Names().size() == opened.Names().size());
    for (const std::string& name : opened.Names()) {
      INFO(name);
      CHECK(source->Find(name).function.call == opened.Find(name).function.call);
      CHECK(source->Describe(name).documentation == opened.Describe(name).documentation);
      ++names;
    }
  }
  CHECK(names > 100);
}

}  // namespace
}  // namespace rewire::compiler
