// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/op.h"

#include <cstring>
#include <limits>

#include "rewire/base/dtype.h"
#include "rewire/base/utf8.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/import/onnx_proto.h"
#include "rewire/compiler/import/tensor_data.h"
#include "rewire/compiler/ir/dim_length.h"
#include "rewire/compiler/ir/half.h"

namespace rewire::compiler {
namespace {

constexpr std::size_t kMaxKnownElements = 1024;
constexpr std::size_t kMostStringBytes = 4096;

template <typename T>
void AppendAs(const HostTensor& tensor, auto* values) {
  const std::size_t count = tensor.bytes.view.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, tensor.bytes.view.data() + i * sizeof(T), sizeof(T));
    values->push_back(element);
  }
}

}  // namespace

bool IsFloat(DLDataType dtype) { return dtype.code == kFloat || dtype.code == kBFloat; }

std::optional<Ints> KnownInts(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->IsConstant()) {
    const DLDataType dtype = value->type.dtype;
    const bool is_read = dtype == kInt64 || dtype == kInt32 || dtype == kBool8 || dtype == kUInt8;
    const HostTensor* elements = is_read ? ElementsOf(value) : nullptr;
    if (elements == nullptr) return std::nullopt;
    Ints ints;
    if (dtype == kInt64) {
      AppendAs<std::int64_t>(*elements, &ints);
    } else if (dtype == kInt32) {
      AppendAs<std::int32_t>(*elements, &ints);
    } else {
      AppendAs<std::uint8_t>(*elements, &ints);
    }
    return ints;
  }
  if (value->elements) return ConstantDims(*value->elements);
  return std::nullopt;
}

std::optional<Shape> KnownElements(const Value* value) {
  if (value == nullptr || !value->type.IsTensor() || !value->type.ranked || value->type.rank() > 1)
    return std::nullopt;
  if (value->elements) return value->elements;
  const DLDataType dtype = value->type.dtype;
  if (!value->constant || (dtype != kInt64 && dtype != kInt32)) return std::nullopt;
  if (value->constant->bytes.view.size() / ElementBytes(dtype) > kMaxKnownElements) return std::nullopt;
  const std::optional<Ints> known = KnownInts(value);
  return known ? std::optional(ShapeOfInts(*known)) : std::nullopt;
}

void SetElements(Value* value, Shape elements) {
  if (elements.size() > kMaxKnownElements || IsTooLong(elements)) return;
  // Integers wrap in a run, and expressions stay at the ends of int64: what is there, or beyond, is not
  // known.
  using Int32 = std::numeric_limits<std::int32_t>;
  using Int64 = std::numeric_limits<std::int64_t>;
  const bool narrow = value->type.dtype == kInt32;
  const std::int64_t least = narrow ? Int32::min() : Int64::min() + 1;
  const std::int64_t most = narrow ? Int32::max() : Int64::max() - 1;
  for (const DimExpr& element : elements) {
    const std::optional<std::int64_t> constant = element.constant();
    if (constant && (*constant < least || *constant > most)) return;
  }
  value->elements = std::move(elements);
}

std::optional<std::vector<double>> KnownFloats(const Value* value) {
  const HostTensor* elements = ElementsOf(value);
  if (elements == nullptr) return std::nullopt;
  std::vector<double> floats;
  if (elements->dtype == kFloat32) {
    AppendAs<float>(*elements, &floats);
  } else if (elements->dtype == kFloat64) {
    AppendAs<double>(*elements, &floats);
  } else if (IsHalf(elements->dtype)) {
    std::vector<std::uint16_t> halves;
    AppendAs<std::uint16_t>(*elements, &halves);
    for (const std::uint16_t bits : halves) floats.push_back(FloatOfHalf(elements->dtype, bits));
  } else {
    return std::nullopt;
  }
  return floats;
}

Op::Op(const onnx::NodeProto& node, std::int64_t opset, Scope* scope, Lowering* lowering)
    : node_(node), domain_(DomainOf(node.domain())), opset_(opset), scope_(*scope), lowering_(*lowering) {
  for (const std::string& name : node.input()) {
    inputs_.push_back(name.empty() ? nullptr : scope->Find(name));
  }
}

const std::string& Op::type() const { return node_.op_type(); }
int Op::outputs() const { return node_.output_size(); }
bool Op::Wants(int i) const { return i < outputs() && !node_.output(i).empty(); }

bool Op::HasPoison() const {
  for (const Value* input : inputs_) {
    if (input != nullptr && lowering_.IsPoison(input)) return true;
  }
  return false;
}

void Op::Set(int i, Value* value) {
  if (!Wants(i)) return;
  // Elements that all turned out to be numbers: part of a shape that is known.
  const std::optional<Ints> known = value->elements ? ConstantDims(*value->elements) : std::nullopt;
  if (known && !value->IsConstant() && value->type.dtype == kInt64) {
    value = Reshape(IntsValue(*known), value->type.dims);
  }
  scope_.names[node_.output(i)] = value;
  if (scope_.of_model && value->model_name.empty()) value->model_name = node_.output(i);
  lowering_.Define(value);
}

std::string Op::NextName() {
  const std::string base = node_.output_size() > 0 ? node_.output(0) : node_.op_type();
  return made_++ == 0 ? base : base + "." + std::to_string(made_ - 1);
}

const onnx::AttributeProto* Op::Find(const std::string& name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    read_.insert(&attribute);
    if (attribute.ref_attr_name().empty()) return &attribute;
    // In a function's body: what the call gives, or the function's default. A call that names an attribute
    // which the function around it has not got gives nothing.
    const std::string* wanted = &attribute.ref_attr_name();
    const onnx::AttributeProto* otherwise = nullptr;
    for (const Scope* scope = &scope_; scope != nullptr && scope->call != nullptr;
         scope = scope->call_scope) {
      const onnx::AttributeProto* given = nullptr;
      for (const onnx::AttributeProto& candidate : scope->call->attribute()) {
        if (candidate.name() == *wanted) given = &candidate;
      }
      if (given != nullptr && given->ref_attr_name().empty()) return given;
      const onnx::AttributeProto* by_default = lowering_.model().FindDefault(*scope->function, *wanted);
      if (by_default != nullptr) otherwise = by_default;
      if (given == nullptr) break;
      wanted = &given->ref_attr_name();
    }
    return otherwise;
  }
  return nullptr;
}

const onnx::AttributeProto* Op::FindTyped(const std::string& name, int type) const {
  const onnx::AttributeProto* attribute = Find(name);
  if (attribute == nullptr || attribute->type() == type) return attribute;
  const auto type_name = [](int value) {
    return onnx::AttributeProto::AttributeType_Name(static_cast<onnx::AttributeProto::AttributeType>(value));
  };
  if (failure_) {
    failure_ = Invalid("attribute '{}' is of type {}, expected {}", name, type_name(attribute->type()),
                       type_name(type));
  }
  return nullptr;
}

std::int64_t Op::Int(const std::string& name, std::int64_t fallback) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::INT);
  return attribute != nullptr ? attribute->i() : fallback;
}

double Op::Float(const std::string& name, double fallback) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::FLOAT);
  return attribute != nullptr ? attribute->f() : fallback;
}

std::string Op::String(const std::string& name, const std::string& fallback) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::STRING);
  if (attribute == nullptr) return fallback;
  return Printable(attribute->s(), kMostStringBytes);  // kernels get it as it is, and quote it in errors
}

Ints Op::IntList(const std::string& name, const Ints& fallback) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return fallback;
  return Ints(attribute->ints().begin(), attribute->ints().end());
}

std::vector<double> Op::FloatList(const std::string& name) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return {};
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

std::vector<std::string> Op::StringList(const std::string& name) const {
  const onnx::AttributeProto* attribute = FindTyped(name, onnx::AttributeProto::STRINGS);
  if (attribute == nullptr) return {};
  std::vector<std::string> strings;
  for (const std::string& text : attribute->strings()) strings.push_back(Printable(text, kMostStringBytes));
  return strings;
}

Result<HostTensor> Op::TensorAttribute(const std::string& name) const {
  const onnx::AttributeProto* attribute = Find(name);
  if (attribute == nullptr || !attribute->has_t()) return Invalid("attribute '{}' is no tensor", name);
  return ReadTensorProto(attribute->t(), lowering_.model().external(), lowering_.model().proto());
}

const onnx::GraphProto* Op::GraphAttribute(const std::string& name) const {
  const onnx::AttributeProto* attribute = Find(name);
  return attribute != nullptr && attribute->has_g() ? &attribute->g() : nullptr;
}

const onnx::TypeProto* Op::TypeAttribute(const std::string& name) const {
  const onnx::AttributeProto* attribute = Find(name);
  return attribute != nullptr && attribute->has_tp() ? &attribute->tp() : nullptr;
}

Result<DLDataType> Op::DTypeAttribute(const std::string& name, DLDataType fallback) const {
  if (!HasAttribute(name)) return fallback;
  const auto number = static_cast<std::int32_t>(Int(name, 0));
  const std::optional<DLDataType> dtype = DTypeOfOnnx(number);
  if (!dtype) return Unsupported("{} is {}", name, OnnxTypeName(number));
  return *dtype;
}

Result<int> Op::Axis(std::int64_t axis, int rank) const {
  int normalized = 0;
  if (Status fits = contract::NormalizeAxis(axis, rank, &normalized, ShapeError()); !fits)
    return Forward(fits);
  return normalized;
}

Result<Shape> Op::Broadcast(ShapeSpan a, ShapeSpan b) const {
  Shape left(a.begin(), a.end()), right(b.begin(), b.end()), result;
  const std::size_t shared = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const std::optional<DimExpr::AtMost> fact =
        DimExpr::ImpliedByBroadcast(left[a.size() - shared + i], right[b.size() - shared + i]);
    if (!fact) continue;
    for (Shape* shape : {&left, &right}) {
      for (DimExpr& dim : *shape) dim = dim.Given(*fact);
    }
  }
  if (Status fits = contract::BroadcastSizes(left, right, &result, ShapeError()); !fits) return Forward(fits);
  return result;
}

}  // namespace rewire::compiler
