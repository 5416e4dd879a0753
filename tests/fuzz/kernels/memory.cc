// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/fuzz/kernels/memory.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kMostElements = 1 << 20;
constexpr std::int32_t kSequenceKind = 129;

template <typename T>
void Store(char* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

double SpecialFloat(Dice& dice) {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> kValues = {0.0,
                                              -0.0,
                                              1.0,
                                              -1.0,
                                              0.5,
                                              2.5,
                                              1e30,
                                              -1e30,
                                              1e300,
                                              -1e300,
                                              1e-300,
                                              9e18,
                                              0x1p63,
                                              0x1p31,
                                              0x1p62,
                                              1e6 - 1,
                                              -1e6 + 1,
                                              1e-45,
                                              3.5e38,
                                              Limits::infinity(),
                                              -Limits::infinity(),
                                              Limits::quiet_NaN()};
  return dice.Of(kValues);
}

std::int64_t SpecialInteger(Dice& dice) {
  static const std::vector<std::int64_t> kValues = {0,
                                                    1,
                                                    -1,
                                                    2,
                                                    -2,
                                                    3,
                                                    -3,
                                                    127,
                                                    128,
                                                    -128,
                                                    255,
                                                    32767,
                                                    -32768,
                                                    1 << 20,
                                                    1 << 30,
                                                    std::int64_t{1} << 31,
                                                    -(std::int64_t{1} << 31),
                                                    std::int64_t{1} << 40,
                                                    std::int64_t{1} << 48,
                                                    std::int64_t{1} << 62,
                                                    std::numeric_limits<std::int64_t>::max(),
                                                    std::numeric_limits<std::int64_t>::min()};
  return dice.Of(kValues);
}

void StoreInteger(char* to, int bits, std::int64_t value) {
  if (bits == 8) Store(to, static_cast<std::int8_t>(value));
  if (bits == 16) Store(to, static_cast<std::int16_t>(value));
  if (bits == 32) Store(to, static_cast<std::int32_t>(value));
  if (bits == 64) Store(to, value);
}

void StoreFloat(char* to, DLDataType dtype, double value) {
  if (dtype.bits == 64) return Store(to, value);
  const auto narrow = static_cast<float>(value);
  if (dtype.bits == 32) return Store(to, narrow);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &narrow, sizeof(bits));
  // The upper half is a bf16 and, as an f16, some other float: either way anything may come.
  if (dtype.bits == 16) Store(to, static_cast<std::uint16_t>(bits >> 16));
}

// Every element, in memory order.
void FillElements(const Argument& argument, char* data, std::uint64_t bytes) {
  Dice dice(argument.seed);
  const DLDataType dtype = argument.dtype;
  const auto step = static_cast<std::uint64_t>(ElementBytes(dtype));
  const bool is_float = dtype.code == kDLFloat || dtype.code == kDLBfloat;
  if (argument.fill == Fill::kZero || step == 0) {
    std::fill_n(data, bytes, 0);
    return;
  }
  const bool plain =
      dtype.lanes == 1 && (dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
  if (argument.fill == Fill::kBytes || !plain) {
    for (std::uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(dice.Next());
    return;
  }
  std::size_t next = 0;
  for (std::uint64_t i = 0; i + step <= bytes; i += step) {
    if (!argument.values.empty()) {
      const std::int64_t value = argument.values[next++ % argument.values.size()];
      is_float ? StoreFloat(data + i, dtype, static_cast<double>(value))
               : StoreInteger(data + i, dtype.bits, value);
    } else if (is_float) {
      double value = static_cast<double>(dice.Below(9)) - 2;
      if (argument.fill == Fill::kOrdinary) value = static_cast<double>(dice.Below(20001) - 10000) / 2500;
      if (argument.fill == Fill::kSpecial) value = SpecialFloat(dice);
      StoreFloat(data + i, dtype, value);
    } else {
      std::int64_t value = dice.Below(4);
      if (argument.fill == Fill::kOrdinary) value = dice.Below(24) - 4;
      if (argument.fill == Fill::kSpecial) value = SpecialInteger(dice);
      StoreInteger(data + i, dtype.bits, value);
    }
  }
}

}  // namespace

void* AlignedBlock(std::uint64_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

HostBlock::HostBlock(const Argument& argument, const HostBlock* within)
    : shape_(argument.shape), strides_(argument.shape.size(), 1) {
  const std::int64_t count = Elements(shape_, kMostElements);
  const auto element = static_cast<std::uint64_t>(ElementBytes(argument.dtype));
  std::uint64_t step = 1;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    strides_[i] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(shape_[i]);
  }
  std::uint64_t elements = static_cast<std::uint64_t>(count);  // that the memory has room for
  std::uint64_t first = 0;
  if (argument.layout != 0 && count > 0 && !shape_.empty()) {
    if (argument.layout == 3) {
      std::fill(strides_.begin(), strides_.end(), 0);
      elements = 1;
    } else {
      const std::int64_t spread = argument.layout == 1 ? 2 : -1;
      for (std::int64_t& stride : strides_) stride *= spread;
      if (argument.layout == 1) elements = 2 * elements - 1;
      if (argument.layout == 2) first = elements - 1;
    }
  }
  const std::uint64_t offset = argument.byte_offset / std::max<std::uint64_t>(1, element) * element;
  bytes_ = elements * element + offset;
  const std::uint64_t at = argument.alias_offset / std::max<std::uint64_t>(1, element) * element;
  if (within != nullptr && within->bytes_ >= bytes_ && at <= within->bytes_ - bytes_) {
    begin_ = within->begin_ + at;
  } else if (!(argument.null_data && bytes_ == 0)) {
    begin_ = static_cast<char*>(AlignedBlock(bytes_));
    owns_ = true;
    FillElements(argument, begin_, bytes_);
  }
  tensor_ = DLTensor{begin_ == nullptr ? nullptr : begin_ + first * element,
                     {kDLCPU, 0},
                     static_cast<int>(shape_.size()),
                     argument.dtype,
                     shape_.data(),
                     strides_.data(),
                     offset};
}

HostBlock::~HostBlock() {
  if (owns_) std::free(begin_);
}

Object* Object::Tensor(const Argument& like) {
  auto* object = new Object;
  object->block_ = std::make_unique<HostBlock>(like, nullptr);
  object->object_.header = {(std::uint64_t{1} << 32) | 1, kRewireFFITensor, 0, nullptr};
  object->object_.tensor = *object->block_->dl();
  return object;
}

Object* Object::Sequence(std::vector<RewireFFIAny> fields) {
  auto* object = new Object;
  object->fields_ = std::move(fields);
  object->object_.header = {(std::uint64_t{1} << 32) | 1, kSequenceKind, 0, nullptr};
  return object;
}

RewireFFIAny Object::any() {
  RewireFFIAny value{};
  value.type_index = object_.header.type_index;
  value.v_obj = &object_.header;
  return value;
}

const std::vector<RewireFFIAny>* Object::FieldsOf(const RewireFFIAny& value) {
  return value.type_index == kSequenceKind ? &reinterpret_cast<const Object*>(value.v_obj)->fields_ : nullptr;
}

Attributes::Attributes(const Call& call) {
  for (const auto& [name, value] : call.attributes) {
    RewireFFIAny key{}, any{};
    key.type_index = kRewireFFIRawStr;
    key.v_c_str = name.c_str();
    args_.push_back(key);
    if (const auto* i = std::get_if<std::int64_t>(&value)) {
      any.type_index = kRewireFFIInt;
      any.v_int64 = *i;
    } else if (const auto* f = std::get_if<double>(&value)) {
      any.type_index = kRewireFFIFloat;
      any.v_float64 = *f;
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      any.type_index = kRewireFFIRawStr;
      any.v_c_str = s->c_str();
    } else if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) {
      shapes_.push_back(std::make_unique<RewireFFIShapeObject>());
      shapes_.back()->cell = {l->data(), l->size()};
      any.type_index = kRewireFFIShape;
      any.v_obj = &shapes_.back()->header;
    } else if (const auto* d = std::get_if<std::vector<double>>(&value)) {
      lengths_.push_back(std::make_unique<std::int64_t>(static_cast<std::int64_t>(d->size())));
      static std::int64_t one = 1;
      lists_.push_back(std::make_unique<DLTensor>(DLTensor{const_cast<double*>(d->data()),
                                                           {kDLCPU, 0},
                                                           1,
                                                           {kDLFloat, 64, 1},
                                                           lengths_.back().get(),
                                                           &one,
                                                           0}));
      any.type_index = kRewireFFIDLTensorPtr;
      any.v_ptr = lists_.back().get();
    }
    args_.push_back(any);
  }
}

std::vector<const DLTensor*> Memory::tensors() const {
  std::vector<const DLTensor*> tensors;
  for (const auto& block : blocks_) tensors.push_back(block == nullptr ? nullptr : block->dl());
  return tensors;
}

std::unique_ptr<Memory> Memory::Make(const Call& call) {
  std::int64_t total = 0;
  for (const Argument& argument : call.arguments) {
    const std::int64_t count = argument.missing ? 0 : Elements(argument.shape, kMostElements);
    if (count < 0) return nullptr;
    total += count * std::max(1, argument.elements);
  }
  if (total > kMostElements) return nullptr;
  auto memory = std::make_unique<Memory>();
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    RewireFFIAny any{};
    memory->blocks_.push_back(nullptr);
    if (argument.sequence && !argument.missing) {
      std::vector<RewireFFIAny> fields;
      for (int k = 0; k < argument.elements; ++k) {
        Argument element = argument;
        element.seed += static_cast<std::uint64_t>(k);
        memory->objects_.emplace_back(Object::Tensor(element));
        fields.push_back(memory->objects_.back()->any());
      }
      memory->objects_.emplace_back(Object::Sequence(std::move(fields)));
      any = memory->objects_.back()->any();
    } else if (!argument.missing) {
      const auto of = static_cast<std::size_t>(argument.alias);
      const bool shares = argument.alias >= 0 && of < i && memory->blocks_[of] != nullptr;
      memory->blocks_[i] =
          std::make_unique<HostBlock>(argument, shares ? memory->blocks_[of].get() : nullptr);
      any.type_index = kRewireFFIDLTensorPtr;
      any.v_ptr = memory->blocks_[i]->dl();
    }
    memory->args_.push_back(any);
  }
  return memory;
}

}  // namespace rewire::test
