// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/aot/embedded/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/literals.h"

namespace rewire::aot {

std::int64_t Product(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= dims[i];
  return product;
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

bool EmbeddedCall::Imports(std::string_view other) const {
  return std::any_of(module_.kernels.begin(), module_.kernels.end(),
                     [&](const KernelImport& import) { return import.name == other; });
}

Status EmbeddedCall::Refuse(const std::string& why) const {
  return Fail(StatusCode::kUnsupported, "kernel {} has no plain C form here: {}", name(), why);
}

std::string EmbeddedCall::Pointer(const CallArgument& argument) const {
  if (ElementsOf(argument.value.dims) == 0) return "0";
  return fmt::format("({}{} *)({})", argument.is_written ? "" : "const ", ElementType(argument.value.dtype),
                     argument.text);
}

std::string EmbeddedCall::Input(std::size_t input) const {
  return input < inputs() ? Pointer(kernel_.arguments[input]) : "0";
}

std::string EmbeddedCall::Output(std::size_t output) const {
  return Pointer(kernel_.arguments[inputs() + output]);
}

Status EmbeddedCall::NeedInput(std::size_t input, DLDataType dtype) const {
  if (!Has(input) || InputValue(input).dtype == dtype) return {};
  return Refuse(fmt::format("argument {} is {}, only {} is taken", input, TensorText(InputValue(input)),
                            DTypeName(dtype)));
}

Status EmbeddedCall::NeedInputs(DLDataType dtype) const {
  for (std::size_t i = 0; i < inputs(); ++i) {
    if (Status need = NeedInput(i, dtype); !need) return need;
  }
  return {};
}

Status EmbeddedCall::NeedOutput(DLDataType dtype) const {
  for (std::size_t i = 1; i < outputs(); ++i) {
    if (ElementsOf(OutputDims(i)) != 0) return Refuse("only its first output can be made");
  }
  if (OutputValue().dtype == dtype) return {};
  return Refuse(
      fmt::format("its output is {}, only {} is made", TensorText(OutputValue()), DTypeName(dtype)));
}

Status EmbeddedCall::NeedFloats() const {
  if (Status need = NeedInputs(kFloat32); !need) return need;
  return NeedOutput(kFloat32);
}

Result<std::size_t> EmbeddedCall::Axis(std::int64_t axis, std::size_t rank) const {
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) {
    return Refuse(fmt::format("axis {} is none of its {} axes", axis, rank));
  }
  return static_cast<std::size_t>(axis);
}

Result<Dims> EmbeddedCall::List(const char* attribute, std::size_t size, std::int64_t otherwise) const {
  Dims list = attributes.List(attribute, size, otherwise);
  if (list.size() == size) return list;
  return Refuse(fmt::format("attribute {} has {} elements, {} are expected", attribute, list.size(), size));
}

std::string EmbeddedCall::Activation(const std::string& attribute_prefix) {
  const auto number = [&](const char* name, double otherwise) {
    return attributes.Float((attribute_prefix + name).c_str(), otherwise);
  };
  std::string next = "0";
  const double scale = number("post_scale", 1);
  const double shift = number("post_shift", 0);
  if (scale != 1 || shift != 0) {
    next =
        "&" + definitions().Struct("activation", fmt::format("{{rewire_embedded_activate_move, {}, {}, 0}}",
                                                             FloatText(scale), FloatText(shift)));
  }
  const std::string function = attributes.String((attribute_prefix + "activation").c_str(), "none");
  if (function == "none") return next;
  return "&" + definitions().Struct("activation", fmt::format("{{rewire_embedded_activate_{}, {}, {}, {}}}",
                                                              function, FloatText(number("alpha", 0)),
                                                              FloatText(number("beta", 0)), next));
}

}  // namespace rewire::aot
