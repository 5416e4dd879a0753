// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/calibration_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "rewire/base/near_names.h"

namespace rewire::compiler {
namespace {

// An input of each call. A single one is that of every call.
struct CutInput {
  bool single = false;
  std::vector<Tensor> calls;
};

// Calibration explains how an array is cut.
Result<CutInput> CutSamples(const std::string& name, const Type& type, const Tensor& samples) {
  const auto invalid = [&](const std::string& what) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("calibration data for input \"{}\": {}", name, what));
  };
  if (!type.IsTensor()) return invalid("the input is no tensor");
  const TensorView view = samples.view();
  if (!IsHostDevice(view.device()) || !view.IsContiguous())
    return invalid("expected a tensor without strides in host memory");
  const std::vector<std::int64_t> shape(view.shape().begin(), view.shape().end());
  const std::size_t rank = type.ranked ? static_cast<std::size_t>(type.rank()) : shape.size();
  const bool stacked = shape.size() == rank + 1;
  if (!stacked && shape.size() != rank) {
    return invalid(
        fmt::format("it has rank {}, expected {} (one sample) or {} (samples along the first axis)",
                    shape.size(), rank, rank + 1));
  }
  if (view.dtype() != type.dtype)
    return invalid(fmt::format("it is {}, expected {}", DTypeName(view.dtype()), DTypeName(type.dtype)));
  if (stacked && shape[0] < 1) return invalid("it has no samples: its first axis is 0");
  const std::vector<std::int64_t> of_call(shape.begin() + (stacked ? 1 : 0), shape.end());
  const std::int64_t count = stacked ? shape[0] : 1;
  const std::uint64_t bytes = view.bytes() / static_cast<std::uint64_t>(count);
  auto* data = static_cast<std::byte*>(view.data());
  CutInput cut;
  cut.single = !stacked;
  for (std::int64_t i = 0; i < count; ++i) {
    // A copy is aligned.
    Result<Tensor> part =
        Tensor::CopyOf(TensorView(data + bytes * static_cast<std::uint64_t>(i), view.dtype(), of_call));
    if (!part) return Forward(part);
    cut.calls.push_back(*std::move(part));
  }
  return cut;
}

Status AddCalls(const Graph& graph, const CalibrationData& inputs, Calls* all) {
  const std::vector<std::string>& names = graph.input_names;
  for (const auto& [name, samples] : inputs) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("calibration data: the model has no input \"{}\"{}", name,
                              KnownNames("inputs", name, {names.data(), names.size()})));
    }
  }
  std::vector<CutInput> cuts;
  std::optional<std::size_t> counted;  // the first input with samples along an axis
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto given = inputs.find(names[i]);
    if (given == inputs.end()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("calibration data: there is no array for input \"{}\"", names[i]));
    }
    Result<CutInput> cut = CutSamples(names[i], graph.main.parameters[i]->type, given->second);
    if (!cut) return Forward(cut);
    cuts.push_back(*std::move(cut));
    if (cuts[i].single) continue;
    if (!counted) counted = i;
    if (cuts[i].calls.size() != cuts[*counted].calls.size()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format(R"(calibration data: input "{}" has {} samples, "{}" has {})", names[i],
                              cuts[i].calls.size(), names[*counted], cuts[*counted].calls.size()));
    }
  }
  if (cuts.empty()) return Fail(StatusCode::kInvalidArgument, "the model has no inputs to calibrate with");
  const std::size_t count = counted ? cuts[*counted].calls.size() : 1;
  for (std::size_t call = 0; call < count; ++call) {
    std::vector<rewire::Value> values;
    values.reserve(cuts.size());
    for (const CutInput& cut : cuts) values.emplace_back(cut.calls[cut.single ? 0 : call]);
    all->push_back(std::move(values));
  }
  return {};
}

}  // namespace

Result<Calls> ReadCalls(const Graph& graph, const std::vector<CalibrationData>& data) {
  Calls calls;
  for (const CalibrationData& inputs : data) {
    if (Status added = AddCalls(graph, inputs, &calls); !added) return Forward(added);
  }
  return calls;
}

Result<Calls> RandomCalls(const Graph& graph, std::int64_t size) {
  std::mt19937 random(1);                     // the same on every machine
  std::map<std::string, std::int64_t> sizes;  // of open dimensions
  std::vector<rewire::Value> values;
  for (std::size_t i = 0; i < graph.input_names.size(); ++i) {
    const Type& type = graph.main.parameters[i]->type;
    const auto unsupported = [&](const char* what) {
      return Fail(StatusCode::kUnsupported,
                  fmt::format("there are no random inputs: \"{}\" is {}", graph.input_names[i], what));
    };
    if (!type.IsTensor() || !type.ranked) return unsupported("no tensor of known rank");
    std::vector<std::int64_t> shape;
    for (std::size_t axis = 0; axis < type.dims.size(); ++axis) {
      const DimExpr& dim = type.dims[axis];
      if (dim.constant()) {
        shape.push_back(*dim.constant());
        continue;
      }
      const std::string name = dim.text();
      const auto limit = graph.max_dims.find(name);
      const std::int64_t open = axis == 0 && type.dims.size() > 1 ? 1 : size;
      shape.push_back(
          sizes.emplace(name, limit == graph.max_dims.end() ? open : std::min(open, limit->second))
              .first->second);
    }
    const Result<std::uint64_t> bytes = CompactBytes(type.dtype, {shape.data(), shape.size()});
    if (!bytes) return Forward(bytes);
    std::vector<std::byte> elements(*bytes);
    const auto fill = [&](auto make) {
      using T = decltype(make());
      auto* to = reinterpret_cast<T*>(elements.data());
      std::generate_n(to, elements.size() / sizeof(T), make);
    };
    const auto small = [&] { return random() % 10; };
    if (type.dtype == kFloat32)
      fill([&] { return static_cast<float>(random() >> 8) * 0x1p-23F - 1; });
    else if (type.dtype == kFloat64)
      fill([&] { return static_cast<double>(random()) * 0x1p-31 - 1; });
    else if (type.dtype == kBool8)
      fill([&] { return static_cast<std::uint8_t>(random() % 2); });
    else if (type.dtype == kInt64)
      fill([&] { return static_cast<std::int64_t>(small()); });
    else if (type.dtype == kInt32)
      fill([&] { return static_cast<std::int32_t>(small()); });
    else if (type.dtype == kUInt8 || type.dtype == kInt8)
      fill([&] { return static_cast<std::uint8_t>(small()); });
    else
      return unsupported(("of dtype " + DTypeName(type.dtype)).c_str());
    Result<Tensor> tensor = Tensor::CopyOf(TensorView(elements.data(), type.dtype, shape));
    if (!tensor) return Forward(tensor);
    values.emplace_back(*std::move(tensor));
  }
  return Calls{std::move(values)};
}

}  // namespace rewire::compiler
