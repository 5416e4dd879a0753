// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/lower/own_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "rewire/base/dtype.h"
#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/ir/dim_parser.h"
#include "rewire/compiler/lower/op.h"
#include "rewire/compiler/operators/float_constant.h"

namespace rewire::compiler {
namespace {

using Schema = OperatorSchema;

constexpr std::string_view kRest = "...";
constexpr const char kOpen[] = "?";

// "rest..." stands for any number of dimensions.
std::optional<std::string> RestName(const std::string& dim) {
  if (!std::string_view(dim).ends_with(kRest)) return std::nullopt;
  return dim.substr(0, dim.size() - kRest.size());
}

std::optional<std::int64_t> Number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A dtype that values of a model can have: "f32", "float32".
std::optional<DLDataType> DTypeOf(const std::string& name) {
  const std::optional<DLDataType> dtype = ParseDType(name);
  return dtype && IsOnnxDType(*dtype) ? dtype : std::nullopt;
}

bool IsName(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

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

// --- What a schema may say

class SchemaCheck {
 public:
  explicit SchemaCheck(const Schema& schema) : schema_(schema) {}

  Status Run() {
    if (!IsName(schema_.name)) return Wrong(fmt::format("'{}' is no name", schema_.name));
    if (schema_.outputs.empty()) return Wrong("it has no output");
    for (const Schema::Input& input : schema_.inputs) {
      if (Status checked = CheckInput(input); !checked) return checked;
    }
    for (const Schema::Attribute& attribute : schema_.attributes) {
      if (Status named = AddName("attribute", attribute.name); !named) return named;
      if (sizes_.contains(attribute.name))
        return Wrong(fmt::format("the name '{}' is a dimension's and an attribute's", attribute.name));
      if (std::holds_alternative<std::int64_t>(attribute.value)) sizes_.insert(attribute.name);
      if (std::holds_alternative<std::vector<std::int64_t>>(attribute.value)) lists_.insert(attribute.name);
    }
    for (const Schema::Output& output : schema_.outputs) {
      if (Status checked = CheckOutput(output); !checked)
        return Forward(checked, fmt::format("{}: output '{}'", Where(), output.name));
    }
    return {};
  }

 private:
  std::string Where() const {
    return fmt::format("operator '{}' of domain '{}'", schema_.name, schema_.domain);
  }
  Status Wrong(const std::string& what) const {
    return Fail(StatusCode::kInvalidArgument, fmt::format("{}: {}", Where(), what));
  }

  // Inputs and attributes have names of their own, so that an expression means one of them.
  Status AddName(const char* what, const std::string& name) {
    if (!IsName(name))
      return Wrong(fmt::format("{} '{}': expected a name of letters, digits and _", what, name));
    if (!names_.insert(name).second) return Wrong(fmt::format("the name '{}' is given twice", name));
    return {};
  }

  Status CheckInput(const Schema::Input& input) {
    if (Status named = AddName("input", input.name); !named) return named;
    lists_.insert(input.name);
    for (const std::string& dtype : input.dtypes) {
      if (!DTypeOf(dtype)) return Wrong(fmt::format("input '{}': there is no dtype '{}'", input.name, dtype));
    }
    std::size_t rests = 0;
    for (const std::string& dim : input.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        if (++rests > 1) return Wrong(fmt::format("input '{}': its shape has two '...'", input.name));
        rests_.insert(*rest);
      } else if (IsName(dim)) {
        sizes_.insert(dim);
      } else if (!Number(dim)) {
        return Wrong(
            fmt::format("input '{}': dimension '{}': expected a name, a number or '...'", input.name, dim));
      }
    }
    return {};
  }

  Status CheckOutput(const Schema::Output& output) const {
    const auto fail = [](const std::string& what) { return Fail(StatusCode::kInvalidArgument, what); };
    if (schema_.inputs.empty() && (output.dtype.empty() || !output.shape))
      return fail("dtype and shape are needed, as there is no input to take them from");
    const bool is_input = std::any_of(schema_.inputs.begin(), schema_.inputs.end(),
                                      [&](const Schema::Input& input) { return input.name == output.dtype; });
    if (!output.dtype.empty() && !is_input && !DTypeOf(output.dtype))
      return fail(fmt::format("'{}' is neither a dtype nor an input", output.dtype));
    if (!output.shape_function.empty() && !output.shape)
      return fail("a shape function needs a shape, with '?' for each size that it computes");
    for (const std::string& dim : output.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        if (!rests_.contains(*rest)) return fail(fmt::format("no input has dimensions '{}'", dim));
      } else if (dim == kOpen) {
        if (output.shape_function.empty()) return fail("'?' needs a shape function (shape_function)");
      } else {
        const Result<DimExpr> read =
            ParseDimExpr(dim, [this](const std::string& name, std::optional<std::int64_t> index) {
              const bool known = (index ? lists_ : sizes_).contains(name);
              return known ? std::optional(DimExpr::Symbol(name)) : std::nullopt;
            });
        if (!read) return Forward(read);
      }
    }
    return {};
  }

  const Schema& schema_;
  std::set<std::string> names_, sizes_, lists_, rests_;
};

// --- One node

class OwnNode {
 public:
  OwnNode(Op* op, const Schema& schema) : op_(*op), schema_(schema) {}

  Status Lower() {
    if (std::cmp_greater(op_.outputs(), schema_.outputs.size()))
      return op_.Invalid("it has {} outputs, its schema has {}", op_.outputs(), schema_.outputs.size());
    for (std::size_t i = 0; i < schema_.inputs.size(); ++i) {
      if (Status added = AddInput(schema_.inputs[i], op_.in(static_cast<int>(i))); !added) return added;
    }
    for (const Schema::Attribute& attribute : schema_.attributes) {
      if (Status added = AddAttribute(attribute); !added) return added;
    }
    call_.kernel = schema_.kernel;
    const Op::KernelCall of_shape = call_;
    for (const Schema::Output& output : schema_.outputs) {
      if (Status added = AddOutput(output, of_shape); !added) return Forward(added);
    }
    const std::vector<Value*> outputs = op_.Call(std::move(call_));
    for (std::size_t i = 0; i < outputs.size(); ++i) op_.Set(static_cast<int>(i), outputs[i]);
    return {};
  }

 private:
  Status AddInput(const Schema::Input& input, Value* value) {
    if (value == nullptr) {
      if (!input.optional) return op_.Invalid("input '{}' is missing", input.name);
      const Value* first = op_.in(0);
      call_.inputs.push_back(op_.Missing(first != nullptr ? first->type.dtype : kFloat32));
      return {};
    }
    call_.inputs.push_back(value);
    dtypes_[input.name] = value->type.dtype;
    const std::string dtype = DTypeName(value->type.dtype);
    if (!input.dtypes.empty() &&
        std::none_of(input.dtypes.begin(), input.dtypes.end(), [&](const std::string& each) {
          const std::optional<DLDataType> taken = DTypeOf(each);
          return taken && *taken == value->type.dtype;
        })) {
      return op_.Unsupported("input '{}' is {}, its schema has {}", input.name, dtype,
                             fmt::join(input.dtypes, ", "));
    }
    names_.shapes[input.name] = value->type.dims;
    return input.shape ? Bind(input, value->type.dims) : Status();
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
      const std::optional<std::int64_t> number = Number(dim);
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
    if (schema_.attributes_as == Schema::AttributesAs::kFactory) {
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

  Status AddOutput(const Schema::Output& output, const Op::KernelCall& of_shape) {
    Type type;
    if (const auto input = dtypes_.find(output.dtype); input != dtypes_.end()) {
      type.dtype = input->second;
    } else if (output.dtype.empty()) {
      type.dtype = of_shape.inputs[0]->type.dtype;
    } else if (const std::optional<DLDataType> dtype = DTypeOf(output.dtype)) {
      type.dtype = *dtype;
    } else {
      return op_.Invalid("input '{}' is missing, and output '{}' has its dtype", output.dtype, output.name);
    }
    Op::OpenShape dims;
    if (!output.shape) {
      const Shape& first = of_shape.inputs[0]->type.dims;
      dims.assign(first.begin(), first.end());
    }
    for (const std::string& dim : output.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        const auto sizes = names_.rests.find(*rest);
        if (sizes == names_.rests.end())
          return op_.Invalid("output '{}': the input with the dimensions '{}' is missing", output.name, dim);
        dims.insert(dims.end(), sizes->second.begin(), sizes->second.end());
      } else if (dim == kOpen) {
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
    return {};
  }

  Op& op_;
  const Schema& schema_;
  Op::KernelCall call_;
  Names names_;
  std::map<std::string, DLDataType> dtypes_;  // of inputs
};

Status LowerOwnOperator(Op& op, const Operator& /*row*/) {
  const OwnOperator* own = op.lowering().options().own_operators->Find(op.domain(), op.type());
  return OwnNode(&op, own->schema).Lower();
}

}  // namespace

Result<OwnOperators> OwnOperators::Make(const std::vector<OperatorSchema>& schemas) {
  OwnOperators made;
  for (const OperatorSchema& schema : schemas) {
    if (Status checked = SchemaCheck(schema).Run(); !checked) return Forward(checked);
    OwnOperator& own = made.operators_.emplace_back();
    own.schema = schema;
    own.schema.domain = DomainOf(schema.domain);
    if (schema.kernel.empty()) own.schema.kernel = schema.domain + "." + schema.name;
    for (const OperatorSchema::Attribute& attribute : schema.attributes)
      own.attributes += (own.attributes.empty() ? "" : " ") + attribute.name;
    int least = 0;
    for (std::size_t i = 0; i < schema.inputs.size(); ++i) {
      if (!schema.inputs[i].optional) least = static_cast<int>(i) + 1;
    }
    own.row = {own.schema.name.c_str(),
               1,
               0,
               least,
               static_cast<int>(schema.inputs.size()),
               own.attributes.c_str(),
               LowerOwnOperator,
               nullptr,
               kMayLack};
    made.by_name_.insert_or_assign({own.schema.domain, own.schema.name}, &own);
  }
  return made;
}

const OwnOperator* OwnOperators::Find(const std::string& domain, const std::string& name) const {
  const auto found = by_name_.find({domain, name});
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace rewire::compiler
