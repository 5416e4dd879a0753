// SPDX-License-Identifier: Apache-2.0
// Calls of packed functions: each argument is described as a tensor, as the VM does.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <variant>

#include "rewire/compiler/aot/c_names.h"
#include "rewire/compiler/aot/kernel_calls.h"

namespace rewire::aot {
namespace {

template <typename Element>
std::string Joined(const std::vector<Element>& elements) {
  std::string text;
  for (const Element& element : elements) text += fmt::format("{}{}", text.empty() ? "" : ", ", element);
  return text;
}

std::string WideText(std::int64_t value) {
  return value == INT64_MIN ? "(-INT64_C(9223372036854775807) - 1)" : fmt::format("INT64_C({})", value);
}

std::string DoubleText(double value) {
  if (value != value) return "(0.0 / 0.0)";
  if (value - value != 0) return value > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
  const std::string text = fmt::format("{:.17g}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class PackedCalls : public KernelCalls {
 public:
  PackedCalls(const Module& module, std::string prefix) : module_(module), prefix_(std::move(prefix)) {}

  Result<std::string> Call(const KernelCall& call, std::string* setup) override {
    std::vector<std::string> lines;
    for (std::size_t place = 0; place < call.arguments.size(); ++place) {
      const std::string line = Set(place, call.arguments[place]);
      if (!line.empty()) lines.push_back("  " + line);
    }
    *setup = fmt::format("{}", fmt::join(lines, "\n"));
    return fmt::format("RewireAotCall(&kernels[{}], {}, {})", call.index,
                       call.arguments.empty() ? "0" : "arguments", call.arguments.size());
  }

  void BeginBlock() override { held_.clear(); }

  std::string Includes() const override { return "#include \"rewire/compiler/aot/packed_host.h\"\n"; }

  std::string Tables() const override {
    std::string text;
    for (const auto& [dims, name] : dims_) {
      std::vector<std::int64_t> strides(dims.size());
      std::int64_t stride = 1;
      for (std::size_t i = dims.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= dims[i];
      }
      std::vector<std::string> elements;
      for (const std::int64_t dim : dims) elements.push_back(WideText(dim));
      for (const std::int64_t each : strides) elements.push_back(WideText(each));
      if (elements.empty()) elements.push_back("0");
      text += fmt::format("static const int64_t {}[] = {{{}}};\n", name, Joined(elements));
    }
    return text + Imports();
  }

  std::string Locals(std::uint32_t most_arguments) const override {
    if (most_arguments == 0) return "  (void)kernels;\n";
    return fmt::format(
        "  RewireFFIAny arguments[{0}];\n  DLTensor tensors[{0}];\n  (void)kernels;\n  "
        "(void)arguments;\n  (void)tensors;\n",
        most_arguments);
  }

 private:
  // Held is what an argument has been since the block began: its form, and its address if that text always
  // means the same. Empty texts are not known.
  struct Held {
    std::string form, data;
  };

  // The statement that gives the argument this value. Tensors of one form differ in their data alone.
  std::string Set(std::size_t place, const CallArgument& argument) {
    if (held_.size() <= place) held_.resize(place + 1);
    const Value& value = argument.value;
    if (value.kind == Value::Kind::kInteger) {
      held_[place] = {};
      return fmt::format("RewireAotInteger(&arguments[{}], {});", place, argument.text);
    }
    const std::string form =
        fmt::format("RewireAotType({}, {}, {}), {}, {}", value.dtype.code, value.dtype.bits,
                    value.dtype.lanes, value.dims.size(), DimsName(value.dims));
    // A place among several, and a pointer that is set where paths meet, vary.
    const Place::Base base = value.place.base;
    const bool varies = base == Place::Base::kVariable ||
                        (base == Place::Base::kStorage && argument.text.find("arena") == std::string::npos);
    Held now{form, varies ? std::string() : argument.text};
    const Held before = std::exchange(held_[place], now);
    if (before.form != form) {
      return fmt::format("RewireAotTensor(&arguments[{0}], &tensors[{0}], {1}, {2});", place, argument.text,
                         form);
    }
    if (!varies && before.data == now.data) return {};
    return fmt::format("RewireAotMove(&tensors[{}], {});", place, argument.text);
  }

  std::string DimsName(const std::vector<std::int64_t>& dims) {
    const auto [found, made] = dims_.try_emplace(dims, fmt::format("{}_dims_{}", prefix_, dims_.size()));
    return found->second;
  }

  // A host finds the kernels by these names and attributes.
  std::string Imports() const {
    std::string text;
    std::string rows;
    for (std::size_t i = 0; i < module_.kernels.size(); ++i) {
      const KernelImport& import = module_.kernels[i];
      std::string attributes;
      for (std::size_t k = 0; k < import.attributes.size(); ++k) {
        attributes += AttributeText(import.attributes[k], fmt::format("{}_list_{}_{}", prefix_, i, k), &text);
      }
      std::string list = "0";
      if (!attributes.empty()) {
        list = fmt::format("{}_attributes_{}", prefix_, i);
        text += fmt::format("static const RewireAotAttribute {}[] = {{\n{}}};\n", list, attributes);
      }
      rows += fmt::format("  {{{}, {}, {}}},\n", CString(import.name), list, import.attributes.size());
    }
    if (rows.empty()) rows = "  {0, 0, 0},\n";
    return text + fmt::format("const RewireAotImport {}_imports[] = {{\n{}}};\n", prefix_, rows);
  }

  static std::string AttributeText(const Attribute& attribute, const std::string& name, std::string* text) {
    const std::string key = CString(attribute.name);
    if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
      return fmt::format("  {{{}, kRewireAotInt, {}, 0, 0, 0, 0}},\n", key, WideText(*integer));
    }
    if (const auto* number = std::get_if<double>(&attribute.value)) {
      return fmt::format("  {{{}, kRewireAotFloat, 0, {}, 0, 0, 0}},\n", key, DoubleText(*number));
    }
    if (const auto* word = std::get_if<std::string>(&attribute.value)) {
      return fmt::format("  {{{}, kRewireAotText, 0, 0, {}, 0, 0}},\n", key, CString(*word));
    }
    if (const auto* integers = std::get_if<Array<std::int64_t>>(&attribute.value)) {
      std::vector<std::string> elements;
      for (const std::int64_t each : *integers) elements.push_back(WideText(each));
      if (elements.empty()) elements.push_back("0");
      *text += fmt::format("static const int64_t {}[] = {{{}}};\n", name, Joined(elements));
      return fmt::format("  {{{}, kRewireAotInts, {}, 0, 0, {}, 0}},\n", key, integers->size(), name);
    }
    std::vector<std::string> elements;
    const auto& numbers = std::get<Array<double>>(attribute.value);
    for (const double each : numbers) elements.push_back(DoubleText(each));
    if (elements.empty()) elements.push_back("0");
    *text += fmt::format("static const double {}[] = {{{}}};\n", name, Joined(elements));
    return fmt::format("  {{{}, kRewireAotFloats, {}, 0, 0, 0, {}}},\n", key, numbers.size(), name);
  }

  std::vector<Held> held_{};
  const Module& module_;
  std::string prefix_;
  std::map<std::vector<std::int64_t>, std::string> dims_{};
};

}  // namespace

std::unique_ptr<KernelCalls> MakePackedCalls(const Module& module, const std::string& prefix) {
  return std::make_unique<PackedCalls>(module, prefix);
}

}  // namespace rewire::aot
