// SPDX-License-Identifier: Apache-2.0
//
// _rewire._compile: what rewire/compiler.py calls.
#include "rewire/compiler/compiler.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"

namespace rewire::python {
namespace {

nb::dict ReportOf(const CompileReport& report) {
  nb::dict figures;
  figures["model_nodes"] = report.model_nodes;
  figures["nodes"] = report.nodes;
  figures["kernel_calls"] = report.kernel_calls;
  figures["kernels"] = report.kernels;
  figures["constants"] = report.constants;
  figures["constant_bytes"] = report.constant_bytes;
  figures["parameters"] = report.parameters;
  figures["parameter_bytes"] = report.parameter_bytes;
  figures["arena_bytes"] = report.arena_bytes;
  figures["separate_bytes"] = report.separate_bytes;
  figures["device_arena_bytes"] = report.device_arena_bytes;
  figures["device_separate_bytes"] = report.device_separate_bytes;
  figures["memory_bytes"] = report.memory.bounded() ? nb::object(nb::int_(report.memory.bytes)) : nb::none();
  figures["unbounded"] = report.memory.unbounded;
  figures["quantized"] = report.quantized;
  nb::list products;
  for (const ProductPrecision& product : report.products) {
    products.append(nb::make_tuple(product.node, product.quantized, product.noise, product.reason));
  }
  figures["products"] = std::move(products);
  nb::list movement;
  for (const OutputMovement& output : report.movement) {
    movement.append(nb::make_tuple(output.output, output.max_abs, output.relative));
  }
  figures["movement"] = std::move(movement);
  figures["unmeasured"] = report.unmeasured;
  figures["device_calls"] = report.device_calls;
  nb::list host_calls;
  for (const HostCalls& host : report.host_calls) {
    host_calls.append(nb::make_tuple(host.kernel, host.reason, host.calls));
  }
  figures["host_calls"] = std::move(host_calls);
  nb::list zeroed_weights;
  for (const ZeroedConstant& zeroed : report.zeroed_weights)
    zeroed_weights.append(nb::make_tuple(zeroed.constant, zeroed.node, zeroed.count));
  figures["zeroed_weights"] = zeroed_weights;
  nb::list layers;
  for (const ShardedLayer& layer : report.shards.layers) {
    layers.append(
        nb::make_tuple(layer.node, layer.split, layer.reason, layer.weight_bytes, layer.rank_bytes));
  }
  figures["sharded_layers"] = layers;
  nb::list split_inputs;
  for (const std::string& name : report.shards.split_inputs) split_inputs.append(name);
  figures["split_inputs"] = split_inputs;
  figures["from_cache"] = report.from_cache;
  figures["cache_problem"] = report.cache_problem;
  figures["seconds"] = std::chrono::duration<double>(report.time).count();
  return figures;
}

nb::list ListOf(const std::vector<UnsupportedNode>& nodes) {
  nb::list rows;
  for (const UnsupportedNode& node : nodes) {
    rows.append(nb::make_tuple(node.node, node.op_type, node.domain, node.opset, node.reason));
  }
  return rows;
}

struct Callbacks {
  nb::object progress;
  std::optional<nb::python_error> raised;  // what a callback raised; the compiler goes on

  void Begin(const std::string& what) {
    const nb::gil_scoped_acquire gil;
    if (raised) return;
    try {
      progress(what);
    } catch (nb::python_error& error) {
      raised.emplace(std::move(error));
    }
  }
};

CalibrationMethod MethodOf(const std::string& name) {
  if (name == "least-squares") return CalibrationMethod::kLeastSquares;
  if (name == "min-max") return CalibrationMethod::kMinMax;
  if (name == "entropy") return CalibrationMethod::kEntropy;
  const std::vector<std::string> known = {"least-squares", "min-max", "entropy"};
  Raise(Error(StatusCode::kInvalidArgument,
              "calibration is '" + name + "'" + KnownNames("choices", name, known)));
}

// `data` are dicts of arrays by name.
Calibration CalibrationOf(const nb::list& data, const std::string& method, double max_error,
                          const std::set<std::string>& keep_float) {
  Calibration calibration;
  calibration.method = MethodOf(method);
  calibration.max_error = max_error;
  calibration.keep_float = keep_float;
  for (const nb::handle inputs : data) {
    CalibrationData& arrays = calibration.data.emplace_back();
    for (const auto& [key, array] : nb::cast<nb::dict>(inputs)) {
      const auto name = nb::cast<std::string>(key);
      Tensor tensor = Import(array, Access::kRead, "calibrate['" + name + "']");
      if (!tensor.view().IsContiguous()) tensor = Take(Tensor::CopyOf(tensor.view()));
      arrays.insert_or_assign(name, std::move(tensor));
    }
  }
  return calibration;
}

// `files` is a dict of buffers by location. The executable keeps what it uses of them.
std::map<std::string, SharedBytes> FilesOf(nb::handle files) {
  std::map<std::string, SharedBytes> found;
  for (const auto& [key, bytes] : nb::cast<nb::dict>(files)) {
    const auto location = nb::cast<std::string>(key);
    const auto file =
        std::make_shared<const Tensor>(Import(bytes, Access::kRead, "external_files['" + location + "']"));
    const TensorView view = file->view();
    if (!view.IsContiguous()) {
      Raise(Error(StatusCode::kInvalidArgument,
                  "external_files['" + location + "']: its bytes are strided; copy them first"));
    }
    found[location] = {{static_cast<const std::byte*>(view.data()), view.bytes()}, file};
  }
  return found;
}

// `model` is a path, or an object with a buffer. Returns (executable, report, parameters), or for a model
// with unsupported nodes (None, list of them, message).
nb::tuple CompileModel(const Arguments& given) {
  enum : std::size_t {
    kModel,
    kFolder,
    kName,
    kDims,
    kMaxDims,
    kDisabled,
    kExternalFolders,
    kPrecision,
    kCalibrate,
    kCalibration,
    kMaxError,
    kKeepFloat,
    kDevice,
    kDeviceWork,
    kParallel,
    kCpu,
    kCompress,
    kCheckPasses,
    kStrict,
    kParameters,
    kAllParameters,
    kInitializers,
    kExternalFiles,
    kOverridden,
    kOperators,
    kCache,
    kShards,
    kStages,
    kRank,
    kShardForMemory,
    kProgress
  };
  const nb::handle model = given[kModel], progress = given[kProgress];
  CompileOptions options;
  options.external_folders = ToTexts(given[kExternalFolders], "external_folders");
  options.dims = ToSizes(given[kDims], "dims");
  options.max_dims = ToSizes(given[kMaxDims], "max_dims");
  options.cache = ToPath(given[kCache], "cache");
  options.disabled_passes = ToNames(given[kDisabled], "disable_passes");
  options.device = ToText(given[kDevice], "device");
  options.least_device_work = ToInteger(given[kDeviceWork], "device_work");
  options.parallel = ToFlag(given[kParallel], "parallel", true) ? Parallel::kAuto : Parallel::kOff;
  options.shards = ToInteger(given[kShards], "shards");
  options.stages = ToInteger(given[kStages], "stages");
  options.rank = ToInteger(given[kRank], "rank");
  if (ToFlag(given[kShardForMemory], "shard_for", false)) options.shard_goal = ShardGoal::kMemory;
  options.compress = ToFlag(given[kCompress], "compress", true);
  if (ToFlag(given[kCheckPasses], "check_passes", false)) options.check_passes = true;
  options.strict = ToFlag(given[kStrict], "strict", false);
  options.parameters = ToNames(given[kParameters], "parameters");
  options.all_parameters = ToFlag(given[kAllParameters], "all_parameters", false);
  options.initializers = ToObject<ParameterSet>(given[kInitializers], "initializers", "a ParameterSet");
  options.external_files = FilesOf(given[kExternalFiles]);
  options.overridden = ToNames(given[kOverridden], "overridden");
  options.operators = Take(ParseOperatorSchemas(ToText(given[kOperators], "operators"), "operators"));
  const std::string cpu = ToText(given[kCpu], "cpu"), precision = ToText(given[kPrecision], "precision");
  if (cpu == "vectors") options.cpu = Cpu::kVectors;
  if (cpu == "tiles") options.cpu = Cpu::kTiles;
  if (precision == "int8") options.precision = Precision::kInt8;
  if (precision == "bf16") options.precision = Precision::kBf16;
  options.calibration =
      CalibrationOf(nb::borrow<nb::list>(given[kCalibrate]), ToText(given[kCalibration], "calibration"),
                    ToNumber(given[kMaxError], "max_error"), ToNames(given[kKeepFloat], "keep_float"));
  Callbacks callbacks{nb::borrow(progress), std::nullopt};
  if (!progress.is_none()) options.progress = [&](const std::string& what) { callbacks.Begin(what); };
  std::string path;
  Tensor bytes;
  const std::string folder = ToPath(given[kFolder], "external_data"), name = ToText(given[kName], "name");
  if (PyUnicode_Check(model.ptr()) != 0) {
    path = ToPath(model, "model");
  } else {
    bytes = Import(model, Access::kRead, "the model");
    if (!bytes.view().IsContiguous()) {
      Raise(Error(StatusCode::kInvalidArgument, "the model: its bytes are strided; copy them first"));
    }
  }
  std::vector<UnsupportedNode> unsupported;
  Result<Compilation> compiled = [&] {
    const nb::gil_scoped_release released;
    if (!bytes) return Compile(path, options, &unsupported);
    const TensorView view = bytes.view();
    return CompileBytes({static_cast<const std::byte*>(view.data()), view.bytes()}, folder, name, options,
                        &unsupported);
  }();
  if (callbacks.raised) throw nb::python_error(std::move(*callbacks.raised));
  if (!compiled && !unsupported.empty()) {
    return nb::make_tuple(nb::none(), ListOf(unsupported), compiled.error().message());
  }
  const Compilation made = bytes ? Take(std::move(compiled)) : TakeFile(std::move(compiled), path);
  return nb::make_tuple(made.executable, ReportOf(made.report), made.parameters);
}

}  // namespace

void AddCompiler(nb::module_& module) {
  FunctionOf(
      module,
      "def _compile(model: typing.Any, folder: str, name: str, dims: dict[str, int], max_dims: dict[str, "
      "int], "
      "disabled_passes: collections.abc.Iterable[str], external_folders: list[str], precision: str, "
      "calibrate: list[dict[str, typing.Any]], calibration: str, max_error: float, "
      "keep_float: collections.abc.Iterable[str], device: str, device_work: int, parallel: bool, cpu: str, "
      "compress: bool, check_passes: bool, strict: bool, parameters: collections.abc.Iterable[str], "
      "all_parameters: bool, initializers: ParameterSet, external_files: dict[str, typing.Any], "
      "overridden: collections.abc.Iterable[str], operators: str, cache: str, shards: int, stages: int, "
      "rank: int, "
      "shard_for_memory: bool, progress: "
      "typing.Callable[[str], object] | None) "
      "-> tuple[Executable | None, typing.Any, typing.Any]",
      &CompileModel, "Compiles a model.");
  FunctionOf(
      module, "def compiler_passes() -> list[str]", [](const Arguments&) { return CompilerPasses(); },
      "Returns the names of the passes that can be disabled.");
}

}  // namespace rewire::python
