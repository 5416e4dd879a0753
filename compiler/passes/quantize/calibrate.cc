// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/passes/quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/compiler/emit/emit.h"
#include "rewire/compiler/passes/quantize/quantize_products.h"

namespace rewire::compiler {
namespace {

using Calls = std::vector<std::vector<rewire::Value>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Result<Program> LinkModule(Module module, const KernelSet& kernels) {
  const Result<Executable> executable = Executable::FromModule(std::move(module));
  if (!executable) return Forward(executable);
  LinkOptions options;
  options.kernels = kernels;
  return Program::Link(*executable, std::move(options));
}

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
  if (view.device().device_type != kDLCPU || !view.IsContiguous())
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

Result<Calls> ReadCalls(const Graph& graph, const std::map<std::string, Tensor>& inputs) {
  const std::vector<std::string>& names = graph.input_names;
  for (const auto& [name, samples] : inputs) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("calibration data: the model has no input \"{}\"{}", name,
                              DidYouMean(name, Span<const std::string>(names.data(), names.size()))));
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
                  fmt::format("calibration data: input \"{}\" has {} samples, \"{}\" has {}", names[i],
                              cuts[i].calls.size(), names[*counted], cuts[*counted].calls.size()));
    }
  }
  if (cuts.empty()) return Fail(StatusCode::kInvalidArgument, "the model has no inputs to calibrate with");
  Calls calls(counted ? cuts[*counted].calls.size() : 1);
  for (std::size_t call = 0; call < calls.size(); ++call) {
    for (const CutInput& cut : cuts) calls[call].emplace_back(cut.calls[cut.single ? 0 : call]);
  }
  return calls;
}

Result<std::vector<rewire::Value>> RunCall(const Program& program, const std::vector<rewire::Value>& inputs,
                                           std::size_t results) {
  const Result<rewire::Value> made = program.TryRun("main", {inputs.data(), inputs.size()});
  if (!made) return Forward(made, "calibration");
  if (results == 1) return std::vector<rewire::Value>{*made};
  std::vector<rewire::Value> values;
  for (std::uint32_t i = 0; i < results; ++i) values.push_back(made->field(i));
  return values;
}

// Nothing for other elements.
Span<const float> ElementsOf(const rewire::Value& value) {
  if (value.kind() != ValueKind::kTensor) return {};
  const TensorView view = value.tensor().view();
  if (view.dtype() != kFloat32 || !view.IsContiguous()) return {};
  return {static_cast<const float*>(view.data()), static_cast<std::size_t>(view.bytes() / sizeof(float))};
}

// Equal infinities have not moved, nor have two values that are no numbers. One of them alone has by
// infinity.
double Moved(float from, float to) {
  if (from == to || (std::isnan(from) && std::isnan(to))) return 0;
  const double moved = std::fabs(double{to} - double{from});
  return std::isnan(moved) ? kInfinity : moved;
}

}  // namespace

Result<Calibrator> Calibrator::Quantize(Graph* graph, const Calibration& calibration,
                                        const KernelSet& kernels) {
  Result<Calls> calls = ReadCalls(*graph, calibration.inputs);
  if (!calls) return Forward(calls);
  const std::vector<Value*> watched = ValuesToQuantize(*graph);
  const std::vector<Value*> results = graph->main.results;
  const std::vector<std::string> names = graph->output_names;
  std::unordered_map<const Value*, ActivationRange> ranges;
  std::vector<const Value*> shown;  // results behind those of the model
  for (Value* value : watched) {
    ranges[value];
    const std::vector<Value*>& inputs = graph->main.parameters;
    if (std::find(inputs.begin(), inputs.end(), value) != inputs.end() ||
        std::find(results.begin(), results.end(), value) != results.end()) {
      continue;
    }
    shown.push_back(value);
    graph->main.results.push_back(value);
    graph->output_names.push_back(fmt::format("{} {}", value->name, shown.size()));
  }
  Result<Module> module = EmitModule(*graph);
  graph->main.results = results;
  graph->output_names = names;
  if (!module) return Forward(module);
  Result<Program> program = LinkModule(*std::move(module), kernels);
  if (!program) return Forward(program, "calibration");
  Calibrator made(*std::move(program), kernels);
  made.calls_ = *std::move(calls);
  made.outputs_ = names;
  made.results_ = results.size() + shown.size();

  const bool entropy = calibration.method == CalibrationMethod::kEntropy;
  for (const bool count : {false, true}) {
    if (count && !entropy) break;
    for (const std::vector<rewire::Value>& inputs : made.calls_) {
      const auto see = [&](const Value* value, const rewire::Value& seen) {
        const auto range = ranges.find(value);
        if (range == ranges.end()) return;
        if (count) {
          range->second.Count(ElementsOf(seen));
        } else {
          range->second.Extend(ElementsOf(seen));
        }
      };
      const Result<std::vector<rewire::Value>> values = RunCall(made.float_, inputs, made.results_);
      if (!values) return Forward(values);
      for (std::size_t i = 0; i < inputs.size(); ++i) see(graph->main.parameters[i], inputs[i]);
      for (std::size_t i = 0; i < results.size(); ++i) {
        // A value that is two results is seen once.
        if (std::find(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(i), results[i]) ==
            results.begin() + static_cast<std::ptrdiff_t>(i)) {
          see(results[i], (*values)[i]);
        }
      }
      for (std::size_t i = 0; i < shown.size(); ++i) see(shown[i], (*values)[results.size() + i]);
    }
  }
  made.quantized_ = QuantizeProducts(graph, [&](const Value* value) {
    const ActivationRange& range = ranges.at(value);
    return entropy ? range.Entropy() : range.MinMax();
  });
  return made;
}

Result<std::vector<OutputMovement>> Calibrator::Movement(const Module& quantized) const {
  const Result<Program> program = LinkModule(quantized, kernels_);
  if (!program) return Forward(program, "calibration");
  struct Sums {
    double most = 0, moved = 0, all = 0;
    bool seen = false;
  };
  std::vector<Sums> sums(outputs_.size());
  for (const std::vector<rewire::Value>& inputs : calls_) {
    const Result<std::vector<rewire::Value>> before = RunCall(float_, inputs, results_);
    if (!before) return Forward(before);
    const Result<std::vector<rewire::Value>> after = RunCall(*program, inputs, outputs_.size());
    if (!after) return Forward(after);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Span<const float> a = ElementsOf((*before)[i]), b = ElementsOf((*after)[i]);
      if (a.size() != b.size()) sums[i].moved = sums[i].most = kInfinity;
      for (std::size_t j = 0; j < std::min(a.size(), b.size()); ++j) {
        const double moved = Moved(a[j], b[j]);
        sums[i].seen = true;
        sums[i].most = std::max(sums[i].most, moved);
        sums[i].moved += moved * moved;
        if (std::isfinite(a[j])) sums[i].all += double{a[j]} * double{a[j]};
      }
    }
  }
  std::vector<OutputMovement> movement;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!sums[i].seen) continue;
    const double relative = sums[i].moved == 0 ? 0 : std::sqrt(sums[i].moved / sums[i].all);
    movement.push_back({outputs_[i], sums[i].most, relative});
  }
  return movement;
}

}  // namespace rewire::compiler
