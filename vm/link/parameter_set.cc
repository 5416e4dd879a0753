// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/parameter_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/sort.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/link/constant_cache.h"
#include "rewire/vm/link/parameter_tensor.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/value/objects.h"

namespace rewire {
namespace {

struct NamedParameter {
  std::string name;
  Tensor tensor;                       // null where `constant` is compressed
  const Constant* constant = nullptr;  // of the set's executable
};

Result<Array<NamedParameter>> OfExecutable(const Executable& executable) {
  Array<NamedParameter> entries;
  for (const Constant& constant : executable.module().constants) {
    if (constant.kind != ConstantKind::kData || constant.name.empty()) continue;
    if (constant.codec != kCodecNone) {
      entries.push_back({constant.name, {}, &constant});
      continue;
    }
    Result<Tensor> tensor =
        ParameterTensor(constant.name, constant.type.dtype, constant.type.dims, constant.stored);
    if (!tensor) return Forward(tensor);
    entries.push_back({constant.name, *std::move(tensor), nullptr});
  }
  return entries;
}

bool Before(const NamedParameter& a, const NamedParameter& b) { return a.name < b.name; }

void SortByName(Array<NamedParameter>* entries) {
  Array<NamedParameter*> order;
  for (NamedParameter& entry : *entries) order.push_back(&entry);
  Sort(order, [](const NamedParameter* a, const NamedParameter* b) { return Before(*a, *b); });
  Array<NamedParameter> sorted;
  for (NamedParameter* entry : order) sorted.push_back(std::move(*entry));
  *entries = std::move(sorted);
}

}  // namespace

struct ParameterSet::Rep {
  Array<NamedParameter> entries;  // sorted by name
  std::optional<Executable> executable;
  ConstantCodecs codecs;
  bool is_offer = false;
};

Result<ParameterSet> ParameterSet::Of(const Executable& executable, const ConstantCodecs& codecs) {
  ParameterSet set;
  set.rep_ = std::make_shared<Rep>();
  set.rep_->executable = executable;
  set.rep_->codecs = codecs;
  Result<Array<NamedParameter>> entries = OfExecutable(executable);
  if (!entries) return Forward(entries);
  set.rep_->entries = *std::move(entries);
  SortByName(&set.rep_->entries);
  return set;
}

ParameterSet ParameterSet::Of(const Program& program) {
  ParameterSet set;
  set.rep_ = std::make_shared<Rep>();
  set.rep_->is_offer = true;
  const ProgramRep& rep = program.rep();
  for (std::size_t i = 0; i < rep.constants.size(); ++i) {
    const std::string& name = rep.module().constants[i].name;
    if (name.empty() || !IsObjectKind(rep.constants[i].type_index)) continue;  // or device code
    Value borrowed = Value::Adopt(rep.constants[i]);
    set.rep_->entries.push_back({name, borrowed.tensor(), nullptr});
    borrowed.Release();
  }
  SortByName(&set.rep_->entries);
  return set;
}

void ParameterSet::Set(std::string name, Tensor tensor) {
  // Other handles keep what they have.
  if (rep_ == nullptr) {
    rep_ = std::make_shared<Rep>();
  } else if (rep_.use_count() > 1) {
    rep_ = std::make_shared<Rep>(*rep_);
  }
  NamedParameter entry{std::move(name), std::move(tensor), nullptr};
  Array<NamedParameter>& entries = rep_->entries;
  const auto at = std::lower_bound(entries.begin(), entries.end(), entry, Before);
  if (at != entries.end() && at->name == entry.name) {
    *at = std::move(entry);
  } else {
    entries.insert(at, std::move(entry));
  }
}

std::size_t ParameterSet::size() const { return rep_ == nullptr ? 0 : rep_->entries.size(); }

std::string_view ParameterSet::name(std::size_t index) const { return rep_->entries[index].name; }

DLDataType ParameterSet::dtype(std::size_t index) const {
  const NamedParameter& entry = rep_->entries[index];
  return entry.constant != nullptr ? entry.constant->type.dtype : entry.tensor.dtype();
}

Span<const std::int64_t> ParameterSet::shape(std::size_t index) const {
  const NamedParameter& entry = rep_->entries[index];
  if (entry.constant != nullptr) return entry.constant->type.dims;
  return entry.tensor.shape();
}

DLDevice ParameterSet::device(std::size_t index) const {
  const NamedParameter& entry = rep_->entries[index];
  return entry.constant != nullptr ? kHost : entry.tensor.dl().device;
}

std::size_t ParameterSet::Find(std::string_view name) const {
  if (rep_ == nullptr) return 0;
  const Array<NamedParameter>& entries = rep_->entries;
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), name,
                       [](const NamedParameter& entry, std::string_view text) { return entry.name < text; });
  const bool found = at != entries.end() && at->name == name;
  return found ? static_cast<std::size_t>(at - entries.begin()) : entries.size();
}

Result<Tensor> ParameterSet::TryGet(std::size_t index) const {
  const NamedParameter& entry = rep_->entries[index];
  if (entry.constant == nullptr) return entry.tensor;
  const Result<SharedBytes> bytes = SharedConstantBytes(*entry.constant, rep_->codecs, LinkedDevice{}, 1);
  if (!bytes) return Forward(bytes);
  return ParameterTensor(entry.name, entry.constant->type.dtype, entry.constant->type.dims, *bytes);
}

std::uint64_t ParameterSet::decoded_bytes(std::size_t index) const {
  const NamedParameter& entry = rep_->entries[index];
  return entry.constant == nullptr ? 0 : entry.constant->raw_bytes;
}

std::uint64_t ParameterSet::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    const NamedParameter& entry = rep_->entries[i];
    bytes += entry.constant != nullptr ? entry.constant->stored.view.size() : entry.tensor.view().bytes();
  }
  return bytes;
}

bool ParameterSet::is_offer() const { return rep_ != nullptr && rep_->is_offer; }

}  // namespace rewire
