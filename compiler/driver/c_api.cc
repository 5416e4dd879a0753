// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/c_api.h"

#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "rewire/compiler/compiler.h"
#include "rewire/compiler/overridable.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

namespace {

using rewire::Result;
using rewire::Status;
using rewire::c_api::Boundary;
using rewire::c_api::Given;
using rewire::c_api::Require;

Status ReadDims(const char* name, const RewireMaxDim* dims, std::uint32_t count,
                std::map<std::string, std::int64_t>* out) {
  if (count == 0) return {};
  if (Status ok = Require(name, dims); !ok) return ok;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Status ok = Require(name, dims[i].name); !ok) return ok;
    (*out)[dims[i].name] = dims[i].size;
  }
  return {};
}

Status ReadNames(const char* what, const char* const* names, std::uint32_t count,
                 std::vector<std::string>* out) {
  if (count == 0) return {};
  if (Status ok = Require(what, names); !ok) return ok;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Status ok = Require(what, names[i]); !ok) return ok;
    out->emplace_back(names[i]);
  }
  return {};
}

Status ReadData(const RewireCalibrationData& given, rewire::CalibrationData* data) {
  if (given.array_count > 0) {
    if (Status ok = Require("arrays", given.arrays); !ok) return ok;
  }
  for (std::uint32_t i = 0; i < given.array_count; ++i) {
    const RewireCalibrationArray& array = given.arrays[i];
    if (Status ok = Require("input,samples", array.input, array.samples); !ok) return ok;
    RewireValue* value = nullptr;
    if (const RewireStatus copied = rewire_value_copy_tensor(array.samples, &value); copied != kRewireOk) {
      return rewire::Fail(
          static_cast<rewire::StatusCode>(copied),
          std::string("calibration data for input \"") + array.input + "\": " + rewire_last_error_message());
    }
    data->insert_or_assign(array.input, value->value.tensor());
    rewire_value_destroy(value);
  }
  return {};
}

Status ReadCalibration(const RewireCompileOptions& given, rewire::CompileOptions* options) {
  using rewire::CalibrationMethod;
  const auto invalid = [](const char* what, std::uint32_t value) {
    return rewire::Fail(rewire::StatusCode::kInvalidArgument,
                        std::string(what) + " is " + std::to_string(value) + ", which stands for nothing");
  };
  if (given.precision > kRewirePrecisionBf16) return invalid("precision", given.precision);
  if (given.precision == kRewirePrecisionInt8) options->precision = rewire::Precision::kInt8;
  if (given.precision == kRewirePrecisionBf16) options->precision = rewire::Precision::kBf16;
  static constexpr CalibrationMethod kMethods[] = {CalibrationMethod::kLeastSquares,
                                                   CalibrationMethod::kMinMax, CalibrationMethod::kEntropy};
  if (given.calibration_method >= std::size(kMethods))
    return invalid("calibration_method", given.calibration_method);
  rewire::Calibration& calibration = options->calibration;
  calibration.method = kMethods[given.calibration_method];
  if (given.max_error != 0) calibration.max_error = given.max_error;
  std::vector<std::string> keep;
  if (Status ok = ReadNames("keep_float", given.keep_float, given.keep_float_count, &keep); !ok) return ok;
  calibration.keep_float.insert(keep.begin(), keep.end());
  if (given.calibration_count == 0) return {};
  if (Status ok = Require("calibration", given.calibration); !ok) return ok;
  for (std::uint32_t i = 0; i < given.calibration_count; ++i) {
    if (Status ok = ReadData(given.calibration[i], &calibration.data.emplace_back()); !ok) return ok;
  }
  return {};
}

Status ReadInitializers(const RewireCompileOptions& given, rewire::CompileOptions* options) {
  if (given.initializers != nullptr) options->initializers = given.initializers->set;
  std::vector<std::string> overridden;
  if (Status ok = ReadNames("overridden", given.overridden, given.overridden_count, &overridden); !ok)
    return ok;
  options->overridden.insert(overridden.begin(), overridden.end());
  if (given.external_file_count == 0) return {};
  if (Status ok = Require("external_files", given.external_files); !ok) return ok;
  for (std::uint32_t i = 0; i < given.external_file_count; ++i) {
    const RewireExternalFile& file = given.external_files[i];
    if (Status ok = Require("location", file.location); !ok) return ok;
    if (file.size != 0) {
      if (Status ok = Require("data", file.data); !ok) return ok;
    }
    options->external_files[file.location] = {{static_cast<const std::byte*>(file.data), file.size}, nullptr};
  }
  return {};
}

Status ReadRanks(const RewireCompileOptions& given, rewire::CompileOptions* options) {
  if (given.shards != 0) options->shards = given.shards;
  if (given.stages != 0) options->stages = given.stages;
  options->rank = given.rank;
  if (given.shard_goal > kRewireShardForMemory) {
    return rewire::Fail(rewire::StatusCode::kInvalidArgument,
                        "shard_goal is " + std::to_string(given.shard_goal) + ", which stands for nothing");
  }
  if (given.shard_goal == kRewireShardForMemory) options->shard_goal = rewire::ShardGoal::kMemory;
  return {};
}

struct Call {
  RewireCompileOptions given{};
  rewire::CompileOptions options;
  std::vector<rewire::UnsupportedNode> unsupported;

  Status Read(const RewireCompileOptions* from) {
    if (from == nullptr) return {};
    if (Status ok = rewire::c_api::ReadStruct("RewireCompileOptions", from, &given); !ok) return ok;
    if (Status ok = ReadDims("dims", given.dims, given.dim_count, &options.dims); !ok) return ok;
    if (Status ok = ReadDims("max_dims", given.max_dims, given.max_dim_count, &options.max_dims); !ok) {
      return ok;
    }
    std::vector<std::string> disabled;
    if (Status ok = ReadNames("disabled_passes", given.disabled_passes, given.disabled_pass_count, &disabled);
        !ok) {
      return ok;
    }
    options.disabled_passes.insert(disabled.begin(), disabled.end());
    if (Status ok = ReadNames("external_folders", given.external_folders, given.external_folder_count,
                              &options.external_folders);
        !ok) {
      return ok;
    }
    std::vector<std::string> parameters;
    if (Status ok = ReadNames("parameters", given.parameters, given.parameter_count, &parameters); !ok)
      return ok;
    options.parameters.insert(parameters.begin(), parameters.end());
    options.all_parameters = given.all_parameters != 0;
    if (given.operators != nullptr) {
      Result<std::vector<rewire::OperatorSchema>> schemas =
          rewire::ParseOperatorSchemas(given.operators, "operators");
      if (!schemas) return rewire::Forward(schemas);
      options.operators = *std::move(schemas);
    }
    if (Status ok = ReadInitializers(given, &options); !ok) return ok;
    if (Status ok = ReadCalibration(given, &options); !ok) return ok;
    if (given.parallel > kRewireParallelOff) {
      return rewire::Fail(rewire::StatusCode::kInvalidArgument,
                          "parallel is " + std::to_string(given.parallel) + ", which stands for nothing");
    }
    if (given.parallel == kRewireParallelOff) options.parallel = rewire::Parallel::kOff;
    if (given.cpu > kRewireCpuTiles) {
      return rewire::Fail(rewire::StatusCode::kInvalidArgument,
                          "cpu is " + std::to_string(given.cpu) + ", which stands for nothing");
    }
    if (given.cpu == kRewireCpuVectors) options.cpu = rewire::Cpu::kVectors;
    if (given.cpu == kRewireCpuTiles) options.cpu = rewire::Cpu::kTiles;
    if (Status ok = ReadRanks(given, &options); !ok) return ok;
    options.compress = given.uncompressed == 0;
    options.strict = given.strict != 0;
    if (given.check_passes != 0) options.check_passes = true;
    if (given.max_work != 0) options.limits.work = given.max_work;
    if (given.max_fold_bytes != 0) options.limits.fold_bytes = given.max_fold_bytes;
    if (given.fold_time != 0) options.limits.fold_time = std::chrono::nanoseconds(given.fold_time);
    if (given.device != nullptr) options.device = given.device;
    if (given.cache != nullptr) options.cache = given.cache;
    if (given.least_device_work != 0) options.least_device_work = given.least_device_work;
    if (given.progress != nullptr) {
      options.progress = [this](const std::string& what) { given.progress(given.context, what.c_str()); };
    }
    return {};
  }

  void TellUnsupported() const {
    if (given.unsupported == nullptr) return;
    for (const rewire::UnsupportedNode& node : unsupported) {
      const RewireUnsupportedNode told = {
          sizeof(RewireUnsupportedNode), node.node.c_str(), node.op_type.c_str(),
          node.domain.c_str(),           node.opset,        node.reason.c_str()};
      given.unsupported(given.context, &told);
    }
  }

  void TellPrecision(const rewire::CompileReport& report) const {
    for (const rewire::ProductPrecision& product : report.products) {
      if (given.product == nullptr) break;
      const RewireProductPrecision told = {sizeof(RewireProductPrecision), product.quantized ? 1 : 0,
                                           product.node.c_str(), product.reason.c_str(), product.noise};
      given.product(given.context, &told);
    }
    for (const rewire::OutputMovement& output : report.movement) {
      if (given.moved == nullptr) break;
      const RewireOutputMovement told = {sizeof(RewireOutputMovement), output.output.c_str(), output.max_abs,
                                         output.relative};
      given.moved(given.context, &told);
    }
    if (given.unmeasured != nullptr && !report.unmeasured.empty())
      given.unmeasured(given.context, report.unmeasured.c_str());
  }

  void TellHostCalls(const rewire::CompileReport& report) const {
    for (const rewire::HostCalls& host : report.host_calls) {
      if (given.stays_on_host == nullptr) break;
      const RewireHostCalls told = {sizeof(RewireHostCalls), host.kernel.c_str(), host.reason.c_str(),
                                    host.calls};
      given.stays_on_host(given.context, &told);
    }
  }

  void TellZeroedWeights(const rewire::CompileReport& report) const {
    for (const rewire::ZeroedConstant& zeroed : report.zeroed_weights) {
      if (given.zeroed == nullptr) break;
      given.zeroed(given.context, zeroed.constant.c_str(), zeroed.node.c_str(), zeroed.count);
    }
  }

  void TellShards(const rewire::CompileReport& report) const {
    for (const rewire::ShardedLayer& layer : report.shards.layers) {
      if (given.sharded == nullptr) break;
      const RewireShardedLayer told = {sizeof(RewireShardedLayer), layer.node.c_str(), layer.split.c_str(),
                                       layer.reason.c_str(),       layer.weight_bytes, layer.rank_bytes};
      given.sharded(given.context, &told);
    }
  }

  void TellOverridable(const rewire::Executable& executable) const {
    if (given.overridable == nullptr) return;
    for (const rewire::OverridableInitializer& each : rewire::OverridableInitializers(executable)) {
      std::vector<std::int64_t> dims;
      RewireOverridableInitializer told = {sizeof(RewireOverridableInitializer), -1, each.name.c_str(),
                                           each.element_type.c_str(), nullptr};
      if (each.shape) {
        for (const auto& dim : *each.shape) dims.push_back(dim.size);
        told.rank = static_cast<std::int32_t>(dims.size());
        told.dims = dims.data();
      }
      given.overridable(given.context, &told);
    }
  }

  Status Give(Result<rewire::Compilation> compiled, RewireCompileReport* report,
              RewireExecutable** out) const {
    TellUnsupported();
    if (!compiled) return rewire::Forward(compiled);
    TellPrecision(compiled->report);
    TellHostCalls(compiled->report);
    TellZeroedWeights(compiled->report);
    TellShards(compiled->report);
    TellOverridable(compiled->executable);
    if (given.cache_problem != nullptr && !compiled->report.cache_problem.empty())
      given.cache_problem(given.context, compiled->report.cache_problem.c_str());
    if (report != nullptr) {
      const rewire::CompileReport& made = compiled->report;
      RewireCompileReport filled{};
      filled.memory_is_bounded = made.memory.bounded() ? 1 : 0;
      filled.model_nodes = made.model_nodes;
      filled.nodes = made.nodes;
      filled.kernel_calls = made.kernel_calls;
      filled.kernels = made.kernels;
      filled.constants = made.constants;
      filled.constant_bytes = made.constant_bytes;
      filled.arena_bytes = made.arena_bytes;
      filled.separate_bytes = made.separate_bytes;
      filled.memory_bytes = made.memory.bounded() ? made.memory.bytes : 0;
      filled.time = made.time.count();
      filled.products = made.products.size();
      filled.quantized = made.quantized;
      filled.device_calls = made.device_calls;
      filled.device_arena_bytes = made.device_arena_bytes;
      filled.device_separate_bytes = made.device_separate_bytes;
      filled.parameters = made.parameters;
      filled.parameter_bytes = made.parameter_bytes;
      filled.from_cache = made.from_cache ? 1 : 0;
      if (Status ok = rewire::c_api::WriteStruct("RewireCompileReport", filled, report); !ok) return ok;
    }
    if (given.own_parameters != nullptr)
      rewire::c_api::Give(std::move(compiled->parameters), given.own_parameters);
    rewire::c_api::Give(std::move(compiled->executable), out);
    return {};
  }
};

}  // namespace

RewireStatus rewire_compile(const char* path, const RewireCompileOptions* options,
                            RewireCompileReport* report, RewireExecutable** out) {
  return Boundary(Given("path,out", path, out), [&]() -> Status {
    Call call;
    if (Status ok = call.Read(options); !ok) return ok;
    return call.Give(rewire::Compile(path, call.options, &call.unsupported), report, out);
  });
}

RewireStatus rewire_compile_memory(const void* data, size_t size, const char* folder, const char* name,
                                   const RewireCompileOptions* options, RewireCompileReport* report,
                                   RewireExecutable** out) {
  return Boundary(Given("data,out", data, out), [&]() -> Status {
    Call call;
    if (Status ok = call.Read(options); !ok) return ok;
    const rewire::Span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
    return call.Give(rewire::CompileBytes(bytes, folder == nullptr ? "" : folder,
                                          name == nullptr ? "model" : name, call.options, &call.unsupported),
                     report, out);
  });
}

const char* rewire_compiler_pass(uint32_t index) {
  static const std::vector<std::string> kPasses = rewire::CompilerPasses();
  return index < kPasses.size() ? kPasses[index].c_str() : nullptr;
}

RewireStatus rewire_executable_write(const RewireExecutable* executable, const char* path) {
  return Boundary(Given("executable,path", executable, path),
                  [&] { return rewire::WriteExecutable(executable->executable, path); });
}
