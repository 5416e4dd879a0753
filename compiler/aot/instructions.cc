// SPDX-License-Identifier: Apache-2.0
// This file says how each instruction changes what is known of the registers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/static_program.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/vm/value/shape.h"

namespace rewire::aot {
namespace {

using Kind = Value::Kind;

}  // namespace

// The instruction always fails: nothing behind it is reached.
Status StaticProgram::Fails(StatusCode code, const std::string& text, Next* next) {
  if (pass_ == Pass::kSource) EmitFailure(code, fmt::format("{}: {}", Where(), text), "  ");
  *next = Next::kEnd;
  return {};
}

Status StaticProgram::NeedKind(const State& state, std::uint32_t reg, Kind kind, Next* next) {
  if (state[reg].kind == kind) return {};
  return Fails(StatusCode::kRuntimeFailed,
               fmt::format("a register holds {}, {} is expected", KindName(state[reg].kind), KindName(kind)),
               next);
}

// The elements of a tensor of integers, if they are known.
std::optional<std::vector<std::int64_t>> StaticProgram::ElementsOf(const Value& tensor) {
  const std::uint64_t count = aot::ElementsOf(tensor.dims);
  if (tensor.place.base == Place::Base::kLiteral) return literals_->ElementsAt(tensor.place.index);
  if (tensor.place.base != Place::Base::kConstant) return std::nullopt;
  const Result<const Literals::Decoded*> decoded = literals_->Decode(tensor.place.index);
  if (!decoded) return std::nullopt;
  return IntegersIn((*decoded)->bytes, tensor.dtype, tensor.place.offset, count);
}

std::optional<std::vector<double>> StaticProgram::FloatsOf(const Value& tensor) {
  if (tensor.place.base != Place::Base::kConstant) return std::nullopt;
  const Result<const Literals::Decoded*> decoded = literals_->Decode(tensor.place.index);
  if (!decoded) return std::nullopt;
  return FloatsIn((*decoded)->bytes, tensor.dtype, tensor.place.offset, aot::ElementsOf(tensor.dims));
}

Status StaticProgram::ReadInteger(const Value& value, const char* what, Number* number, std::string* text,
                                  Next* next) {
  if (value.kind == Kind::kInteger) {
    *number = value.number;
    *text = NumberText(value.number);
    return {};
  }
  if (value.kind != Kind::kTensor) {
    return Fails(StatusCode::kRuntimeFailed, fmt::format("{} is no integer scalar", what), next);
  }
  if (!IsIntegerDType(value.dtype) || aot::ElementsOf(value.dims) != 1) {
    return Fails(StatusCode::kRuntimeFailed,
                 fmt::format("{} is a tensor {}, an integer scalar is expected", what, TensorText(value)),
                 next);
  }
  if (const auto elements = ElementsOf(value)) {
    *number = {true, (*elements)[0], 0};
    *text = NumberText(*number);
    return {};
  }
  *number = {false, 0, kLoaded};
  if (pass_ == Pass::kSource) {
    const bool is_unsigned = value.dtype.code != kInt;
    *text = fmt::format("{}_load_{}{}({})", options_.prefix, is_unsigned ? "u" : "i",
                        value.dtype.bits == 1 ? 8 : value.dtype.bits, Address(value.place));
  }
  return {};
}

Status StaticProgram::ReadShape(const Value& value, bool allow_scalar, std::vector<std::int64_t>* dims,
                                Next* next) {
  if (value.kind == Kind::kInteger) {
    if (!value.number.known)
      return Refuse("the shape depends on data, so it is known only when the program runs");
    *dims = {value.number.value};
    return {};
  }
  if (value.kind != Kind::kTensor) {
    return Fails(StatusCode::kRuntimeFailed, "the shape is no tensor", next);
  }
  const bool right = (value.dtype == kInt64 || value.dtype == kInt32) && value.dims.size() <= 1 &&
                     (allow_scalar || value.dims.size() == 1) &&
                     aot::ElementsOf(value.dims) <= static_cast<std::uint64_t>(kMaxRank);
  if (!right) {
    return Fails(
        StatusCode::kRuntimeFailed,
        fmt::format("the shape is a tensor {}, int32 or int64 of rank 1 is expected", TensorText(value)),
        next);
  }
  const auto elements = ElementsOf(value);
  if (!elements) {
    return Refuse("the shape depends on data, so it is known only when the program runs");
  }
  *dims = *elements;
  return {};
}

// An integer as the read-only scalar that kernels and reshapes take.
Value StaticProgram::BoxInteger(const Value& integer) {
  Value tensor;
  tensor.kind = Kind::kTensor;
  tensor.dtype = integer.is_narrow ? kInt32 : kInt64;
  tensor.bytes = integer.is_narrow ? 4 : 8;
  tensor.is_read_only = true;
  if (integer.number.known) {
    tensor.place = {Place::Base::kLiteral, literals_->Add(tensor.dtype, {integer.number.value}), 0};
  } else {
    tensor.place = {Place::Base::kNumber, integer.number.variable, 0};
  }
  return tensor;
}

// The leaf of the entry point's result in whose memory the plan allows the tensor of this instruction.
std::int32_t StaticProgram::OutputHere() const {
  const std::uint32_t site = plans_[frame_->function].SiteAt(pc_);
  if (site == FunctionPlan::kNotRewired || site > frame_->destinations.size()) return Frame::kNowhere;
  return frame_->destinations[site - 1];
}

bool StaticProgram::TakesOutput(std::int32_t leaf, const Value& tensor) const {
  if (leaf == Frame::kNowhere) return false;
  const Leaf& output = outputs_[static_cast<std::size_t>(leaf)];
  const std::optional<std::uint64_t> bytes =
      TensorBytes(output.dtype, {output.dims.data(), output.dims.size()});
  return output.is_tensor && output.dtype == tensor.dtype && bytes == tensor.bytes;
}

Status StaticProgram::AllocStorage(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kAllocStorage;
  const std::uint32_t size_register = code_[WordOf(kOp, "size")];
  std::int64_t bytes = 0;
  if (size_register != kNone) {
    Number number;
    std::string text;
    Status read = ReadInteger((*state)[size_register], "size", &number, &text, next);
    if (!read || *next == Next::kEnd) return read;
    if (!number.known) return Refuse("the size depends on data, so it is known only when the program runs");
    bytes = number.value;
  } else {
    const DimsView shape(code_ + WordOf(kOp, "shape"));
    bytes = static_cast<std::int64_t>(ElementBytes(DecodeDType(code_[WordOf(kOp, "dtype")])));
    for (std::uint32_t i = 0; i < shape.size(); ++i) bytes *= shape[i];
  }
  if (code_[WordOf(kOp, "device")] != kHostDevice)
    return Refuse("the storage is on a device, not on the host");
  if (bytes < 0) {
    return Fails(StatusCode::kRuntimeFailed, fmt::format("a storage of {} bytes asked for", bytes), next);
  }
  const std::uint32_t site = SiteHere(static_cast<std::uint64_t>(bytes));
  if (pass_ == Pass::kMemory && places_ == PlacesOf::kStorages) {
    if (Status noted = NoteLive(site, *state); !noted) return noted;
  }
  if (pass_ == Pass::kSource) EmitSite(site, *state);
  Value storage;
  storage.kind = Kind::kStorage;
  storage.bytes = static_cast<std::uint64_t>(bytes);
  storage.place = {Place::Base::kStorage, site, 0};
  (*state)[code_[WordOf(kOp, "dst")]] = std::move(storage);
  return {};
}

// AllocTensor and AllocTensorReg, whose operands stand in the same words.
Status StaticProgram::AllocTensor(State* state, Next* next, const std::vector<std::int64_t>& dims) {
  constexpr Opcode kOp = Opcode::kAllocTensor;
  const bool by_register = OpcodeOf(*code_) == Opcode::kAllocTensorReg;
  const std::uint32_t storage_register = code_[WordOf(kOp, "storage")];
  const std::uint32_t offset_register = code_[WordOf(kOp, "offset")];
  const std::uint32_t dtype_word =
      by_register ? WordOf(Opcode::kAllocTensorReg, "dtype") : WordOf(kOp, "dtype");
  const std::uint32_t dst = code_[by_register ? WordOf(Opcode::kAllocTensorReg, "dst") : WordOf(kOp, "dst")];
  Value tensor;
  tensor.kind = Kind::kTensor;
  tensor.dtype = DecodeDType(code_[dtype_word]);
  tensor.dims = dims;
  const std::optional<std::uint64_t> bytes = TensorBytes(tensor.dtype, {dims.data(), dims.size()});
  if (!bytes) {
    return Fails(StatusCode::kRuntimeFailed, "a dimension of the shape is negative, or its size overflows",
                 next);
  }
  tensor.bytes = *bytes;
  if (Status kind = NeedKind(*state, storage_register, Kind::kStorage, next); !kind || *next == Next::kEnd) {
    return kind;
  }
  const Value& storage = (*state)[storage_register];
  Number offset;
  std::string text;
  if (offset_register != kNone) {
    Status read = ReadInteger((*state)[offset_register], "offset", &offset, &text, next);
    if (!read || *next == Next::kEnd) return read;
    if (!offset.known) return Refuse("the offset is known only when the program runs");
  }
  const auto start = static_cast<std::uint64_t>(offset.value);
  const std::uint64_t element = ElementBytes({tensor.dtype.code, tensor.dtype.bits, 1});
  if (start > storage.bytes || tensor.bytes > storage.bytes - start || (start != 0 && start % element != 0)) {
    return Fails(StatusCode::kRuntimeFailed,
                 fmt::format("{} at offset {} does not lie in the {} bytes of the storage, or is not aligned",
                             TensorText(tensor), offset.value, storage.bytes),
                 next);
  }
  const std::int32_t output = OutputHere();
  if (TakesOutput(output, tensor)) {
    tensor.place = {Place::Base::kOutput, static_cast<std::uint32_t>(output), 0};
  } else if (places_ == PlacesOf::kTensors) {
    Place origin = storage.place;
    origin.offset += start;
    if (Status placed = AllocTensorApart(*state, origin, &tensor); !placed) return placed;
  } else {
    tensor.place = storage.place;
    tensor.place.offset += start;
    if (pass_ == Pass::kMemory) {
      if (storage.place.base == Place::Base::kStorage) sites_[storage.place.index].is_used = true;
      if (storage.place.base == Place::Base::kVariable) {
        for (const std::uint32_t site : variables_[storage.place.index].sites) sites_[site].is_used = true;
      }
    }
  }
  (*state)[dst] = std::move(tensor);
  return {};
}

Status StaticProgram::Reshape(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kReshapeTensor;
  const std::uint32_t source = code_[WordOf(kOp, "tensor")];
  std::vector<std::int64_t> dims;
  Status read = ReadShape((*state)[code_[WordOf(kOp, "shape")]], false, &dims, next);
  if (!read || *next == Next::kEnd) return read;
  if ((*state)[source].kind == Kind::kInteger) (*state)[source] = BoxInteger((*state)[source]);
  if (Status kind = NeedKind(*state, source, Kind::kTensor, next); !kind || *next == Next::kEnd) return kind;
  Value view = (*state)[source];
  const bool fits = TensorBytes(view.dtype, {dims.data(), dims.size()}).has_value();
  const std::optional<std::int64_t> count = CountElements({dims.data(), dims.size()});
  if (!fits || !count || static_cast<std::uint64_t>(*count) != aot::ElementsOf(view.dims)) {
    return Fails(StatusCode::kRuntimeFailed,
                 fmt::format("a tensor {} cannot have the shape asked for", TensorText(view)), next);
  }
  view.dims = std::move(dims);
  (*state)[code_[WordOf(kOp, "dst")]] = std::move(view);
  return {};
}

Status StaticProgram::DeviceCopy(State* state, Next* next) {
  constexpr Opcode kOp = Opcode::kDeviceCopy;
  const std::uint32_t source = code_[WordOf(kOp, "src")];
  if (code_[WordOf(kOp, "src_device")] != kHostDevice || code_[WordOf(kOp, "dst_device")] != kHostDevice) {
    return Refuse("a device is used; only host memory can be");
  }
  if ((*state)[source].kind == Kind::kInteger) (*state)[source] = BoxInteger((*state)[source]);
  if (Status kind = NeedKind(*state, source, Kind::kTensor, next); !kind || *next == Next::kEnd) return kind;
  Value copy = (*state)[source];
  const Place from = copy.place;
  copy.is_read_only = copy.is_unsure = false;
  const std::uint32_t site = SiteHere(copy.bytes);
  const std::int32_t output = OutputHere();
  if (TakesOutput(output, copy)) {
    copy.place = {Place::Base::kOutput, static_cast<std::uint32_t>(output), 0};
  } else {
    copy.place = {Place::Base::kStorage, site, 0};
    if (pass_ == Pass::kMemory) {
      sites_[site].is_used = true;
      if (Status noted = NoteLive(site, *state); !noted) return noted;
      // The source is read while the copy is written, and may be of no use afterwards.
      NoteBeside(site, from);
      if (from.base == Place::Base::kVariable && variables_[from.index].sites.count(site) != 0) {
        return Refuse("it copies what it has made in an earlier round of a loop");
      }
    }
    if (pass_ == Pass::kSource) EmitSite(site, *state);
  }
  if (pass_ == Pass::kSource && copy.bytes != 0) {
    Emit(fmt::format("  memcpy({}, {}, {});", Address(copy.place), Address(from), copy.bytes));
  }
  (*state)[code_[WordOf(kOp, "dst")]] = std::move(copy);
  return {};
}

}  // namespace rewire::aot
