// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/ir/stock_kernels.h"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "rewire/compiler/opened_kernels.h"
#include "rewire/kernels/contract/libraries.h"

namespace rewire::compiler {
namespace {

// The stock libraries that somebody in the process has open, so that no file is looked at for them again.
class OpenLibraries {
 public:
  // Null if the library is missing.
  std::shared_ptr<const KernelSource> Get(std::size_t position) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const KernelSource> source = open_[position].lock();
    if (source != nullptr) return source;
    KernelSet library;
    if (!library.AddLibrary(names::kStockLibraries[position].file)) return nullptr;
    source = library.sources()[0];
    open_[position] = source;
    return source;
  }

 private:
  std::mutex mutex_;
  std::array<std::weak_ptr<const KernelSource>, names::kNoLibrary> open_;
};

// Never destroyed: compilers of static storage may go after it.
OpenLibraries& TheOpenLibraries() {
  static auto* const libraries = new OpenLibraries;
  return *libraries;
}

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
    std::call_once(once_, [&] { library_ = TheOpenLibraries().Get(position_); });
    return library_.get();
  }

  std::size_t position_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const KernelSource> library_;
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

namespace rewire {

std::shared_ptr<const void> OpenStockKernels() {
  auto libraries = std::make_shared<std::vector<std::shared_ptr<const KernelSource>>>();
  for (std::size_t i = 0; i < names::kNoLibrary; ++i) {
    const names::StockLibrary& library = names::kStockLibraries[i];
    const bool computes = library.portable && !library.on_device && library.file != names::kCollectiveLibrary;
    if (computes) libraries->push_back(compiler::TheOpenLibraries().Get(i));
  }
  return libraries;
}

}  // namespace rewire
