// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/operators/own/own_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "rewire/compiler/import/dtypes.h"
#include "rewire/compiler/ir/dim_expr.h"
#include "rewire/compiler/ir/dim_parser.h"

namespace rewire::compiler {
namespace {

using Schema = OperatorSchema;

constexpr std::string_view kRest = "...";

bool IsName(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

class SchemaCheck {
 public:
  explicit SchemaCheck(const Schema& schema) : schema_(schema) {}

  Status Run() {
    if (!IsName(schema_.name)) return Wrong(fmt::format("'{}' is no name", schema_.name));
    if (schema_.outputs.empty()) return Wrong("it has no output");
    for (const Schema::Input& input : schema_.inputs) {
      if (Status checked = CheckInput(input); !checked) return checked;
    }
    if (Status ends = CheckEnds(); !ends) return ends;
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
      if (dtype != kStringDType && !OnnxDTypeOf(dtype))
        return Wrong(fmt::format("input '{}': there is no dtype '{}'", input.name, dtype));
    }
    std::size_t rests = 0;
    for (const std::string& dim : input.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        if (++rests > 1) return Wrong(fmt::format("input '{}': its shape has two '...'", input.name));
        rests_.insert(*rest);
      } else if (IsName(dim)) {
        sizes_.insert(dim);
      } else if (!NumberOf(dim)) {
        return Wrong(
            fmt::format("input '{}': dimension '{}': expected a name, a number or '...'", input.name, dim));
      }
    }
    return {};
  }

  // The last input and the last output may stand for any number of them.
  Status CheckEnds() const {
    for (std::size_t i = 0; i < schema_.inputs.size(); ++i) {
      const Schema::Input& input = schema_.inputs[i];
      if (!input.variadic) continue;
      if (i + 1 != schema_.inputs.size())
        return Wrong(fmt::format("input '{}' is variadic and not the last", input.name));
    }
    for (std::size_t i = 0; i < schema_.outputs.size(); ++i) {
      const Schema::Output& output = schema_.outputs[i];
      if (!output.variadic) continue;
      if (i + 1 != schema_.outputs.size())
        return Wrong(fmt::format("output '{}' is variadic and not the last", output.name));
      if (!schema_.returns)
        return Wrong(
            fmt::format("output '{}' is variadic, but the kernel does not return its outputs", output.name));
    }
    return {};
  }

  Status CheckOutput(const Schema::Output& output) const {
    const auto fail = [](const std::string& what) { return Fail(StatusCode::kInvalidArgument, what); };
    if (schema_.inputs.empty() && (output.dtype.empty() || (!output.shape && !schema_.returns)))
      return fail("dtype and shape are needed, as there is no input to take them from");
    const bool is_input = std::any_of(schema_.inputs.begin(), schema_.inputs.end(),
                                      [&](const Schema::Input& input) { return input.name == output.dtype; });
    if (output.dtype == kStringDType && !schema_.returns)
      return fail("strings are made by a kernel that returns its outputs (returns)");
    const bool is_dtype = output.dtype == kStringDType || OnnxDTypeOf(output.dtype);
    if (!output.dtype.empty() && !is_input && !is_dtype)
      return fail(fmt::format("'{}' is neither a dtype nor an input", output.dtype));
    if (schema_.returns && !output.shape_function.empty())
      return fail("the kernel returns it, so a shape function has no use");
    if (!output.shape_function.empty() && !output.shape)
      return fail("a shape function needs a shape, with '?' for each size that it computes");
    for (const std::string& dim : output.shape.value_or(Schema::Shape())) {
      if (const std::optional<std::string> rest = RestName(dim)) {
        if (!rests_.contains(*rest)) return fail(fmt::format("no input has dimensions '{}'", dim));
      } else if (dim == kOpenSize) {
        if (output.shape_function.empty() && !schema_.returns)
          return fail("'?' needs a shape function (shape_function) or a kernel that returns it (returns)");
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

}  // namespace

std::optional<std::string> RestName(const std::string& dim) {
  if (!std::string_view(dim).ends_with(kRest)) return std::nullopt;
  return dim.substr(0, dim.size() - kRest.size());
}

std::optional<std::int64_t> NumberOf(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<DLDataType> OnnxDTypeOf(const std::string& name) {
  const std::optional<DLDataType> dtype = ParseDType(name);
  return dtype && IsOnnxDType(*dtype) ? dtype : std::nullopt;
}

Status CheckSchema(const OperatorSchema& schema) { return SchemaCheck(schema).Run(); }

}  // namespace rewire::compiler
