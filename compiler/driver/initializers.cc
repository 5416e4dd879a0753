// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/driver/initializers.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/vm/kernel/device_type.h"
#include "rewire/vm/tensor.h"

namespace rewire::compiler {
namespace {

Status WrongInitializer(const std::string& name, const std::string& given, const std::string& expected) {
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("initializer '{}' is given as {}, expected {}", name, given, expected));
}

Result<HostTensor> ElementsFor(const onnx::TensorProto& initializer, const Tensor& tensor) {
  const std::string& name = initializer.name();
  const TensorView view = tensor.view();
  const std::optional<DLDataType> dtype = DTypeOfOnnx(initializer.data_type());
  const std::string given = TensorTypeText(view.dtype(), view.shape());
  if (!dtype) return WrongInitializer(name, given, OnnxTypeName(initializer.data_type()));
  if (!(view.dtype() == *dtype)) return WrongInitializer(name, given, DTypeName(*dtype));
  HostTensor elements;
  elements.dtype = view.dtype();
  elements.shape.assign(view.shape().begin(), view.shape().end());
  if (!IsHostDevice(view.device())) return WrongInitializer(name, given, "it in host memory");
  if (!view.IsContiguous()) return WrongInitializer(name, given + " with strides", "compact elements");
  elements.bytes = AlignedFor(elements.dtype, {{static_cast<const std::byte*>(view.data()), view.bytes()},
                                               std::make_shared<const Tensor>(tensor)});
  return elements;
}

constexpr std::int64_t kOverridableSince = 4;  // the IR version

OverridableInitializer DeclaredInitializer(const onnx::ValueInfoProto& input) {
  const onnx::TypeProto::Tensor& type = input.type().tensor_type();
  const std::optional<DLDataType> dtype = DTypeOfOnnx(type.elem_type());
  const bool is_strings = type.elem_type() == onnx::TensorProto::STRING;
  OverridableInitializer declared;
  declared.name = input.name();
  declared.element_type = dtype ? DTypeName(*dtype) : is_strings ? "string" : OnnxTypeName(type.elem_type());
  if (!type.has_shape()) return declared;
  auto& dims = declared.shape.emplace();
  for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim())
    dims.push_back({dim.has_dim_value() ? dim.dim_value() : -1, dim.dim_param()});
  return declared;
}

}  // namespace

Result<GivenInitializers> ReadInitializers(const CompileOptions& options, const onnx::GraphProto& graph) {
  const ParameterSet& given = options.initializers;
  GivenInitializers elements;
  if (given.size() == 0) return elements;
  std::vector<std::string> names;
  for (const onnx::TensorProto& initializer : graph.initializer()) {
    names.push_back(initializer.name());
    const std::size_t index = given.Find(initializer.name());
    if (index == given.size()) continue;
    const Result<Tensor> tensor = given.TryGet(index);
    if (!tensor) return Forward(tensor, fmt::format("initializer '{}'", initializer.name()));
    Result<HostTensor> read = ElementsFor(initializer, *tensor);
    if (!read) return Forward(read);
    elements.insert_or_assign(initializer.name(), *std::move(read));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name(given.name(i));
    if (elements.contains(name)) continue;
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("the model has no initializer '{}'{}", name,
                            KnownNames("initializers", name, {names.data(), names.size()})));
  }
  return elements;
}

std::vector<OverridableInitializer> OverridableOf(const ModelFile& model) {
  std::vector<OverridableInitializer> found;
  if (model.proto()->ir_version() < kOverridableSince) return found;
  std::set<std::string> initializers;
  for (const onnx::TensorProto& each : model.graph().initializer()) initializers.insert(each.name());
  for (const onnx::ValueInfoProto& each : model.graph().input()) {
    if (initializers.contains(each.name())) found.push_back(DeclaredInitializer(each));
  }
  return found;
}

Status CheckOverridden(const CompileOptions& options, const ModelFile& model) {
  if (options.overridden.empty()) return {};
  std::vector<std::string> names;
  for (const OverridableInitializer& each : OverridableOf(model)) names.push_back(each.name);
  const std::set<std::string> known(names.begin(), names.end());
  for (const std::string& name : options.overridden) {
    if (options.initializers.Find(name) != options.initializers.size()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("initializer '{}' is overridden by each run, and its elements are given, too; "
                              "leave it out of one of the two",
                              name));
    }
    if (known.contains(name)) continue;
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("the model has no initializer '{}' that is an input, too{}", name,
                            KnownNames("initializers that are inputs", name, {names.data(), names.size()})));
  }
  return {};
}

}  // namespace rewire::compiler
