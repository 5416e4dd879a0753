// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/literals.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/c_names.h"
#include "rewire/executable_format/constant_data.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value/shape.h"

namespace rewire::aot {
namespace {

template <typename T>
T ElementAt(const std::vector<std::byte>& bytes, std::size_t i) {
  T element;
  std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
  return element;
}

template <typename T>
bool AllFinite(const std::vector<std::byte>& bytes) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    if (!std::isfinite(ElementAt<T>(bytes, i))) return false;
  }
  return true;
}

// INT64_MIN and INT32_MIN have no literal of their own: "-" is an operator.
std::string IntegerText(std::int64_t value, bool is_wide) {
  if (!is_wide) return value == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", value);
  return value == INT64_MIN ? "(-INT64_C(9223372036854775807) - 1)" : fmt::format("INT64_C({})", value);
}

template <typename T, typename Wide = std::int64_t>
std::vector<Wide> WideElements(const std::vector<std::byte>& bytes, std::uint64_t offset,
                               std::uint64_t count) {
  std::vector<Wide> elements;
  for (std::uint64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, bytes.data() + offset + i * sizeof(T), sizeof(T));
    elements.push_back(static_cast<Wide>(element));
  }
  return elements;
}

template <typename Element>
std::string Listed(std::size_t count, const Element& element) {
  std::string text;
  std::size_t column = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string one = element(i);
    if (column + one.size() > 110) {
      text += "\n";
      column = 0;
    }
    text += column == 0 ? "  " : " ";
    text += one + ",";
    column += one.size() + 2;
  }
  return text + "\n";
}

// The type and the elements of an array that has these bytes.
std::pair<std::string, std::string> ArrayText(DLDataType dtype, const std::vector<std::byte>& bytes) {
  const bool is_float = dtype.code == kDLFloat && dtype.lanes == 1;
  if (is_float && dtype.bits == 32 && AllFinite<float>(bytes)) {
    return {"float", Listed(bytes.size() / 4, [&](std::size_t i) {
              std::string text = fmt::format("{:.9g}", ElementAt<float>(bytes, i));
              if (text.find_first_of(".e") == std::string::npos) text += ".0";
              return text + "f";
            })};
  }
  if (is_float && dtype.bits == 64 && AllFinite<double>(bytes)) {
    return {"double", Listed(bytes.size() / 8, [&](std::size_t i) {
              std::string text = fmt::format("{:.17g}", ElementAt<double>(bytes, i));
              return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
            })};
  }
  // The bits of what C cannot spell, with the alignment of an element.
  switch (ElementBytes({dtype.code, dtype.bits, 1})) {
    case 8:
      return {"int64_t", Listed(bytes.size() / 8, [&](std::size_t i) {
                return IntegerText(ElementAt<std::int64_t>(bytes, i), true);
              })};
    case 4:
      if (dtype.code != kDLInt) {
        return {"uint32_t", Listed(bytes.size() / 4, [&](std::size_t i) {
                  return fmt::format("{}u", ElementAt<std::uint32_t>(bytes, i));
                })};
      }
      return {"int32_t", Listed(bytes.size() / 4, [&](std::size_t i) {
                return IntegerText(ElementAt<std::int32_t>(bytes, i), false);
              })};
    case 2:
      return {"uint16_t", Listed(bytes.size() / 2, [&](std::size_t i) {
                return fmt::format("{}", ElementAt<std::uint16_t>(bytes, i));
              })};
    default:
      if (dtype.code == kDLInt) {
        return {"int8_t", Listed(bytes.size(), [&](std::size_t i) {
                  return fmt::format("{}", static_cast<int>(ElementAt<std::int8_t>(bytes, i)));
                })};
      }
      return {"uint8_t", Listed(bytes.size(), [&](std::size_t i) {
                return fmt::format("{}", static_cast<int>(ElementAt<std::uint8_t>(bytes, i)));
              })};
  }
}

}  // namespace

bool IsIntegerDType(DLDataType dtype) {
  const bool integral = dtype.code == kInt || dtype.code == kUInt || dtype.code == kBool;
  const bool whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  return integral && dtype.lanes == 1 && (whole || dtype.bits == 1);
}

std::optional<std::vector<std::int64_t>> IntegersIn(const std::vector<std::byte>& bytes, DLDataType dtype,
                                                    std::uint64_t offset, std::uint64_t count) {
  if (!IsIntegerDType(dtype)) return std::nullopt;
  const bool is_signed = dtype.code == kInt;
  switch (dtype.bits) {
    case 64:
      return WideElements<std::int64_t>(bytes, offset, count);
    case 32:
      return is_signed ? WideElements<std::int32_t>(bytes, offset, count)
                       : WideElements<std::uint32_t>(bytes, offset, count);
    case 16:
      return is_signed ? WideElements<std::int16_t>(bytes, offset, count)
                       : WideElements<std::uint16_t>(bytes, offset, count);
    default:
      return is_signed ? WideElements<std::int8_t>(bytes, offset, count)
                       : WideElements<std::uint8_t>(bytes, offset, count);
  }
}

std::optional<std::vector<double>> FloatsIn(const std::vector<std::byte>& bytes, DLDataType dtype,
                                            std::uint64_t offset, std::uint64_t count) {
  if (dtype == kFloat32) return WideElements<float, double>(bytes, offset, count);
  if (dtype == kFloat64) return WideElements<double, double>(bytes, offset, count);
  return std::nullopt;
}

std::string ElementType(DLDataType dtype) {
  const bool is_signed = dtype.code == kDLInt;
  if (dtype.lanes == 1 && dtype.code == kDLFloat && dtype.bits == 32) return "float";
  if (dtype.lanes == 1 && dtype.code == kDLFloat && dtype.bits == 64) return "double";
  const std::uint64_t bytes = ElementBytes({dtype.code, dtype.bits, 1});
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return "uint8_t";
  return fmt::format("{}int{}_t", is_signed ? "" : "u", bytes * 8);
}

Result<Literals::Decoded> Literals::FromFile(const Constant& source) const {
  Decoded decoded;
  decoded.dims.assign(source.type.dims.begin(), source.type.dims.end());
  decoded.bytes.resize(source.raw_bytes);
  Status status = DecodeConstant(source, {}, {decoded.bytes.data(), decoded.bytes.size()});
  if (!status) return Forward(status, source.name);
  return decoded;
}

Result<Literals::Decoded> Literals::FromSet(const Constant& source) const {
  const ParameterSet& set = options_.constants;
  const std::size_t found = source.name.empty() ? set.size() : set.Find(source.name);
  if (found == set.size()) {
    return Fail(StatusCode::kUnsupported,
                "constant {} is {}, so its value is not in the file. Give it in EmitCOptions::constants",
                source.name,
                source.kind == ConstantKind::kParameter ? "a parameter" : "computed when linked");
  }
  const Result<Tensor> tensor = set.TryGet(found);
  if (!tensor) return Forward(tensor, source.name);
  const TensorView view = tensor->view();
  Decoded decoded;
  decoded.dims.assign(view.shape().begin(), view.shape().end());
  bool fits = view.dtype() == source.type.dtype && decoded.dims.size() == source.type.dims.size();
  for (std::size_t i = 0; fits && i < decoded.dims.size(); ++i) {
    fits = source.type.dims[i] < 0 || source.type.dims[i] == decoded.dims[i];
  }
  if (!fits || !IsHostDevice(view.device()) || !view.IsContiguous()) {
    return Fail(StatusCode::kUnsupported,
                "constant {} is {}{} in EmitCOptions::constants, expected {}{} on the host", source.name,
                DTypeName(view.dtype()), ShapeText(view.shape()), DTypeName(source.type.dtype),
                ShapeText({source.type.dims.data(), source.type.dims.size()}));
  }
  const auto* const data = static_cast<const std::byte*>(view.data());
  if (view.bytes() != 0) decoded.bytes.assign(data, data + view.bytes());
  return decoded;
}

Result<const Literals::Decoded*> Literals::Decode(std::uint32_t constant) {
  const auto found = decoded_.find(constant);
  if (found != decoded_.end()) return &found->second;
  const Constant& source = module_.constants[constant];
  Result<Decoded> decoded = source.kind == ConstantKind::kData ? FromFile(source) : FromSet(source);
  if (!decoded) return Forward(decoded);
  return &decoded_.emplace(constant, *std::move(decoded)).first->second;
}

std::uint32_t Literals::Add(DLDataType dtype, const std::vector<std::int64_t>& elements) {
  for (std::uint32_t i = 0; i < literals_.size(); ++i) {
    if (literals_[i].dtype == dtype && literals_[i].elements == elements) return i;
  }
  literals_.push_back({dtype, elements});
  return static_cast<std::uint32_t>(literals_.size() - 1);
}

std::string Literals::UseConstant(std::uint32_t constant) {
  constexpr std::size_t kAlignment = 16;
  const bool is_behind = options_.weights == CWeights::kPointer;
  const auto [found, is_new] = used_.try_emplace(constant, weights_.size());
  if (is_new && is_behind) {
    const std::vector<std::byte>& bytes = decoded_.at(constant).bytes;
    weights_.insert(weights_.end(), bytes.begin(), bytes.end());
    weights_.resize((weights_.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  return is_behind ? fmt::format("(weight_bytes + {})", found->second)
                   : fmt::format("(const unsigned char *){}_constant_{}", options_.prefix, constant);
}

std::string Literals::UseLiteral(std::uint32_t literal) {
  literals_[literal].is_used = true;
  return fmt::format("(const unsigned char *){}_integers_{}", options_.prefix, literal);
}

std::string Literals::Text() const {
  std::string text;
  const std::string& prefix = options_.prefix;
  for (const auto& [constant, offset] : used_) {
    if (options_.weights == CWeights::kPointer) break;
    const std::vector<std::byte>& bytes = decoded_.at(constant).bytes;
    const Constant& source = module_.constants[constant];
    std::string name = source.name;
    for (char& c : name) {
      if (c < ' ' || c > '~' || c == '/' || c == '*' || c == '\\' || c == '?') c = '_';  // ends no comment
    }
    if (bytes.empty()) {
      text += fmt::format("static const uint8_t {}_constant_{}[1] = {{0}};\n", prefix, constant);
      continue;
    }
    const auto [type, elements] = ArrayText(source.type.dtype, bytes);
    text += fmt::format("/* {} */\nstatic const {} {}_constant_{}[] {}_WEIGHTS = {{\n{}}};\n", name, type,
                        prefix, constant, Upper(prefix), elements);
  }
  for (std::uint32_t i = 0; i < literals_.size(); ++i) {
    const Literal& literal = literals_[i];
    if (!literal.is_used) continue;
    const bool is_wide = literal.dtype.bits == 64;
    const auto element = [&](std::size_t k) { return IntegerText(literal.elements[k], is_wide); };
    text += fmt::format("static const {} {}_integers_{}[] = {{\n{}}};\n", ElementType(literal.dtype), prefix,
                        i, literal.elements.empty() ? "  0\n" : Listed(literal.elements.size(), element));
  }
  return text;
}

std::uint64_t Literals::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [constant, offset] : used_) bytes += decoded_.at(constant).bytes.size();
  for (const Literal& literal : literals_) {
    if (literal.is_used) bytes += literal.elements.size() * ElementBytes(literal.dtype);
  }
  return bytes;
}

}  // namespace rewire::aot
