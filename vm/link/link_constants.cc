// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/link/link_constants.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/base/sort.h"
#include "rewire/executable_format/instruction_text.h"
#include "rewire/vm/link/constant_cache.h"
#include "rewire/vm/link/error_list.h"
#include "rewire/vm/value/shape.h"
#include "rewire/vm/value/type_check.h"

namespace rewire {
namespace {

// Bytes: what computed constants are found again by, and the most that a stock or foreign kernel asks for.
constexpr std::uint64_t kComputedAlignment = 64;

const LinkedDevice& DeviceOf(const ProgramRep& rep, const TypeNode& type) {
  return rep.devices[type.device == kAnyDevice ? kHostDevice : type.device];
}

// The functions of the device that a constant of this type is on. Null for the host and for devices that the
// program does not name.
const DeviceApi* ApiOf(const ProgramRep& rep, const TypeNode& type, DLDevice device) {
  if (IsHostDevice(device)) return nullptr;
  if (const LinkedDevice& own = DeviceOf(rep, type); IsSameDevice(own.device, device)) return own.api;
  for (const LinkedDevice& linked : rep.devices) {
    if (IsSameDevice(linked.device, device)) return linked.api;
  }
  return nullptr;
}

// An uncounted tensor over memory of a storage, of which it takes over a reference. Null: there was no
// memory.
[[gnu::noinline]] Result<RewireFFIAny> MakeConstant(const DLTensor& like, void* data,
                                                    StorageObject* storage) {
  TensorObject* tensor =
      storage == nullptr ? nullptr : NewSharedTensor(static_cast<std::uint32_t>(like.ndim));
  if (tensor == nullptr) {
    if (storage != nullptr) DropStrong(storage);
    return Fail(StatusCode::kOutOfMemory, "no memory");
  }
  SetContiguousDims(tensor, like.dtype, like.shape, static_cast<std::uint32_t>(like.ndim));
  tensor->tensor.data = data;
  tensor->tensor.device = like.device;
  tensor->flags |= TensorObject::kImmutable;
  tensor->storage = storage;
  tensor->local = kUncounted;
  return MakeAny(kTensorKind, tensor);
}

// The same over memory that `owner` keeps.
[[gnu::noinline]] Result<RewireFFIAny> MakeConstant(const DLTensor& like, const DeviceApi* api, void* data,
                                                    std::uint64_t bytes, std::shared_ptr<const void> owner) {
  StorageObject* storage = NewOwnerStorage(data, bytes, like.device, std::move(owner));
  if (storage != nullptr) storage->device_api = api;  // CopyToHost needs it
  return MakeConstant(like, data, storage);
}

Result<RewireFFIAny> PlaceData(const ProgramRep& rep, const Constant& constant, WorkMeter* meter) {
  const LinkedDevice& device = DeviceOf(rep, constant.type);
  const std::uint64_t taken = DecodedBytes(constant, device, rep.output_alignment);
  if (Status ok = meter->ChargeBytes(taken); !ok) return Forward(ok, {"constant {}", constant.name});
  const Result<SharedBytes> bytes =
      SharedConstantBytes(constant, rep.code->codecs, device, rep.output_alignment);
  if (!bytes) return Forward(bytes);
  Array<std::int64_t> shape(constant.type.dims.begin(), constant.type.dims.end());
  DLTensor like{};
  like.device = device.device;
  like.dtype = constant.type.dtype;
  like.ndim = static_cast<std::int32_t>(shape.size());
  like.shape = shape.data();
  return MakeConstant(like, device.api, const_cast<std::byte*>(bytes->view.data()), bytes->view.size(),
                      bytes->owner);
}

// The caller's tensor, which the constant keeps; or a copy of its content on the required device, or with the
// alignment that kernels need.
Result<RewireFFIAny> PlaceTensor(const ProgramRep& rep, const TypeNode& type, const Tensor& tensor,
                                 WorkMeter* meter) {
  DLTensor like = tensor.dl();
  if (!IsContiguous(like)) return Fail(StatusCode::kLinkFailed, "a strided tensor given; make it contiguous");
  void* data = static_cast<char*>(like.data) + like.byte_offset;
  const std::uint64_t bytes = tensor.view().bytes();
  const LinkedDevice& device = DeviceOf(rep, type);
  const SharedBytes host{{static_cast<const std::byte*>(data), bytes}, nullptr};
  const bool is_there = device.api == nullptr || IsOnDevice(rep.module(), type.device, like.device);
  if (is_there && (!IsHostDevice(like.device) || IsAligned(host.view, rep.output_alignment))) {
    // Thousands of models of one server may share a set: they refer to the storage of its tensor.
    StorageObject* storage = TensorOf(Value(tensor).any())->storage;
    if (IsHostDevice(like.device) && storage != nullptr && storage->device_api == nullptr) {
      storage->AddStrong();
      return MakeConstant(like, data, storage);
    }
    return MakeConstant(like, ApiOf(rep, type, like.device), data, bytes, std::make_shared<Tensor>(tensor));
  }
  // Now, rather than in every call of a kernel that needs it there, or aligned.
  if (Status ok = meter->ChargeBytes(bytes); !ok) return Forward(ok);
  Result<SharedBytes> copy =
      is_there ? AlignedCopy(host.view, rep.output_alignment) : CopyToDevice(host, device);
  if (!copy) return Forward(copy);
  if (!is_there) like.device = device.device;
  return MakeConstant(like, is_there ? nullptr : device.api, const_cast<std::byte*>(copy->view.data()), bytes,
                      std::move(copy->owner));
}

// A parameter that a set offers; the set is null when none does.
struct Offer {
  const ParameterSet* set = nullptr;
  std::size_t index = 0;
};

Offer FindOffer(Span<const ParameterSet> sets, std::string_view name) {
  for (std::size_t i = sets.size(); i-- > 0;) {
    const std::size_t index = sets[i].Find(name);
    if (index < sets[i].size()) return {&sets[i], index};
  }
  return {};
}

Result<RewireFFIAny> PlaceParameter(const ProgramRep& rep, const Constant& constant, const Offer& offer,
                                    WorkMeter* meter) {
  const Module& module = rep.module();
  TypeNode type = constant.type;
  if (offer.set == nullptr) {
    return Fail(StatusCode::kLinkFailed, "no parameter of this name given, {} expected",
                TypeText(Type{{type}}, module.symbols));
  }
  DLTensor given{};
  given.dtype = offer.set->dtype(offer.index);
  given.shape = const_cast<std::int64_t*>(offer.set->shape(offer.index).data());
  given.ndim = static_cast<std::int32_t>(offer.set->shape(offer.index).size());
  given.device = offer.set->device(offer.index);
  // From the host it can be copied to where it is wanted.
  if (IsHostDevice(given.device) && DeviceOf(rep, type).api != nullptr) type.device = kAnyDevice;
  if (!TensorFits(module, type, given)) {
    return Fail(StatusCode::kLinkFailed, TensorMismatchText(module, type, given));
  }
  if (Status ok = meter->ChargeBytes(offer.set->decoded_bytes(offer.index)); !ok) {
    return Forward(ok, {"parameter {}", constant.name});
  }
  const Result<Tensor> tensor = offer.set->TryGet(offer.index);
  if (!tensor) return Forward(tensor);
  return PlaceTensor(rep, constant.type, *tensor, meter);
}

RewireFFIAny Share(const RewireFFIAny& constant) {
  ObjectOf(constant)->AddStrong();
  return constant;
}

// Names that no parameter of the executable has.
void AddExtras(const Module& module, Span<const ParameterSet> sets, ErrorList* errors) {
  Array<std::string> known;
  for (const Constant& constant : module.constants) {
    if (constant.kind == ConstantKind::kParameter) known.push_back(constant.name);
  }
  Array<std::string_view> sorted(known.begin(), known.end());
  Sort(sorted);
  for (const ParameterSet& set : sets) {
    for (std::size_t i = 0; i < set.size() && !set.is_offer() && !errors->full(); ++i) {
      const std::string name(set.name(i));
      if (std::binary_search(sorted.begin(), sorted.end(), std::string_view(name))) continue;
      errors->Add({"{}: the executable has no parameter of this name{}", name, DidYouMean(name, known)});
    }
  }
}

// Memory equal to a computed tensor's that another Program of its allocator has, or the tensor's own.
Result<Tensor> ShareMemory(const Tensor& tensor, const Allocator& allocator) {
  const TensorView view = tensor.view();
  if (!IsHostDevice(view.device()) || !view.IsContiguous() || view.bytes() == 0) return tensor;
  const SharedBytes bytes{{static_cast<const std::byte*>(view.data()), view.bytes()},
                          std::make_shared<Tensor>(tensor)};
  const SharedBytes shared = SharedComputedBytes(bytes, kComputedAlignment, allocator.context);
  const TensorView equal(const_cast<std::byte*>(shared.view.data()), view.dtype(), view.shape());
  return Tensor::Wrap(equal, shared.owner);
}

// Placing a constant costs so many units; decoding is bounded by its bytes.
constexpr std::uint64_t kPlaceWork = 4;

}  // namespace

Status LinkConstants(ProgramRep* rep, Span<const ParameterSet> sets, bool ignore_extra,
                     const ProgramRep* donor, WorkMeter* meter) {
  const Module& module = rep->module();
  ErrorList errors;
  rep->constants.reserve(module.constants.size());
  const Array<std::uint8_t> is_code = ConstantsOfDeviceCode(module);
  for (std::size_t i = 0; i < module.constants.size() && !errors.full(); ++i) {
    const Constant& constant = module.constants[i];
    if (Status ok = meter->Charge(kPlaceWork); !ok) return ok;
    Result<RewireFFIAny> placed = RewireFFIAny{};
    if (is_code[i]) {
      rep->constants.push_back(*placed);  // no tensor of the program
      continue;
    }
    switch (constant.kind) {
      case ConstantKind::kData:
        placed = donor != nullptr ? Share(donor->constants[i]) : PlaceData(*rep, constant, meter);
        break;
      case ConstantKind::kComputed:
        break;  // `__init` fills it in
      case ConstantKind::kParameter: {
        const Offer offer = FindOffer(sets, constant.name);
        const bool keep = offer.set == nullptr && donor != nullptr;
        placed = keep ? Share(donor->constants[i]) : PlaceParameter(*rep, constant, offer, meter);
        break;
      }
    }
    if (placed) {
      rep->constants.push_back(*placed);
    } else if (placed.error().code() == StatusCode::kLinkFailed) {
      errors.Add({"{}: {}", constant.name, placed.error().message()});
    } else if (placed.error().code() == StatusCode::kOutOfMemory) {
      return Forward(placed, {"constant {}", constant.name});
    } else {
      return Forward(placed);
    }
  }
  if (!ignore_extra) AddExtras(module, sets, &errors);
  return errors.ToStatus("parameters do not match:");
}

void ShareComputed(ProgramRep* rep, const ProgramRep& donor) {
  const Module& module = rep->module();
  for (std::size_t i = 0; i < module.constants.size(); ++i) {
    if (module.constants[i].kind == ConstantKind::kComputed) rep->constants[i] = Share(donor.constants[i]);
  }
}

Result<Tensor> ShareComputedTensor(const ProgramRep& rep, const Constant& constant, const Tensor& computed) {
  const Message what{"computed constant {}", constant.name};
  if (!computed) return Fail(StatusCode::kLinkFailed, "{}: no tensor", what);
  if (!TensorFits(rep.module(), constant.type, computed.dl())) {
    return Fail(StatusCode::kLinkFailed, "{}: {}", what,
                TensorMismatchText(rep.module(), constant.type, computed.dl()));
  }
  Result<Tensor> shared = ShareMemory(computed, rep.allocator);
  if (!shared) return Forward(shared, what);
  return shared;
}

Result<RewireFFIAny> PlaceComputed(const ProgramRep& rep, const Constant& constant, const Tensor& computed,
                                   WorkMeter* meter) {
  Result<RewireFFIAny> placed = PlaceTensor(rep, constant.type, computed, meter);
  if (!placed) return Forward(placed, {"computed constant {}", constant.name});
  return placed;
}

void FindConstantRanges(ProgramRep* rep) {
  rep->constant_ranges.reserve(rep->constants.size());
  for (std::uint32_t i = 0; i < rep->constants.size(); ++i) {
    if (!IsObjectKind(rep->constants[i].type_index)) continue;  // device code
    const MemoryRange range = RangeOf(TensorOf(rep->constants[i])->tensor);
    if (!range.empty()) rep->constant_ranges.push_back({range, i});
  }
  Array<NamedRange>& ranges = rep->constant_ranges;
  SortByBegin(ranges);
  // Parameters may share memory; ranges that do become one.
  std::size_t last = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[last].range.Overlaps(ranges[i].range)) {
      ranges[last].range.end = std::max(ranges[last].range.end, ranges[i].range.end);
    } else {
      ranges[++last] = ranges[i];
    }
  }
  if (!ranges.empty()) ranges.resize(last + 1);
}

}  // namespace rewire
