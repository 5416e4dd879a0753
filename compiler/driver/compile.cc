// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/driver/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "rewire/base/near_names.h"
#include "rewire/compiler/cache/cache_key.h"
#include "rewire/compiler/driver/at_load.h"
#include "rewire/compiler/driver/initializers.h"
#include "rewire/compiler/driver/model_memory.h"
#include "rewire/compiler/driver/run_passes.h"
#include "rewire/compiler/emit/emit.h"
#include "rewire/compiler/emit/overridable.h"
#include "rewire/compiler/import/metadata.h"
#include "rewire/compiler/import/model_file.h"
#include "rewire/compiler/import/tensor_data.h"
#include "rewire/compiler/ir/kernel_traits.h"
#include "rewire/compiler/lower/own_operators.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/passes/quantize/bf16_products.h"
#include "rewire/compiler/passes/quantize/calibrate.h"
#include "rewire/compiler/passes/simplify/fold_constants.h"
#include "rewire/compiler/shard/shard.h"
#include "rewire/executable_format/metadata/model_metadata.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/vm/kernel/amx.h"

namespace rewire::compiler {
namespace {

constexpr const char kFoldConstants[] = "fold-constants";

std::size_t CountNodes(const Block& block) {
  std::size_t count = block.nodes.size();
  for (const Node* node : block.nodes) {
    for (const Block& inner : node->blocks) count += CountNodes(inner);
  }
  return count;
}

// Counts kernel calls by the side that they run on, in a model for a device.
void CountCalls(const Block& block, std::map<std::pair<std::string, std::string>, std::size_t>* on_host,
                std::size_t* on_device) {
  for (const Node* node : block.nodes) {
    for (const Block& inner : node->blocks) CountCalls(inner, on_host, on_device);
    if (node->kind != NodeKind::kKernel) continue;
    if (names::IsOnDevice(node->kernel)) {
      ++*on_device;
    } else {
      const char* why = node->why_on_host;
      ++(*on_host)[{node->kernel, why != nullptr ? why : "made beside a node of the host"}];
    }
  }
}

void ReportCalls(const Graph& graph, Compiled* compiled) {
  if (!graph.device) return;
  std::map<std::pair<std::string, std::string>, std::size_t> on_host;
  CountCalls(graph.main, &on_host, &compiled->device_calls);
  for (const auto& [what, calls] : on_host) compiled->host_calls.push_back({what.first, what.second, calls});
  std::stable_sort(compiled->host_calls.begin(), compiled->host_calls.end(),
                   [](const HostCalls& a, const HostCalls& b) { return a.calls > b.calls; });
}

void Begin(const CompileOptions& options, const std::string& what) {
  if (options.progress) options.progress(what);
}

// Folds what `__init` would do with kernels that give the same on every CPU. An executable for a cache also
// holds what a smaller file would leave to linking.
void FoldInit(ConstantFolder& folder, const CompileOptions& options, Graph* graph) {
  const std::size_t count = graph->init.nodes.size();
  std::size_t done = 0;
  std::erase_if(graph->init.nodes, [&](const Node* node) {
    Begin(options, fmt::format("packing weights {} of {}", ++done, count));
    const bool left = node->at_load && !IsForCache(options);
    if (left || node->returns || !folder.HasKernel(node->kernel)) return false;
    std::optional<std::vector<HostTensor>> results = folder.Fold(*node);
    if (!results) return false;
    for (std::size_t i = 0; i < node->outputs.size(); ++i) {
      node->outputs[i]->constant = std::move((*results)[i]);
      node->outputs[i]->producer = nullptr;
    }
    return true;
  });
}

// A copy, to a device, of what is a constant by now is a constant of the device: no run makes it.
void FoldCopies(Graph* graph) {
  std::erase_if(graph->main.nodes, [](const Node* node) {
    if (node->kind != NodeKind::kDeviceCopy || !node->inputs[0]->constant) return false;
    node->outputs[0]->constant = node->inputs[0]->constant;
    node->outputs[0]->producer = nullptr;
    return true;
  });
}

Status UnknownDim(const std::string& name, Span<const std::string> known) {
  return Fail(StatusCode::kInvalidArgument,
              fmt::format("no input has a dimension \"{}\"{}", name, KnownNames("dimensions", name, known)));
}

Status CheckDims(const std::map<std::string, std::int64_t>& dims, const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const auto& [name, size] : dims) {
    if (!known.contains(name)) return UnknownDim(name, {names.data(), names.size()});
  }
  return {};
}

Status SetLimits(const std::map<std::string, std::int64_t>& max_dims, Module* module) {
  for (const auto& [name, limit] : max_dims) {
    const auto found = std::find(module->symbols.begin(), module->symbols.end(), name);
    if (found == module->symbols.end())
      return UnknownDim(name, {module->symbols.data(), module->symbols.size()});
    module->symbol_limits.resize(module->symbols.size(), kNoLimit);
    module->symbol_limits[static_cast<std::size_t>(found - module->symbols.begin())] = limit;
  }
  return {};
}

Status CheckPrecision(const CompileOptions& options) {
  const bool calibrates = !options.calibration.data.empty();
  if (options.precision == Precision::kInt8 && !calibrates) {
    return Fail(
        StatusCode::kInvalidArgument,
        "precision int8 calibrates with samples of the model's inputs, because random ones would give wrong "
        "ranges; give some (--calibrate DATA.npz)");
  }
  if (options.precision == Precision::kModel && calibrates)
    return Fail(StatusCode::kInvalidArgument, "samples are for precision int8 or bf16 alone");
  if (options.strict && options.precision != Precision::kModel)
    return Fail(StatusCode::kInvalidArgument,
                "strict results need the model's own precision, not int8 or bf16");
  if (options.strict && !options.device.empty() && options.device != "cpu") {
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("strict results are for the CPU alone, and the device is \"{}\"", options.device));
  }
  if (options.precision != Precision::kModel && ParameterChoice(options).any()) {
    return Fail(StatusCode::kInvalidArgument,
                "parameters need the model's own precision, not int8 or bf16: those depend on the weights");
  }
  if (options.precision != Precision::kInt8 && !options.calibration.keep_float.empty())
    return Fail(StatusCode::kInvalidArgument, "nodes to keep float are for precision int8 alone");
  if (options.precision == Precision::kBf16 && !options.device.empty() && options.device != "cpu") {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("precision bf16 is for the CPU alone, and the device is \"{}\"", options.device));
  }
  return {};
}

// "opencl:0" or "cuda"; nothing for the CPU.
Result<std::optional<TargetDevice>> DeviceOf(const CompileOptions& options) {
  const std::string& text = options.device;
  if (text.empty() || text == "cpu") return std::optional<TargetDevice>();
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string kind = text.substr(0, colon);
  const std::string number = colon == text.size() ? "0" : text.substr(colon + 1);
  TargetDevice device;
  device.type = kind == "opencl" ? kDLOpenCL : kind == "cuda" ? kDLCUDA : 0;
  const bool whole = !number.empty() && number.size() < 5 &&
                     std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (device.type == 0) {
    static const std::vector<std::string> kNames = {"cpu", "opencl", "cuda"};
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("there is no device \"{}\" to compile for{}", kind,
                            KnownNames("devices", kind, {kNames.data(), kNames.size()})));
  }
  if (!whole) {
    return Fail(StatusCode::kInvalidArgument,
                fmt::format("device \"{}\": expected a number behind the colon, such as {}:1", text, kind));
  }
  device.id = std::stoi(number);
  device.least_work = options.least_device_work;
  return std::optional<TargetDevice>(device);
}

// Affine nodes move into the weights first, so that integers have the scales that the outputs have.
Result<CalibrationReport> QuantizeGraph(const CompileOptions& options, const KernelSet& kernels,
                                        const AfterPass& after, Graph* graph) {
  if (options.precision == Precision::kModel) return CalibrationReport();
  RemoveDeadCode(graph);
  const Building building = {[&](Graph* copy) { return PassRun(options, after).Run(copy, {}); }, kernels};
  const auto progress = [&](const std::string& what) { Begin(options, what); };
  graph->tiles = options.cpu == Cpu::kTiles || (options.cpu == Cpu::kNative && CpuHasAmx());
  if (options.precision == Precision::kBf16) return UseBf16(graph, options.calibration, building, progress);
  if (!options.disabled_passes.contains("fold-affine")) FoldAffine(graph);
  Result<CalibrationReport> report = QuantizeBySamples(graph, options.calibration, building, progress);
  if (report && options.dump) options.dump("quantized", GraphText(*graph));
  return report;
}

struct Lowered {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<Lowering> lowering;
  Status status;
};

Lowered LowerModel(const ModelFile& model, const LoweringOptions& lowering, const CompileOptions& options,
                   const std::shared_ptr<const KernelTraits>& kernels) {
  Lowered lowered;
  lowered.graph = std::make_unique<Graph>();
  lowered.graph->max_dims = options.max_dims;
  lowered.graph->kernels = kernels;
  lowered.lowering = std::make_unique<Lowering>(model, lowering, lowered.graph.get());
  lowered.status = lowered.lowering->Run();
  return lowered;
}

// The result of a round that has found initializers to keep. The next round makes another one.
Status AgainWithConstants() { return Fail(StatusCode::kInternal, "some initializers must be constants"); }

// One round: where `choice` has kept initializers afterwards, the result means nothing.
Result<Compiled> CompileRound(const ModelFile& model, const std::string& what, const CompileOptions& options,
                              std::vector<Unsupported>* unsupported, const AfterPass& after,
                              const GivenInitializers& given, ParameterChoice* choice) {
  for (const std::string& pass : options.disabled_passes) {
    const std::vector<std::string> names = PassNames();
    if (std::find(names.begin(), names.end(), pass) == names.end()) {
      return Fail(StatusCode::kInvalidArgument,
                  fmt::format("there is no pass '{}'{}", pass,
                              KnownNames("passes", pass, {names.data(), names.size()})));
    }
  }
  if (Status precise = CheckPrecision(options); !precise) return Forward(precise, what);
  if (Status ranked = CheckRanks(options); !ranked) return Forward(ranked, what);
  const Result<std::optional<TargetDevice>> device = DeviceOf(options);
  if (!device) return Forward(device);
  ConstantFolder folder(options.limits, WeightBytes(model.graph()), device->has_value());
  LoweringOptions lowering_options;
  lowering_options.dims = options.dims;
  lowering_options.work = options.limits.work;
  lowering_options.sparse_bytes = options.limits.fold_bytes;
  lowering_options.has_kernel = [&](const std::string& name) { return folder.HasKernel(name); };
  if (!options.disabled_passes.contains(kFoldConstants)) {
    lowering_options.fold = [&](const Node& node) { return folder.Fold(node); };
  }
  if (choice->any()) {
    lowering_options.is_parameter = [&](const std::string& name, const HostTensor& tensor) {
      return choice->Has(name, tensor);
    };
  }
  lowering_options.given = &given;
  lowering_options.overridden = &options.overridden;
  const Result<OwnOperators> own_operators = OwnOperators::Make(options.operators);
  if (!own_operators) return Forward(own_operators);
  lowering_options.own_operators = &*own_operators;
  Begin(options, "lowering nodes");
  const auto kernels = std::make_shared<const KernelTraits>(folder.kernels());
  lowering_options.check = [&](const Node& node) { return kernels->Check(node); };
  Lowered whole = LowerModel(model, lowering_options, options, kernels);
  if (choice->Keep(*whole.graph)) return AgainWithConstants();
  if (!whole.status) return Forward(whole.status, what);
  if (!whole.lowering->unsupported().empty() && whole.lowering->unknown_rank()) {
    // It may compile where what follows an unknown rank is there for each rank.
    lowering_options.for_each_rank = true;
    Lowered each = LowerModel(model, lowering_options, options, kernels);
    if (each.status && each.lowering->unsupported().empty()) whole = std::move(each);
  }
  Lowering& lowering = *whole.lowering;
  Graph& graph = *whole.graph;
  graph.device = *device;
  graph.strict = options.strict;
  if (choice->Keep(graph)) return AgainWithConstants();
  if (Status chosen = choice->Check(); !chosen) return Forward(chosen, what);
  if (Status named = CheckDims(options.dims, lowering.dim_names()); !named) return Forward(named, what);
  if (!lowering.unsupported().empty()) {
    *unsupported = lowering.unsupported();
    return Fail(
        StatusCode::kUnsupported,
        fmt::format("{}: {} of {} nodes{} are not supported", what, unsupported->size(),
                    lowering.node_count(), lowering.lists_tensors() ? ", inputs and initializers" : ""));
  }
  // Read before passes replace the outputs' values.
  const auto lists = lowering.strings().Metadata(graph.main.parameters, graph.main.results);
  if (!lists) return Forward(lists, what);
  if (options.dump) options.dump("lowered", GraphText(graph));
  PassRun run(options, after);
  if (after) after(kFoldConstants, &graph);
  if (Status sound = run.Check("lowering the model", graph); !sound) return Forward(sound, what);
  Result<CalibrationReport> calibrated = QuantizeGraph(options, folder.kernels(), after, &graph);
  if (!calibrated) return Forward(calibrated, what);
  if (Status sound = run.Check("quantizing the model", graph); !sound) return Forward(sound, what);
  ShardReport sharded = ShardGraph(options, &graph);
  if (Status sound = run.Check("splitting the model", graph); !sound) return Forward(sound, what);
  const auto each = [&](const char* pass, bool done) {
    if (!done) Begin(options, pass);
    if (done && options.dump) options.dump(pass, GraphText(graph));
  };
  const Status optimized = run.Run(&graph, each, &sharded);
  if (!optimized) return Forward(optimized, what);
  if (choice->Keep(graph)) return AgainWithConstants();
  if (graph.bf16) FindBf16Products(graph, &calibrated->products);
  if (!graph.parameters.empty()) {
    ComputeAtLinking(&graph);
    if (Status sound = run.Check("computing from parameters", graph); !sound) return Forward(sound, what);
  }
  if (lowering_options.fold) {
    FoldInit(folder, options, &graph);
    FoldCopies(&graph);
    if (Status sound = run.Check("packing the weights", graph); !sound) return Forward(sound, what);
  }
  Begin(options, "emitting");
  EmitStatistics statistics;
  Result<Module> module = EmitModule(graph, &statistics);
  if (!module) return Forward(module, what);
  if (Status limited = SetLimits(options.max_dims, &*module); !limited) return Forward(limited, what);
  module->metadata.emplace_back("producer", "vm-compile");
  module->metadata.emplace_back("source", what);
  if (options.strict) module->metadata.emplace_back("strict", "yes");
  if (const std::string rank = RankText(options); !rank.empty()) module->metadata.emplace_back("rank", rank);
  for (const auto& entry : *lists) module->metadata.emplace_back(entry);
  AddModelMetadata(MetadataOf(*model.proto()), &*module);
  std::vector<OverridableInitializer> overridable = OverridableOf(model);
  overridable.erase(std::remove_if(overridable.begin(), overridable.end(),
                                   [&](const auto& each) { return options.overridden.contains(each.name); }),
                    overridable.end());
  AddOverridable(overridable, &*module);
  AddValueNames("main", statistics.values, &*module);
  Compiled compiled;
  compiled.products = std::move(calibrated->products);
  compiled.movement = std::move(calibrated->movement);
  compiled.unmeasured = std::move(calibrated->unmeasured);
  compiled.shards = std::move(sharded);
  LeaveMessage(model, &*module);
  compiled.parameters = ParametersOf(graph, *module);
  compiled.module = *std::move(module);
  compiled.model_nodes = lowering.node_count();
  compiled.nodes = CountNodes(graph.main);
  compiled.kernel_calls = statistics.kernel_calls;
  compiled.constant_bytes = statistics.constant_bytes;
  compiled.arena_bytes = graph.arena.bytes;
  compiled.separate_bytes = graph.arena.separate_bytes;
  compiled.device_arena_bytes = graph.device_arena.bytes;
  compiled.device_separate_bytes = graph.device_arena.separate_bytes;
  for (ZeroedWeights& zeroed : graph.zeroed_weights)
    compiled.zeroed_weights.push_back({std::move(zeroed.constant), std::move(zeroed.node), zeroed.count});
  ReportCalls(graph, &compiled);
  return compiled;
}

Result<Compiled> CompileModel(const ModelFile& model, const std::string& what, const CompileOptions& options,
                              std::vector<Unsupported>* unsupported, const AfterPass& after) {
  if (Status known = CheckOverridden(options, model); !known) return Forward(known, what);
  const Result<GivenInitializers> given = ReadInitializers(options, model.graph());
  if (!given) return Forward(given, what);
  ParameterChoice choice(options);
  for (;;) {
    const std::size_t kept = choice.kept();
    Result<Compiled> compiled = CompileRound(model, what, options, unsupported, after, *given, &choice);
    if (choice.kept() == kept) {
      if (!compiled) return compiled;
      compiled->external_read = model.external_read();
      return compiled;
    }
    if (Status chosen = choice.Check(); !chosen) return Forward(chosen, what);
    unsupported->clear();
  }
}

}  // namespace

std::vector<std::string> StrictlySkippedPasses() {
  std::vector<std::string> names;
  for (const Pass& pass : Passes()) {
    if (!IsStrict(pass)) names.emplace_back(pass.name);
  }
  return names;
}

std::vector<std::string> PassNames() {
  std::vector<std::string> names = {kFoldConstants};
  for (const Pass& pass : Passes()) names.emplace_back(pass.name);
  return names;
}

Result<Compiled> CompileOnnx(const std::string& path, const CompileOptions& options,
                             std::vector<Unsupported>* unsupported, const AfterPass& after) {
  Begin(options, "reading");
  const Result<ModelFile> model = ModelFile::Read(path, options.external_folders, options.external_files);
  if (!model) return Forward(model);
  return CompileModel(*model, path, options, unsupported, after);
}

Result<Compiled> CompileOnnx(const SharedBytes& bytes, const std::string& folder, const std::string& what,
                             const CompileOptions& options, std::vector<Unsupported>* unsupported,
                             const AfterPass& after) {
  const Result<ModelFile> model =
      ModelFile::Parse(bytes, {folder, options.external_folders, "", nullptr, options.external_files}, what);
  if (!model) return Forward(model);
  return CompileModel(*model, what, options, unsupported, after);
}

}  // namespace rewire::compiler
