// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/hostile/inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "rewire/base/dtype.h"

namespace rewire::hostile {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr DLDataType kTypes[] = {kFloat32, kInt64, kInt32, kUInt8, kBool8, kFloat64, kInt8, kFloat16};

template <typename T>
void Store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(T));
}

// `wild`: values that programs do not expect. Otherwise small ones.
void FillElement(DLDataType dtype, bool wild, Dice& dice, std::byte* to) {
  const auto small = static_cast<std::int64_t>(dice.Below(7)) - 2;
  if (dtype.code == kBool) return Store(static_cast<std::uint8_t>(dice.Below(2)), to);
  if (dtype.code == kFloat && dtype.bits >= 32) {
    static const std::vector<double> kWild = {1e30,
                                              -1e30,
                                              1e9,
                                              -0.0,
                                              1e-40,
                                              std::numeric_limits<double>::infinity(),
                                              -std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
    const double value = wild ? dice.Pick(kWild) : static_cast<double>(small) * 0.5;
    if (dtype.bits == 64) return Store(value, to);
    return Store(static_cast<float>(value), to);
  }
  const auto width = static_cast<std::size_t>(ElementBytes(dtype));
  // Integers; of types without numbers of their own here, bits: 0x3C00 is 1 in 16 bits.
  const bool is_integer = dtype.code == kInt || dtype.code == kUInt;
  std::int64_t bits = is_integer ? std::max<std::int64_t>(small, dtype.code == kUInt ? 0 : -2) : 0x3C00;
  if (wild) bits = dice.Interesting();
  std::byte source[8];
  std::memcpy(source, &bits, sizeof(bits));
  for (std::size_t i = 0; i < width; ++i) to[i] = i < 8 ? source[i] : std::byte{0};
}

}  // namespace

class Inputs::Maker {
 public:
  Maker(const Module& module, GuardedMemory& memory, Dice& dice, std::vector<Bytes>* made)
      : module_(module), memory_(memory), dice_(dice), made_(made) {}

  struct Made {
    TensorView view;
    GuardedBlock block;
  };

  std::optional<Made> Tensor(const rewire::TypeNode& type) {
    if (type.device != kHostDevice && type.device != kAnyDevice) return std::nullopt;
    DLDataType dtype = type.dtype;
    if (dtype == kUnknownDType) dtype = kTypes[dice_.Below(std::size(kTypes))];
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = ElementBytes(dtype);
    if (type.rank == kUnknownRank) {
      for (std::uint64_t i = dice_.Below(4); i > 0; --i)
        shape.push_back(static_cast<std::int64_t>(dice_.Below(4)));
    }
    for (const Dim dim : type.dims) shape.push_back(Size(dim));
    // Any order would do: a dimension of 0 must not hide a product that overflows, only make no bytes.
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    for (const std::int64_t dim : shape) {
      if (empty) break;
      if (static_cast<std::uint64_t>(dim) > kMostBytes / bytes) return std::nullopt;
      bytes *= static_cast<std::uint64_t>(dim);
    }
    if (empty) bytes = 0;
    const std::optional<GuardedBlock> block = memory_.Take(bytes, Alignment(dtype));
    if (!block) return std::nullopt;
    const bool wild = dice_.OneIn(6);
    const auto width = static_cast<std::size_t>(ElementBytes(dtype));
    for (std::size_t at = 0; at + width <= bytes; at += width)
      FillElement(dtype, wild && dice_.OneIn(3), dice_, block->write + at);
    made_->push_back({*block, std::string(reinterpret_cast<const char*>(block->write), bytes)});
    return Made{TensorView(block->read, dtype, Span<const std::int64_t>(shape.data(), shape.size())), *block};
  }

  // A subtree of a type; `*node` moves behind it. None: nothing can be made.
  Value Tree(const Array<rewire::TypeNode>& nodes, std::size_t* node, int depth) {
    const rewire::TypeNode& type = nodes[(*node)++];
    switch (type.kind) {
      case rewire::TypeKind::kTensor: {
        const std::optional<Made> made = Tensor(type);
        if (!made) return {};
        Result<rewire::Tensor> tensor = rewire::Tensor::Wrap(made->view, nullptr);
        return tensor ? Value(*std::move(tensor)) : Value();
      }
      case rewire::TypeKind::kAdt: {
        std::vector<Value> fields;
        for (std::uint32_t i = 0; i < type.field_count; ++i) {
          if (depth > 100) return {};
          fields.push_back(Tree(nodes, node, depth + 1));
          if (fields.back().kind() == ValueKind::kNone) return {};
        }
        Result<Value> adt = Value::Adt(type.tag, Span<const Value>(fields.data(), fields.size()));
        return adt ? *std::move(adt) : Value();
      }
      case rewire::TypeKind::kInteger:
        return Integer();
      case rewire::TypeKind::kValue: {
        if (dice_.OneIn(3)) return Integer();
        Array<rewire::TypeNode> some;
        rewire::TypeNode tensor;
        tensor.kind = rewire::TypeKind::kTensor;
        if (dice_.OneIn(4)) {
          rewire::TypeNode adt;
          adt.kind = rewire::TypeKind::kAdt;
          adt.tag = static_cast<std::uint32_t>(dice_.Below(3));
          adt.field_count = 2;
          some.push_back(adt);
          some.push_back(tensor);
        }
        some.push_back(tensor);
        std::size_t first = 0;
        return Tree(some, &first, depth + 1);
      }
      case rewire::TypeKind::kClosure:
      case rewire::TypeKind::kStorage:
        return {};
    }
    return {};
  }

 private:
  static std::size_t Alignment(DLDataType dtype) {
    const std::uint64_t bytes = ElementBytes(dtype);
    return bytes != 0 && (bytes & (bytes - 1)) == 0 ? static_cast<std::size_t>(bytes) : 16;
  }
  Value Integer() {
    return Value(dice_.OneIn(3) ? dice_.Interesting() : static_cast<std::int64_t>(dice_.Below(5)));
  }
  std::int64_t Size(Dim dim) {
    if (dim >= 0) return dim;
    const auto size = static_cast<std::int64_t>(dice_.OneIn(8) ? dice_.Below(2) : 1 + dice_.Below(4));
    if (!IsSymbol(dim)) return size;
    const std::uint32_t symbol = SymbolOf(dim);
    std::int64_t known = size;
    if (symbol < module_.symbol_limits.size() && module_.symbol_limits[symbol] >= 0)
      known = std::min(known, module_.symbol_limits[symbol]);
    return symbols_.emplace(symbol, known).first->second;
  }

  const Module& module_;
  GuardedMemory& memory_;
  Dice& dice_;
  std::vector<Bytes>* made_;
  std::map<std::uint32_t, std::int64_t> symbols_;
};

std::optional<Inputs> Inputs::For(const Module& module, const Function& function, GuardedMemory& memory,
                                  Dice& dice) {
  Inputs inputs;
  Maker maker(module, memory, dice, &inputs.bytes_);
  for (const NamedType& type : function.inputs) {
    Input input;
    if (type.type.nodes[0].kind == rewire::TypeKind::kTensor) {
      std::optional<Maker::Made> made = maker.Tensor(type.type.nodes[0]);
      if (!made) return std::nullopt;
      input.view = std::move(made->view);
      input.block = made->block;
    } else {
      std::size_t node = 0;
      input.value = maker.Tree(type.type.nodes, &node, 0);
      if (input.value.kind() == ValueKind::kNone) return std::nullopt;
    }
    inputs.inputs_.push_back(std::move(input));
  }
  return inputs;
}

std::optional<ParameterSet> Inputs::Parameters(const Module& module, GuardedMemory& memory, Dice& dice) {
  ParameterSet set;
  std::vector<Bytes> made;
  Maker maker(module, memory, dice, &made);
  for (const rewire::Constant& constant : module.constants) {
    if (constant.kind != rewire::ConstantKind::kParameter) continue;
    const std::optional<Maker::Made> tensor = maker.Tensor(constant.type);
    if (!tensor) return std::nullopt;
    Result<Tensor> wrapped = Tensor::Wrap(tensor->view, nullptr);
    if (!wrapped) return std::nullopt;
    set.Set(constant.name, *std::move(wrapped));
  }
  return set;
}

Status Inputs::Set(VirtualMachine& vm, std::uint32_t function, bool writable) const {
  for (std::uint32_t i = 0; i < inputs_.size(); ++i) {
    const InputHandle handle{function, i};
    const Input& input = inputs_[i];
    Status set;
    if (input.view) {
      TensorView view = *input.view;
      if (writable) view.MoveTo(input.block.write);
      set = vm.TrySetInput(handle, view);
    } else {
      set = vm.TrySetInput(handle, input.value);
    }
    if (!set) return set;
  }
  return {};
}

bool Inputs::Unchanged() const {
  return std::all_of(bytes_.begin(), bytes_.end(), [](const Bytes& bytes) {
    return bytes.content.empty() ||
           std::memcmp(bytes.block.read, bytes.content.data(), bytes.content.size()) == 0;
  });
}

void Inputs::Restore() const {
  for (const Bytes& bytes : bytes_) {
    if (!bytes.content.empty()) std::memcpy(bytes.block.write, bytes.content.data(), bytes.content.size());
  }
}

const GuardedBlock* Inputs::Block(std::size_t input) const {
  return inputs_[input].view ? &inputs_[input].block : nullptr;
}

}  // namespace rewire::hostile
