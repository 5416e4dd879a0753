// SPDX-License-Identifier: Apache-2.0
#include "vm/parameter_set.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "executable_format/executable.h"
#include "executable_format/import/tvm.h"
#include "executable_format/layout.h"
#include "executable_format/tensor_files/safetensors.h"
#include "vm/constant_cache.h"
#include "vm/objects.h"
#include "vm/program_rep.h"

namespace rewire {
namespace {

struct Entry {
  std::string name;
  Tensor tensor;                       // null where `constant` is compressed
  const Constant* constant = nullptr;  // of the set's executable
};

// Programs only read parameters, so that sharing a mapped file is sound.
Result<Entry> EntryOf(std::string name, DLDataType dtype, Span<const std::int64_t> shape,
                      const SharedBytes& bytes) {
  const TensorView view(const_cast<std::byte*>(bytes.view.data()), dtype, shape);
  Result<Tensor> tensor = Tensor::Wrap(view, bytes.owner);
  if (!tensor) return Forward(tensor, Concat({"parameter ", name}));
  return Entry{std::move(name), *std::move(tensor), nullptr};
}

Result<std::vector<Entry>> OfSafetensors(const SharedBytes& bytes) {
  Result<std::vector<NamedTensor>> tensors = ParseSafetensors(bytes);
  if (!tensors) return Forward(tensors);
  std::vector<Entry> entries;
  for (NamedTensor& named : *tensors) {
    Result<Entry> entry =
        EntryOf(std::move(named.name), named.tensor.dtype, named.tensor.shape, named.tensor.bytes);
    if (!entry) return Forward(entry);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<std::vector<Entry>> OfTvm(const SharedBytes& bytes) {
  Result<tvm::NamedTensors> tensors = tvm::ReadParameterList(bytes.view);
  if (!tensors) return Forward(tensors);
  std::vector<Entry> entries;
  for (auto& [name, foreign] : *tensors) {
    // TVM aligns nothing.
    const SharedBytes aligned = AlignedFor(foreign.dtype, {foreign.bytes, bytes.owner});
    Result<Entry> entry = EntryOf(std::move(name), foreign.dtype, foreign.shape, aligned);
    if (!entry) return Forward(entry);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<std::vector<Entry>> OfExecutable(const Executable& executable) {
  std::vector<Entry> entries;
  for (const Constant& constant : executable.module().constants) {
    if (constant.kind != ConstantKind::kData || constant.name.empty()) continue;
    if (constant.codec != kCodecNone) {
      entries.push_back({constant.name, {}, &constant});
      continue;
    }
    Result<Entry> entry = EntryOf(constant.name, constant.type.dtype, constant.type.dims, constant.stored);
    if (!entry) return Forward(entry);
    entries.push_back(*std::move(entry));
  }
  return entries;
}

bool IsExecutable(Span<const std::byte> bytes) {
  // The first four bytes, so that a file that a transfer as text has changed is told from a stranger.
  return bytes.size() >= 4 && std::memcmp(bytes.data(), kMagic.data(), 4) == 0;
}

bool Before(const Entry& a, const Entry& b) { return a.name < b.name; }

}  // namespace

struct ParameterSet::Rep {
  std::vector<Entry> entries;  // sorted by name
  std::optional<Executable> executable;
  ConstantCodecs codecs;
  bool is_offer = false;
};

Result<ParameterSet> ParameterSet::Open(const std::string& path, const OpenOptions& options,
                                        const ConstantCodecs& codecs) {
  const Result<SharedBytes> bytes = options.copy ? ReadFile(path) : MapFile(path);
  if (!bytes) return Forward(bytes);
  Result<ParameterSet> set = FromBytes(*bytes, options, codecs);
  if (!set) return Forward(set, path);
  return set;
}

Result<ParameterSet> ParameterSet::FromBytes(const SharedBytes& bytes, const OpenOptions& options,
                                             const ConstantCodecs& codecs) {
  ParameterSet set;
  set.rep_ = std::make_shared<Rep>();
  Result<std::vector<Entry>> entries;
  if (IsExecutable(bytes.view)) {
    const Result<Executable> executable = Executable::FromBytes(bytes, options);
    if (!executable) return Forward(executable);
    set.rep_->executable = *executable;
    set.rep_->codecs = codecs;
    entries = OfExecutable(*executable);
  } else if (tvm::IsParameterList(bytes.view)) {
    entries = OfTvm(bytes);
  } else {
    entries = OfSafetensors(bytes);
  }
  if (!entries) return Forward(entries);
  set.rep_->entries = *std::move(entries);
  std::vector<Entry>& sorted = set.rep_->entries;
  std::sort(sorted.begin(), sorted.end(), Before);
  // Only TVM's files can name one twice.
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i].name != sorted[i - 1].name) continue;
    return Fail(StatusCode::kInvalidFile, {"two parameters are called ", sorted[i].name});
  }
  return set;
}

ParameterSet ParameterSet::Of(const Program& program) {
  ParameterSet set;
  set.rep_ = std::make_shared<Rep>();
  set.rep_->is_offer = true;
  const ProgramRep& rep = program.rep();
  for (std::size_t i = 0; i < rep.constants.size(); ++i) {
    const std::string& name = rep.module().constants[i].name;
    if (name.empty()) continue;
    Value borrowed = Value::Adopt(rep.constants[i]);
    set.rep_->entries.push_back({name, borrowed.tensor(), nullptr});
    borrowed.Release();
  }
  std::sort(set.rep_->entries.begin(), set.rep_->entries.end(), Before);
  return set;
}

void ParameterSet::Set(std::string name, Tensor tensor) {
  // Other handles keep what they have.
  if (rep_ == nullptr) {
    rep_ = std::make_shared<Rep>();
  } else if (rep_.use_count() > 1) {
    rep_ = std::make_shared<Rep>(*rep_);
  }
  Entry entry{std::move(name), std::move(tensor), nullptr};
  std::vector<Entry>& entries = rep_->entries;
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
  const Entry& entry = rep_->entries[index];
  return entry.constant != nullptr ? entry.constant->type.dtype : entry.tensor.dtype();
}

Span<const std::int64_t> ParameterSet::shape(std::size_t index) const {
  const Entry& entry = rep_->entries[index];
  if (entry.constant != nullptr) return entry.constant->type.dims;
  return entry.tensor.shape();
}

DLDevice ParameterSet::device(std::size_t index) const {
  const Entry& entry = rep_->entries[index];
  return entry.constant != nullptr ? kHost : entry.tensor.dl().device;
}

std::size_t ParameterSet::Find(std::string_view name) const {
  if (rep_ == nullptr) return 0;
  const std::vector<Entry>& entries = rep_->entries;
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), name,
                       [](const Entry& entry, std::string_view text) { return entry.name < text; });
  const bool found = at != entries.end() && at->name == name;
  return found ? static_cast<std::size_t>(at - entries.begin()) : entries.size();
}

Result<Tensor> ParameterSet::TryGet(std::size_t index) const {
  const Entry& entry = rep_->entries[index];
  if (entry.constant == nullptr) return entry.tensor;
  const Result<SharedBytes> bytes = SharedConstantBytes(*entry.constant, rep_->codecs, LinkedDevice{}, 1);
  if (!bytes) return Forward(bytes);
  Result<Entry> made = EntryOf(entry.name, entry.constant->type.dtype, entry.constant->type.dims, *bytes);
  if (!made) return Forward(made);
  return std::move(made->tensor);
}

bool ParameterSet::is_offer() const { return rep_ != nullptr && rep_->is_offer; }

}  // namespace rewire
