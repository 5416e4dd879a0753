// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/kernel_set.h"

#include <algorithm>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/vm/loader/factory.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/loader/kernel_table.h"
#include "rewire/vm/loader/load_library.h"

namespace rewire {
namespace {

// One function of the host.
class HostFunction : public KernelSource {
 public:
  HostFunction(std::string name, PackedFunction function)
      : name_(std::move(name)), function_(std::move(function)) {}

  Found Find(const std::string& name) const override { return name == name_ ? Found{function_} : Found{}; }
  Array<std::string> Names() const override { return {name_}; }
  std::string Description() const override { return "functions of the host"; }

 private:
  std::string name_;
  PackedFunction function_;
};

class StaticTable : public KernelSource {
 public:
  StaticTable(const RewireKernelTable& table, std::string description)
      : index_(table), description_(std::move(description)) {}

  Found Find(const std::string& name) const override {
    const RewireKernelEntry* entry = index_.Find(name);
    return {index_.FunctionOf(entry), entry != nullptr && entry->is_factory != 0};
  }
  Array<std::string> Names() const override { return index_.Names(); }
  std::string Description() const override { return description_; }

 private:
  KernelTableIndex index_;
  std::string description_;
};

}  // namespace

KernelSet::KernelSet() = default;

void KernelSet::AddFunction(const std::string& name, PackedFunction function) {
  AddSource(std::make_shared<HostFunction>(name, std::move(function)));
}

void KernelSet::AddTable(const RewireKernelTable& table, const std::string& description) {
  // The variable is the program's own if that links kernels and, dynamically, librewire.
  if (__rewire_kernel_api == nullptr) __rewire_kernel_api = KernelApi();
  AddSource(std::make_shared<StaticTable>(table, description));
}

Status KernelSet::AddLibrary(const std::string& path) {
  Result<std::shared_ptr<const KernelSource>> library = LoadKernelLibrary(path, library_path);
  if (!library) return Forward(library);
  AddSource(*std::move(library));
  return {};
}

void KernelSet::AddSource(std::shared_ptr<const KernelSource> source) {
  sources_.push_back(std::move(source));
}

Result<PackedFunction> KernelSet::Resolve(const KernelImport& import) const {
  for (std::size_t i = sources_.size(); i-- > 0;) {
    const KernelSource& source = *sources_[i];
    KernelSource::Found found = source.Find(import.name);
    if (!found.function) continue;
    if (!found.is_factory && import.attributes.empty()) return std::move(found.function);
    return MakeFromFactory(found.function, import, source.Description());
  }

  std::string places;
  Array<std::string> names;
  Array<std::string> listed;
  for (const auto& source : sources_) {
    Array<std::string> offered = source->Names();
    names.append(std::make_move_iterator(offered.begin()), std::make_move_iterator(offered.end()));
    std::string description = source->Description();
    if (std::find(listed.begin(), listed.end(), description) != listed.end()) continue;
    places += (places.empty() ? "" : ", ") + description;
    listed.push_back(std::move(description));
  }
  if (places.empty()) {
    return Fail(StatusCode::kNotFound, "kernel '{}': no kernels have been added to search", import.name);
  }
  return Fail(StatusCode::kNotFound, "kernel '{}' is not in: {}{}", import.name, places,
              DidYouMean(import.name, names));
}

}  // namespace rewire
