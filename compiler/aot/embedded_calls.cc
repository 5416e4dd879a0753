// SPDX-License-Identifier: Apache-2.0
// Calls of the kernels in kernels/embedded: each has a constant struct of its sizes, which is found here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <variant>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/movement.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/contract/product.h"

namespace rewire::aot {
namespace {

using Dims = std::vector<std::int64_t>;

// The attributes of one import.
class Attributes {
 public:
  explicit Attributes(const KernelImport& import) : import_(import) {}

  std::int64_t Integer(const char* name, std::int64_t otherwise) const {
    return Get<std::int64_t>(name, otherwise);
  }
  std::string Text(const char* name, const char* otherwise) const {
    return Get<std::string>(name, otherwise);
  }
  double Number(const char* name, double otherwise) const {
    return Get<double>(name, static_cast<double>(Get<std::int64_t>(name, 0)) + (Has(name) ? 0 : otherwise));
  }
  Dims List(const char* name, std::size_t size, std::int64_t otherwise) const {
    const auto list = Get<Array<std::int64_t>>(name, {});
    return list.empty() ? Dims(size, otherwise) : Dims(list.begin(), list.end());
  }

 private:
  const Attribute* Find(const char* name) const {
    for (const Attribute& attribute : import_.attributes) {
      if (attribute.name == name) return &attribute;
    }
    return nullptr;
  }
  bool Has(const char* name) const { return Find(name) != nullptr; }
  template <typename T>
  T Get(const char* name, T otherwise) const {
    const Attribute* found = Find(name);
    const T* value = found == nullptr ? nullptr : std::get_if<T>(&found->value);
    return value == nullptr ? otherwise : *value;
  }

  const KernelImport& import_;
};

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

std::string Braced(const Dims& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); }

std::string FloatText(double number) {
  std::string text = fmt::format("{:.9g}", static_cast<float>(number));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

// An elementwise kernel without attributes that rewire_embedded_rows.h has a row of.
struct RowKernel {
  const char* kernel;
  std::size_t inputs;
};
constexpr RowKernel kRows[] = {
    {names::kNeg, 1},     {names::kAbs, 1},      {names::kSign, 1},       {names::kRelu, 1},
    {names::kSigmoid, 1}, {names::kSoftplus, 1}, {names::kSoftsign, 1},   {names::kFloor, 1},
    {names::kCeil, 1},    {names::kSqrt, 1},     {names::kExp, 1},        {names::kLog, 1},
    {names::kTanh, 1},    {names::kRound, 1},    {names::kSin, 1},        {names::kCos, 1},
    {names::kErf, 1},     {names::kMish, 1},     {names::kReciprocal, 1}, {names::kAdd, 2},
    {names::kSub, 2},     {names::kMul, 2},      {names::kDiv, 2},        {names::kMin, 2},
    {names::kMax, 2},     {names::kAtLeast, 2},  {names::kAtMost, 2}};

const RowKernel* FindRow(std::string_view kernel) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const RowKernel& each) { return kernel == each.kernel; });
  return row == std::end(kRows) ? nullptr : row;
}

class EmbeddedCalls : public KernelCalls {
 public:
  explicit EmbeddedCalls(std::string prefix) : prefix_(std::move(prefix)) {}

  Result<std::string> Call(const KernelCall& call, std::string* setup) override {
    Result<std::string> statement = Statement(call);
    if (!statement) return statement;
    *setup = "  " + *statement + ";";
    return std::string();
  }
  std::string Includes() const override {
    return "#include \"rewire/kernels/embedded/rewire_embedded_rows.h\"\n";
  }
  std::string Tables() const override { return tables_; }
  std::string Locals(std::uint32_t) const override { return {}; }

 private:
  static Status Refused(const KernelCall& call, const std::string& why) {
    return Fail(StatusCode::kUnsupported, "kernel {} has no plain C form here: {}", call.import.name, why);
  }

  Result<std::string> Statement(const KernelCall& call) {
    const std::string_view name = call.import.name;
    if (const RowKernel* row = FindRow(name); row != nullptr) return Row(call, row->inputs);
    if (name == names::kTranspose) return Transpose(call);
    for (const CallArgument& argument : call.arguments) {
      if (argument.value.kind != Value::Kind::kTensor || argument.value.dtype != kFloat32)
        return Refused(call, "only tensors of f32 are taken");
    }
    if (name == names::kPackedConv) return PackedConv(call);
    if (name == names::kPackedDepthwise) return PackedDepthwise(call);
    if (name == names::kPackedMatMul) return PackedMatmul(call);
    if (name == names::kMaxPool) return MaxPool(call);
    if (name == names::kSoftmax || name == names::kLogSoftmax) return Softmax(call);
    return Refused(call, "use --kernels packed, or disable the pass that makes it");
  }

  // A struct of constants; structs with the same content are one.
  std::string Struct(const std::string& type, const std::string& content) {
    const std::string text = fmt::format("struct rewire_embedded_{} NAME = {};\n", type, content);
    const auto [found, made] =
        structs_.try_emplace(text, fmt::format("{}_call_{}", prefix_, structs_.size()));
    if (made)
      tables_ +=
          fmt::format("static const struct rewire_embedded_{} {} = {};\n", type, found->second, content);
    return found->second;
  }

  // The address of an activation's list; "0" for none.
  std::string Activation(const Attributes& attributes) {
    std::string next = "0";
    const double scale = attributes.Number("post_scale", 1);
    const double shift = attributes.Number("post_shift", 0);
    if (scale != 1 || shift != 0) {
      next = "&" + Struct("activation", fmt::format("{{rewire_embedded_activate_move, {}, {}, 0}}",
                                                    FloatText(scale), FloatText(shift)));
    }
    const std::string name = attributes.Text("activation", "none");
    if (name == "none") return next;
    return "&" + Struct("activation", fmt::format("{{rewire_embedded_activate_{}, {}, {}, {}}}", name,
                                                  FloatText(attributes.Number("alpha", 0)),
                                                  FloatText(attributes.Number("beta", 0)), next));
  }

  // An argument as a pointer; a tensor that is missing, or has no elements, is null.
  static std::string Pointer(const KernelCall& call, std::size_t place, std::size_t end) {
    if (place >= end || ElementsOf(call.arguments[place].value.dims) == 0) return "0";
    const CallArgument& argument = call.arguments[place];
    const std::string type = ElementType(argument.value.dtype);
    return fmt::format("({}{} *)({})", argument.is_written ? "" : "const ", type, argument.text);
  }

  // The spatial axes of a window, as rows and columns.
  Result<std::string> Axes(const KernelCall& call, const Dims& input, const Dims& output) {
    const Attributes attributes(call.import);
    const std::size_t count = input.size();
    if (count != 1 && count != 2) return Refused(call, "its window has more than two axes");
    const Dims kernel = attributes.List("kernel_shape", count, 1);
    const Dims strides = attributes.List("strides", count, 1);
    const Dims dilations = attributes.List("dilations", count, 1);
    const Dims pads = attributes.List("pads", 2 * count, 0);
    const std::string auto_pad = attributes.Text("auto_pad", "NOTSET");
    std::string text = count == 1 ? "REWIRE_EMBEDDED_NO_AXIS" : "";
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t before = auto_pad == "NOTSET" ? pads[i] : 0;
      if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
        const std::int64_t reach = (output[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
        const std::int64_t total = std::max<std::int64_t>(reach - input[i], 0);
        before = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      }
      text += (text.empty() ? "" : ", ") +
              Braced({input[i], output[i], kernel[i], strides[i], dilations[i], before});
    }
    return text;
  }

  Result<std::string> PackedConv(const KernelCall& call) {
    const Attributes attributes(call.import);
    const std::size_t last = call.arguments.size() - 1;
    const Dims& x = call.arguments[0].value.dims;
    const Dims& out = call.arguments[last].value.dims;
    const Result<std::string> axes =
        Axes(call, Dims(x.begin() + 1, x.end() - 1), Dims(out.begin() + 1, out.end() - 1));
    if (!axes) return axes;
    const std::string sizes = Struct("packed_conv", fmt::format("{{{}, {}, {}, {}, {}}}", x.front(), x.back(),
                                                                out.back(), *axes, Activation(attributes)));
    return fmt::format("rewire_embedded_packed_conv_f32(&{}, {}, {}, {}, {}, {})", sizes,
                       Pointer(call, 0, last), Pointer(call, 1, last), Pointer(call, 2, last),
                       Pointer(call, 3, last), Pointer(call, last, last + 1));
  }

  Result<std::string> PackedDepthwise(const KernelCall& call) {
    const Attributes attributes(call.import);
    const std::size_t last = call.arguments.size() - 1;
    const Dims& x = call.arguments[0].value.dims;
    const Dims& out = call.arguments[last].value.dims;
    const Result<std::string> axes =
        Axes(call, Dims(x.begin() + 1, x.end() - 1), Dims(out.begin() + 1, out.end() - 1));
    if (!axes) return axes;
    const std::string sizes = Struct(
        "packed_depthwise", fmt::format("{{{}, {}, {}, {}, {}}}", x.front(), x.back(),
                                        attributes.Integer("multiplier", 1), *axes, Activation(attributes)));
    return fmt::format("rewire_embedded_packed_depthwise_f32(&{}, {}, {}, {}, {})", sizes,
                       Pointer(call, 0, last), Pointer(call, 1, last), Pointer(call, 2, last),
                       Pointer(call, last, last + 1));
  }

  Result<std::string> PackedMatmul(const KernelCall& call) {
    const std::size_t last = call.arguments.size() - 1;
    const Dims& x = call.arguments[0].value.dims;
    const Attributes attributes(call.import);
    const std::string sizes =
        Struct("packed_matmul", fmt::format("{{{}, {}, {}, {}}}", Product(x, 0, x.size() - 1), x.back(),
                                            attributes.Integer("columns", 0), Activation(attributes)));
    return fmt::format("rewire_embedded_packed_matmul_f32(&{}, {}, {}, {}, {}, {})", sizes,
                       Pointer(call, 0, last), Pointer(call, 1, last), Pointer(call, 2, last),
                       Pointer(call, 3, last), Pointer(call, last, last + 1));
  }

  Result<std::string> MaxPool(const KernelCall& call) {
    if (call.arguments.size() != 2) return Refused(call, "its indices are an output");
    const Attributes attributes(call.import);
    const bool is_last = attributes.Text("layout", "NCHW") == "NHWC";
    const Dims& x = call.arguments[0].value.dims;
    const Dims& out = call.arguments[1].value.dims;
    const std::ptrdiff_t first = is_last ? 1 : 2;
    const std::ptrdiff_t behind = is_last ? 1 : 0;
    const Result<std::string> axes =
        Axes(call, Dims(x.begin() + first, x.end() - behind), Dims(out.begin() + first, out.end() - behind));
    if (!axes) return axes;
    const std::string sizes = Struct(
        "pool", fmt::format("{{{}, {}, {}}}", is_last ? x[0] : x[0] * x[1], is_last ? x.back() : 1, *axes));
    return fmt::format("rewire_embedded_max_pool_f32(&{}, {}, {})", sizes, Pointer(call, 0, 1),
                       Pointer(call, 1, 2));
  }

  Result<std::string> Softmax(const KernelCall& call) {
    const Dims& x = call.arguments[0].value.dims;
    const auto rank = static_cast<std::int64_t>(x.size());
    if (rank == 0) return Refused(call, "it takes a scalar");
    std::int64_t axis = Attributes(call.import).Integer("axis", -1);
    if (axis < 0) axis += rank;
    const auto at = static_cast<std::size_t>(axis);
    const std::string sizes =
        Struct("along", Braced({Product(x, 0, at), x[at], Product(x, at + 1, x.size())}));
    return fmt::format("rewire_embedded_{}_f32(&{}, {}, {})", names::Stem(call.import.name), sizes,
                       Pointer(call, 0, 1), Pointer(call, 1, 2));
  }

  Result<std::string> Transpose(const KernelCall& call) {
    const Dims& x = call.arguments[0].value.dims;
    const Dims& out = call.arguments[1].value.dims;
    constexpr std::size_t kMostRank = 8;
    if (x.size() > kMostRank) return Refused(call, "it has more than 8 axes");
    Dims perm = Attributes(call.import).List("perm", 0, 0);
    for (std::size_t i = 0; perm.size() < x.size(); ++i)
      perm.push_back(static_cast<std::int64_t>(x.size() - 1 - i));
    const Dims strides = StridesOf(x);
    Dims from;
    for (const std::int64_t axis : perm) from.push_back(strides[static_cast<std::size_t>(axis)]);
    const DLDataType dtype = call.arguments[0].value.dtype;
    const Dims dims = out.empty() ? Dims{1} : out;
    const std::string sizes =
        Struct("move", fmt::format("{{{}, {}, {}, {}, {}}}", out.size(), ElementBytes(dtype), Braced(dims),
                                   Braced(from.empty() ? Dims{0} : from), Braced(StridesOf(dims))));
    return fmt::format("rewire_embedded_move_elements(&{}, {}, {})", sizes, Pointer(call, 0, 1),
                       Pointer(call, 1, 2));
  }

  // An elementwise kernel whose inputs have the output's shape or one element.
  Result<std::string> Row(const KernelCall& call, std::size_t inputs) {
    if (call.arguments.size() != inputs + 1) return Refused(call, "it has other arguments");
    const Dims& out = call.arguments[inputs].value.dims;
    Dims steps;

    for (std::size_t i = 0; i <= inputs; ++i) {
      const Value& value = call.arguments[i].value;
      if (value.dtype != kFloat32) return Refused(call, "only tensors of f32 are taken");
      if (i == inputs) break;
      const bool is_one = ElementsOf(value.dims) == 1;
      if (value.dims != out && !is_one)
        return Refused(call, "its inputs are broadcast along some axes alone");
      steps.push_back(is_one ? 0 : 1);
    }
    return fmt::format(
        "{{\n    static const int32_t steps[] = {};\n    const void *inputs[{}];\n{}"
        "    rewire_embedded_{}_f32({}, inputs, steps, {});\n  }}",
        Braced(steps), inputs, Assignments(call, inputs), names::Stem(call.import.name), ElementsOf(out),
        call.arguments[inputs].text);
  }

  static std::string Assignments(const KernelCall& call, std::size_t inputs) {
    std::string text;
    for (std::size_t i = 0; i < inputs; ++i)
      text += fmt::format("    inputs[{}] = {};\n", i, call.arguments[i].text);
    return text;
  }

  std::string prefix_;
  std::string tables_{};
  std::map<std::string, std::string> structs_{};
};

}  // namespace

std::unique_ptr<KernelCalls> MakeEmbeddedCalls(const std::string& prefix) {
  return std::make_unique<EmbeddedCalls>(prefix);
}

}  // namespace rewire::aot
