// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/own/own_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/ir/dim_parser.h"
#include "rewire/compiler/operators/float_constant.h"
#include "rewire/compiler/operators/own/node_attributes.h"
#include "rewire/compiler/operators/own/own_schema.h"
#include "rewire/compiler/operators/text_values.h"
#include "rewire/kernels/contract/sequence.h"
#include "rewire/kernels/contract/text.h"

namespace rewire::compiler {
namespace {

using Schema = OperatorSchema;

// The names in the shapes of a schema have these meanings for one node.
struct Names {
  std::map<std::string, DimExpr> dims;                     // names of sizes, integer attributes
  std::map<std::string, Shape> rests;                      // "rest..."
  std::map<std::string, Shape> shapes;                     // of inputs
  std::map<std::string, std::vector<std::int64_t>> lists;  // attributes

  std::optional<DimExpr> Find(const std::string& name, std::optional<std::int64_t> index) const {
    if (!index) {
      const auto dim = dims.find(name);
      return dim == dims.end() ? std::nullopt : std::optional(dim->second);
    }
    const auto element = [&](const auto& list) -> std::optional<DimExpr> {
      const auto size = static_cast<std::int64_t>(list.size());
      const std::int64_t at = *index < 0 ? *index + size : *index;
      if (at < 0 || at >= size) return std::nullopt;
      return DimExpr(list[static_cast<std::size_t>(at)]);
    };
    if (const auto shape = shapes.find(name); shape != shapes.end()) return element(shape->second);
    if (const auto list = lists.find(name); list != lists.end()) return element(list->second);
    return std::nullopt;
  }
  Result<DimExpr> Read(const std::string& text) const {
    return ParseDimExpr(text, [this](const std::string& name, std::optional<std::int64_t> index) {
      return Find(name, index);
    });
  }
};

class OwnNode {
 public:
  OwnNode(Op* op, const Schema& schema) : op_(*op), schema_(schema) {}

  Status Lower() {
    const bool any_outputs = schema_.outputs.back().variadic;
    if (!any_outputs && std::cmp_greater(op_.outputs(), schema_.outputs.size()))
      return op_.Invalid("it has {} outputs, its schema has {}", op_.outputs(), schema_.outputs.size());
    for (std::size_t i = 0; i < InputCount(); ++i) {
      const Schema::Input& input = schema_.inputs[std::min(i, schema_.inputs.size() - 1)];
      if (Status added = AddInput(input, op_.in(static_cast<int>(i))); !added) return added;
    }
    for (const Schema::Attribute& attribute : schema_.attributes) {
      if (Status added = AddAttribute(attribute); !added) return added;
    }
    call_.kernel = schema_.kernel;
    const Op::KernelCall of_shape = call_;
    std::vector<Op::OpenShape> dims;
    std::vector<NodeOutput> described;
    for (std::size_t i = 0; i < OutputCount(); ++i) {
      const Schema::Output& output = schema_.outputs[std::min(i, schema_.outputs.size() - 1)];
      const bool strings = IsStrings(output);
      Result<Op::OpenShape> added = AddOutput(output, i, strings, of_shape);
      if (!added) return Forward(added);
      dims.push_back(*std::move(added));
      described.push_back({call_.outputs.back(), strings});
      if (strings) AddList();
    }
    if (schema_.attributes_as == Schema::AttributesAs::kNode) {
      Status all = AddNodeAttributes(op_, schema_, described, &call_.attributes);
      if (!all) return all;
    }
    call_.returns = schema_.returns;
    const std::vector<Value*> made = op_.Call(std::move(call_));
    for (std::size_t i = 0, at = 0; i < described.size(); ++i, ++at) {
      const bool wanted = op_.Wants(static_cast<int>(i));
      Value* output = schema_.returns && wanted ? Checked(made[at], i, dims[i]) : made[at];
      if (!described[i].strings) {
        op_.Set(static_cast<int>(i), output);
        continue;
      }
      at += 2;
      if (wanted) SetStrings(i, output, made[at - 1], made[at]);
    }
    return {};
  }

 private:
  // A variadic input stands for as many as the node has, and the kernel returns as many outputs as the node
  // has. Otherwise the kernel gets what the schema lists.
  std::size_t InputCount() const {
    const std::size_t listed = schema_.inputs.size();
    if (listed == 0 || !schema_.inputs.back().variadic) return listed;
    return std::max(listed - 1, static_cast<std::size_t>(op_.inputs()));
  }
  std::size_t OutputCount() const {
    return schema_.returns ? static_cast<std::size_t>(op_.outputs()) : schema_.outputs.size();
  }

  // The number of dimensions that the model's graph declares for a value; nullopt if it declares none.
  std::optional<int> DeclaredRank(const std::string& name) const {
    const onnx::GraphProto& graph = op_.lowering().model().graph();
    for (const auto* values : {&graph.output(), &graph.value_info()}) {
      for (const onnx::ValueInfoProto& value : *values) {
        if (value.name() != name || !value.type().tensor_type().has_shape()) continue;
        const int rank = value.type().tensor_type().shape().dim_size();
        return rank <= kMaxRank ? std::optional(rank) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  // Checks the type of an output that the kernel returned, because the nodes behind it rely on it.
  Value* Checked(Value* output, std::size_t index, const Op::OpenShape& dims) {
    const DLDataType dtype = output->type.dtype;
    const std::string& name = schema_.outputs[std::min(index, schema_.outputs.size() - 1)].name;
    Op::KernelCall call;
    call.kernel = names::kSeqChecked;
    call.inputs = {output};
    call.attributes = {{"dtype", Ints{dtype.code, dtype.bits, dtype.lanes}},
                       {"what", fmt::format("output '{}' of kernel '{}'", name, schema_.kernel)}};
    call.objects = call.returns = true;
    if (output->type.ranked) {
      Shape expected;
      for (const std::optional<DimExpr>& dim : dims) expected.push_back(dim ? *dim : DimExpr(-1));
      call.inputs.push_back(op_.DimsValue(expected));
    }
    call.outputs = {output->type};
    Value* checked = op_.Call(std::move(call))[0];
    std::swap(checked->name, output->name);  // the value that the model names
    if (checked->type.ranked)
      checked->type.dims =
          op_.lowering().graph().OwnDims(checked, checked->type.dims, op_.lowering().block());
    return checked;
  }

  // The kernel returns the strings of an output as two more tensors.
  void AddList() {
    for (const DLDataType dtype : {kInt64, kUInt8}) {
      call_.outputs.push_back(TensorOf(dtype, {DimExpr::Symbol(op_.lowering().graph().FreshSymbol(""))}));
      call_.shapes.push_back(nullptr);
    }
  }

  // A list from outside is checked once, so that all that follows can rely on it.
  void SetStrings(std::size_t index, Value* positions, Value* offsets, Value* bytes) {
    const Op::OpenShape vector = Op::AllOpen(1);
    TextTensor texts{positions, Checked(offsets, index, vector), Checked(bytes, index, vector)};
    texts.positions =
        positions->type.ranked
            ? op_.Call(names::kTextCheck, texts.arguments(), {}, positions->type)
            : op_.CallSized(names::kTextCheck, texts.arguments(), {}, kInt64, op_.ShapeOf(positions));
    std::swap(texts.positions->name, positions->name);  // the value that the model names
    SetTexts(op_, static_cast<int>(index), texts);
  }

  // Whether an output is strings: by its own dtype, or by that of the input whose dtype it has.
  bool IsStrings(const Schema::Output& output) const {
    if (dtypes_.contains(output.dtype)) return strings_.contains(output.dtype);
    if (!output.dtype.empty()) return output.dtype == kStringDType;
    return !schema_.inputs.empty() && strings_.contains(schema_.inputs[0].name);
  }

  Status AddInput(const Schema::Input& input, Value* value) {
    if (value == nullptr) {
      if (!input.optional) return op_.Invalid("input '{}' is missing", input.name);
      const Value* first = op_.in(0);
      call_.inputs.push_back(op_.Missing(first != nullptr ? first->type.dtype : kFloat32));
      return {};
    }
    const bool strings = op_.lowering().strings().Has(value);
    if (!Takes(input, value->type.dtype, strings)) {
      return op_.Unsupported(
          "input '{}' is {}, its schema has {}", input.name,
          strings ? kStringDType : DTypeName(value->type.dtype),
          input.dtypes.empty() ? "all dtypes but strings" : fmt::format("{}", fmt::join(input.dtypes, ", ")));
    }
    call_.inputs.push_back(value);
    if (strings) {
      const TextTensor texts = TextTensorOf(op_, value);
      call_.inputs.insert(call_.inputs.end(), {texts.offsets, texts.bytes});
      strings_.insert(input.name);
    }
    dtypes_[input.name] = value->type.dtype;
    names_.shapes[input.name] = value->type.dims;
    return input.shape ? Bind(input, value->type.dims) : Status();
  }

  // Strings are three arguments. A kernel that gets the node learns there which inputs are strings, so that
  // an input of any dtype may be. Any other kernel must ask for them.
  bool Takes(const Schema::Input& input, DLDataType dtype, bool strings) const {
    if (input.dtypes.empty()) return !strings || schema_.attributes_as == Schema::AttributesAs::kNode;
    return std::any_of(input.dtypes.begin(), input.dtypes.end(), [&](const std::string& each) {
      if (strings || each == kStringDType) return strings && each == kStringDType;
      const std::optional<DLDataType> taken = OnnxDTypeOf(each);
      return taken && *taken == dtype;
    });
  }

  // Gives the names in an input's shape their sizes.
  Status Bind(const Schema::Input& input, const Shape& dims) {
    const Schema::Shape& shape = *input.shape;
    const auto rest = std::find_if(shape.begin(), shape.end(),
                                   [](const std::string& dim) { return RestName(dim).has_value(); });
    const bool has_rest = rest != shape.end();
    const std::size_t least = shape.size() - (has_rest ? 1 : 0);
    if (has_rest ? dims.size() < least : dims.size() != least) {
      return op_.Invalid("input '{}' has {} dimensions, its schema has [{}]", input.name, dims.size(),
                         fmt::join(shape, ", "));
    }
    std::size_t axis = 0;
    for (const std::string& dim : shape) {
      if (const std::optional<std::string> name = RestName(dim)) {
        const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(axis);
        const std::size_t length = dims.size() - least;
        const Shape& wanted =
            names_.rests.try_emplace(*name, begin, begin + static_cast<std::ptrdiff_t>(length)).first->second;
        if (wanted.size() != length) {
          return op_.Invalid("input '{}' has {} dimensions '{}', an input before it has {}", input.name,
                             length, dim, wanted.size());
        }
        for (const DimExpr& size : wanted) {
          if (Status fits = CheckSize(input, axis, dims[axis], dim, size); !fits) return fits;
          ++axis;
        }
        continue;
      }
      const std::optional<std::int64_t> number = NumberOf(dim);
      const DimExpr wanted =
          number ? DimExpr(*number) : names_.dims.try_emplace(dim, dims[axis]).first->second;
      if (Status fits = CheckSize(input, axis, dims[axis], dim, wanted); !fits) return fits;
      ++axis;
    }
    return {};
  }

  // Sizes that only the run knows are the kernel's to check.
  Status CheckSize(const Schema::Input& input, std::size_t axis, const DimExpr& size, const std::string& dim,
                   const DimExpr& wanted) const {
    if (size.IsConstant() && wanted.IsConstant() && size != wanted) {
      return op_.Invalid("input '{}': dimension {} is {}, and '{}' in its schema is {}", input.name, axis,
                         size.text(), dim, wanted.text());
    }
    return {};
  }

  Status AddAttribute(const Schema::Attribute& attribute) {
    const std::string& name = attribute.name;
    if (attribute.required && !op_.HasAttribute(name)) return op_.Invalid("attribute '{}' is missing", name);
    if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
      const std::int64_t value = op_.Int(name, *number);
      names_.dims.insert_or_assign(name, value);
      Pass(name, value, [&] { return op_.IntValue(value); });
    } else if (const auto* real = std::get_if<double>(&attribute.value)) {
      const double value = op_.Float(name, *real);
      Pass(name, value, [&] { return op_.Scalar(kFloat32, value); });
    } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
      const std::string value = op_.String(name, *text);
      Pass(name, value, [&] { return Bytes(value); });
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
      const Ints value = op_.IntList(name, *list);
      names_.lists[name] = value;
      Pass(name, value, [&] { return op_.IntsValue(value); });
    } else {
      const bool given = op_.HasAttribute(name);
      const auto value = given ? op_.FloatList(name) : std::get<std::vector<double>>(attribute.value);
      Pass(name, value, [&] { return FloatsValue(op_, value); });
    }
    return {};
  }

  // Hands an attribute to the kernel, as a tensor or to its factory.
  template <typename T, typename MakeTensor>
  void Pass(const std::string& name, const T& value, const MakeTensor& tensor) {
    if (schema_.attributes_as == Schema::AttributesAs::kFactory ||
        schema_.attributes_as == Schema::AttributesAs::kNode) {
      call_.attributes.push_back({name, value});
    } else {
      call_.inputs.push_back(tensor());
    }
  }

  Value* Bytes(const std::string& text) {
    HostTensor tensor;
    tensor.dtype = kUInt8;
    tensor.shape = {static_cast<std::int64_t>(text.size())};
    tensor.bytes = CopyBytes({reinterpret_cast<const std::byte*>(text.data()), text.size()});
    return op_.Constant(std::move(tensor));
  }

  // The dimensions of the output as far as the schema says them.
  Result<Op::OpenShape> AddOutput(const Schema::Output& output, std::size_t index, bool strings,
                                  const Op::KernelCall& of_shape) {
    Type type;
    if (strings && !schema_.returns)
      return op_.Unsupported("output '{}' is strings, which only a kernel that returns its outputs can make",
                             output.name);
    if (strings) {
      type.dtype = kInt64;
    } else if (const auto input = dtypes_.find(output.dtype); input != dtypes_.end()) {
      type.dtype = input->second;
    } else if (output.dtype.empty()) {
      type.dtype = of_shape.inputs[0]->type.dtype;
    } else if (const std::optional<DLDataType> dtype = OnnxDTypeOf(output.dtype)) {
      type.dtype = *dtype;
    } else {
      return op_.Invalid("input '{}' is missing, and output '{}' has its dtype", output.dtype, output.name);
    }
    Op::OpenShape dims;
    if (!output.shape && schema_.returns) {
      const std::optional<int> rank = DeclaredRank(op_.node().output(static_cast<int>(index)));
      type.ranked = rank.has_value();
      dims.resize(static_cast<std::size_t>(rank.value_or(0)));
    } else if (!output.shape) {
      const Shape& first = of_shape.inputs[0]->type.dims;
      dims.assign(first.begin(), first.end());
    }
    for (const std::string& dim : output.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        const auto sizes = names_.rests.find(*rest);
        if (sizes == names_.rests.end())
          return op_.Invalid("output '{}': the input with the dimensions '{}' is missing", output.name, dim);
        dims.insert(dims.end(), sizes->second.begin(), sizes->second.end());
      } else if (dim == kOpenSize) {
        dims.emplace_back();
      } else {
        const Result<DimExpr> read = names_.Read(dim);
        if (!read) return op_.Invalid("output '{}': {}", output.name, read.error().message());
        dims.emplace_back(*read);
      }
    }
    Value* shape = nullptr;
    if (!output.shape_function.empty()) {
      Op::KernelCall call = of_shape;
      call.kernel = output.shape_function;
      call.outputs = {TensorOf(kInt64, {static_cast<std::int64_t>(dims.size())})};
      shape = op_.Call(std::move(call))[0];
    }
    for (const std::optional<DimExpr>& dim : dims) {
      type.dims.push_back(dim ? *dim : DimExpr::Symbol(op_.lowering().graph().FreshSymbol("")));
    }
    call_.outputs.push_back(std::move(type));
    call_.shapes.push_back(shape);
    return dims;
  }

  Op& op_;
  const Schema& schema_;
  Op::KernelCall call_;
  Names names_;
  std::map<std::string, DLDataType> dtypes_;  // of inputs
  std::set<std::string> strings_;             // the inputs that are strings
};

}  // namespace

Status LowerOwnNode(Op* op, const OperatorSchema& schema) { return OwnNode(op, schema).Lower(); }

}  // namespace rewire::compiler
