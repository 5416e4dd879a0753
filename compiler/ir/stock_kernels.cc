// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/stock_kernels.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "rewire/kernels/contract/libraries.h"

namespace rewire::compiler {
namespace {

// A stock library that opens itself when it is needed.
class OpenedWhenNeeded final : public KernelSource {
 public:
  explicit OpenedWhenNeeded(std::size_t position) : position_(position) {}

  Found Find(const std::string& name) const override {
    if (names::StockLibraryOf(name) != position_) return {};
    const KernelSource* const library = Opened();
    return library == nullptr ? Found() : library->Find(name);
  }
  Array<std::string> Names() const override {
    const KernelSource* const library = Opened();
    return library == nullptr ? Array<std::string>() : library->Names();
  }
  std::string Description() const override { return names::kStockLibraries[position_].file; }
  Notes Describe(const std::string& name) const override {
    if (names::StockLibraryOf(name) != position_) return {};
    const KernelSource* const library = Opened();
    return library == nullptr ? Notes() : library->Describe(name);
  }

 private:
  // Null if the library is missing.
  const KernelSource* Opened() const {
    std::call_once(once_, [&] { (void)library_.AddLibrary(names::kStockLibraries[position_].file); });
    return library_.sources().empty() ? nullptr : library_.sources()[0].get();
  }

  std::size_t position_;
  mutable std::once_flag once_;
  mutable KernelSet library_;
};

}  // namespace

KernelSet StockKernels(const StockKernelsOptions& options) {
  KernelSet kernels;
  for (std::size_t i = 0; i < names::kNoLibrary; ++i) {
    const names::StockLibrary& library = names::kStockLibraries[i];
    if ((library.portable || options.not_portable) && (options.for_device || !library.on_device))
      kernels.AddSource(std::make_shared<const OpenedWhenNeeded>(i));
  }
  return kernels;
}

}  // namespace rewire::compiler
