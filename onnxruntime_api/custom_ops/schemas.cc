// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rewire/onnxruntime_api/custom_ops/custom_op.h"
#include "rewire/onnxruntime_api/custom_ops/kernel_name.h"
#include "rewire/onnxruntime_api/custom_ops/operator_traits.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

using Ops = std::vector<const OrtCustomOp*>;
constexpr std::size_t kNoInput = SIZE_MAX;

std::string InputName(std::size_t index) { return "input" + std::to_string(index); }

class SchemaOfOps {
 public:
  SchemaOfOps(const std::string& domain, const Ops& ops) : ops_(ops), first_(*ops[0]) {
    schema_.domain = domain;
    schema_.name = first_.GetName(&first_);
    schema_.kernel = KernelName(domain, schema_.name);
    schema_.attributes_as = OperatorSchema::AttributesAs::kNode;
    schema_.returns = true;
  }

  Result<OperatorSchema> Make() {
    for (const OrtCustomOp* op : ops_) {
      if (op->GetInputTypeCount(op) != first_.GetInputTypeCount(&first_) ||
          op->GetOutputTypeCount(op) != first_.GetOutputTypeCount(&first_))
        return Fail(StatusCode::kUnsupported,
                    "{}: operators of one name differ in how many inputs or outputs "
                    "they have",
                    Where());
    }
    for (std::size_t i = 0; i < first_.GetInputTypeCount(&first_); ++i) {
      if (Status added = AddInput(i); !added) return Forward(added);
    }
    for (std::size_t i = 0; i < first_.GetOutputTypeCount(&first_); ++i) {
      if (Status added = AddOutput(i); !added) return Forward(added);
    }
    return std::move(schema_);
  }

 private:
  std::string Where() const { return "custom operator '" + schema_.domain + "." + schema_.name + "'"; }

  // The dtype's name; empty for a type that the operator leaves open.
  Result<std::string> NameOf(ONNXTensorElementDataType type, const char* what, std::size_t index) const {
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return std::string();
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return std::string("string");
    const DLDataType dtype = DTypeOf(type);
    if (dtype.bits != 0) return DTypeName(dtype);
    return Fail(StatusCode::kUnsupported, "{}: {} {} is {}, which kernels of Rewire do not take", Where(),
                what, index, TensorTypeText(type));
  }

  Status AddInput(std::size_t index) {
    OperatorSchema::Input& input = schema_.inputs.emplace_back();
    input.name = InputName(index);
    const auto characteristic = InputCharacteristic(first_, index);
    input.variadic = characteristic == INPUT_OUTPUT_VARIADIC;
    input.optional = characteristic != INPUT_OUTPUT_REQUIRED;
    std::set<std::string> dtypes;
    for (const OrtCustomOp* op : ops_) {
      const Result<std::string> dtype = NameOf(op->GetInputType(op, index), "input", index);
      if (!dtype) return Forward(dtype);
      dtypes.insert(*dtype);
    }
    if (dtypes.count("") == 0) input.dtypes.assign(dtypes.begin(), dtypes.end());
    return {};
  }

  // The input that has the output's type in all operators of the name.
  std::size_t InputOfType(std::size_t output) const {
    const bool open = first_.GetOutputType(&first_, output) == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    for (std::size_t i = 0; i < schema_.inputs.size(); ++i) {
      const bool same = std::all_of(ops_.begin(), ops_.end(), [&](const OrtCustomOp* op) {
        return op->GetInputType(op, i) == op->GetOutputType(op, output);
      });
      if (same && (open || InputCharacteristic(first_, i) == INPUT_OUTPUT_REQUIRED)) return i;
    }
    return kNoInput;
  }

  Status AddOutput(std::size_t index) {
    OperatorSchema::Output& output = schema_.outputs.emplace_back();
    output.name = "output" + std::to_string(index);
    output.variadic = OutputCharacteristic(first_, index) == INPUT_OUTPUT_VARIADIC;
    const Result<std::string> dtype = NameOf(first_.GetOutputType(&first_, index), "output", index);
    if (!dtype) return Forward(dtype);
    const bool one_type = std::all_of(ops_.begin(), ops_.end(), [&](const OrtCustomOp* op) {
      return op->GetOutputType(op, index) == first_.GetOutputType(&first_, index);
    });
    if (one_type && !dtype->empty()) {
      output.dtype = *dtype;
      return {};
    }
    const std::size_t input = InputOfType(index);
    if (input == kNoInput)
      return Fail(StatusCode::kUnsupported, "{}: the type of output {} is that of no input", Where(), index);
    output.dtype = InputName(input);
    return {};
  }

  const Ops& ops_;
  const OrtCustomOp& first_;
  OperatorSchema schema_;
};

}  // namespace

std::string KernelName(const std::string& domain, const std::string& name) {
  return "onnxruntime." + domain + "." + name;
}

Result<std::vector<OperatorSchema>> SchemasOf(const CustomOps& custom_ops) {
  std::map<std::pair<std::string, std::string>, Ops> by_name;
  for (const OrtCustomOpDomain* domain : custom_ops.domains) {
    for (const OrtCustomOp* op : domain->operators) by_name[{domain->name, op->GetName(op)}].push_back(op);
  }
  std::vector<OperatorSchema> schemas;
  for (const auto& [name, ops] : by_name) {
    Result<OperatorSchema> schema = SchemaOfOps(name.first, ops).Make();
    if (!schema) return Forward(schema);
    schemas.push_back(*std::move(schema));
  }
  return schemas;
}

}  // namespace rewire::onnxruntime_api
