// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/compiler.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "rewire/base/files/file_identity.h"
#include "rewire/compiler/cache/cache_key.h"
#include "rewire/compiler/cache/model_cache.h"
#include "rewire/compiler/driver/compile.h"
#include "rewire/compiler/emit/overridable.h"
#include "rewire/compiler/ir/stock_kernels.h"
#include "rewire/executable_format/writer.h"
#include "rewire/vm/kernel_set.h"

namespace rewire {
namespace {

using Clock = std::chrono::steady_clock;

void Begin(const CompileOptions& options, const char* what) {
  if (options.progress) options.progress(what);
}

// Outputs lie in the caller's memory.
MemoryBound BoundOf(const Executable& executable) {
  // A missing library is no error: its kernels are then not bounded.
  KernelSet kernels = compiler::StockKernels({.not_portable = true});
  MemoryBoundOptions options;
  options.outputs_bound = true;
  Result<MemoryBound> bound = BoundMemory(executable, &kernels, {}, options);
  if (bound) return *std::move(bound);
  MemoryBound none;
  none.unbounded = bound.error().message();
  return none;
}

// Passes that are checked name what breaks a program. What they do not see is emission's.
Status Unverified(const Error& error, const CompileOptions& options) {
  const char* what = options.check_passes.value_or(false)
                         ? "emission made a program that does not verify, though all passes left it sound"
                         : "the compiler made a program that does not verify; CompileOptions::check_passes "
                           "(--check-passes) names the pass that broke it";
  return Fail(StatusCode::kInternal, std::string(what) + ": " + error.message());
}

std::vector<std::string> OverridableNames(const Module& module) {
  std::vector<std::string> names;
  for (OverridableInitializer& each : compiler::ReadOverridable(module))
    names.push_back(std::move(each.name));
  return names;
}

Result<Compilation> Finish(Result<compiler::Compiled> compiled, const CompileOptions& options,
                           Clock::time_point start) {
  if (!compiled) return Forward(compiled);
  CompileReport report;
  report.model_nodes = compiled->model_nodes;
  report.nodes = compiled->nodes;
  report.kernel_calls = compiled->kernel_calls;
  report.kernels = compiled->module.kernels.size();
  report.constants = compiled->module.constants.size() - compiled->parameters.size();
  report.constant_bytes = compiled->constant_bytes;
  report.parameters = compiled->parameters.size();
  report.parameter_bytes = compiled->parameters.stored_bytes();
  report.arena_bytes = compiled->arena_bytes;
  report.separate_bytes = compiled->separate_bytes;
  report.device_arena_bytes = compiled->device_arena_bytes;
  report.device_separate_bytes = compiled->device_separate_bytes;
  report.quantized =
      static_cast<std::size_t>(std::count_if(compiled->products.begin(), compiled->products.end(),
                                             [](const ProductPrecision& node) { return node.quantized; }));
  report.products = std::move(compiled->products);
  report.movement = std::move(compiled->movement);
  report.unmeasured = std::move(compiled->unmeasured);
  report.device_calls = compiled->device_calls;
  report.host_calls = std::move(compiled->host_calls);
  report.zeroed_weights = std::move(compiled->zeroed_weights);
  report.shards = std::move(compiled->shards);
  report.overridable = OverridableNames(compiled->module);
  Begin(options, "verifying");
  compiled->module.compressed = options.compress;
  Result<Executable> verified = Executable::FromModule(std::move(compiled->module));
  if (!verified) return Unverified(verified.error(), options);
  if (options.bound_memory) {
    Begin(options, "bounding memory");
    report.memory = BoundOf(*verified);
  }
  report.time = Clock::now() - start;
  return Compilation{*std::move(verified), std::move(report), std::move(compiled->parameters)};
}

void Tell(std::vector<compiler::Unsupported> nodes, std::vector<UnsupportedNode>* unsupported) {
  if (unsupported == nullptr) return;
  unsupported->clear();
  for (compiler::Unsupported& node : nodes) {
    unsupported->push_back({std::move(node.node), std::move(node.op_type), std::move(node.domain), node.opset,
                            std::move(node.reason)});
  }
}

// A model, for a cache.
struct CacheSource {
  std::function<Result<std::string>(const compiler::ContentHash&)> content;
  compiler::ExternalData external;
};

Compilation FromCache(Executable executable, const CompileOptions& options, Clock::time_point start) {
  CompileReport report;
  report.from_cache = true;
  const Module& module = executable.module();
  report.overridable = OverridableNames(module);
  report.kernels = module.kernels.size();
  report.constants = module.constants.size();
  for (const Constant& constant : module.constants) report.constant_bytes += constant.raw_bytes;
  if (options.bound_memory) report.memory = BoundOf(executable);
  report.time = Clock::now() - start;
  return {std::move(executable), std::move(report), {}};
}

Result<Compilation> CompileCached(const CacheSource& source, const CompileOptions& options,
                                  Clock::time_point start,
                                  const std::function<Result<compiler::Compiled>()>& compile) {
  compiler::ModelCache cache(options.cache);
  if (!cache.is_open()) {
    Result<Compilation> made = Finish(compile(), options, start);
    if (made) made->report.cache_problem = cache.problem();
    return made;
  }
  const Result<std::string> content = source.content(cache.hash());
  if (!content) return Forward(content);
  const std::string key = compiler::CacheKey(cache.hash(), *content, options);
  if (std::optional<Executable> found = cache.Find(key, source.external))
    return FromCache(*std::move(found), options, start);
  const std::int64_t began = WallTime();
  Result<compiler::Compiled> compiled = compile();
  if (!compiled) return Forward(compiled);
  const std::set<std::string> read = std::move(compiled->external_read);
  Result<Compilation> made = Finish(std::move(compiled), options, start);
  if (!made) return made;
  if (const Result<std::string> again = source.content(cache.hash()); !again || *again != *content) {
    made->report.cache_problem = "the executable is not kept: the model has changed since it was read";
    return made;
  }
  std::optional<Executable> kept = cache.Keep(key, {read, began}, source.external, made->executable.module());
  if (kept) made->executable = *std::move(kept);  // whose constants are mapped
  made->report.cache_problem = cache.problem();
  made->report.time = Clock::now() - start;
  return made;
}

}  // namespace

Result<Compilation> Compile(const std::string& path, const CompileOptions& options,
                            std::vector<UnsupportedNode>* unsupported) {
  const Clock::time_point start = Clock::now();
  std::vector<compiler::Unsupported> nodes;
  const auto compile = [&] {
    Result<compiler::Compiled> compiled = compiler::CompileOnnx(path, options, &nodes);
    Tell(std::move(nodes), unsupported);
    return compiled;
  };
  if (!compiler::IsForCache(options)) return Finish(compile(), options, start);
  Tell({}, unsupported);
  return CompileCached({[&](const compiler::ContentHash& hash) { return hash.TextOfFile(path); },
                        compiler::ExternalDataBeside(path, options.external_folders)},
                       options, start, compile);
}

Result<Compilation> CompileBytes(Span<const std::byte> model, const std::string& folder,
                                 const std::string& name, const CompileOptions& options,
                                 std::vector<UnsupportedNode>* unsupported) {
  const Clock::time_point start = Clock::now();
  Begin(options, "reading");
  std::vector<compiler::Unsupported> nodes;
  const auto compile = [&] {
    Result<compiler::Compiled> compiled =
        compiler::CompileOnnx(SharedBytes{model, nullptr}, folder, name, options, &nodes);
    Tell(std::move(nodes), unsupported);
    return compiled;
  };
  if (!compiler::IsForCache(options)) return Finish(compile(), options, start);
  Tell({}, unsupported);
  // The caller leaves the bytes as they are until the end.
  const auto content = [&, text = std::string()](const compiler::ContentHash& hash) mutable {
    if (text.empty()) text = hash.TextOf(model);
    return Result<std::string>(text);
  };
  return CompileCached({content, {folder, options.external_folders, ""}}, options, start, compile);
}

std::vector<std::string> StrictlySkippedPasses() { return compiler::StrictlySkippedPasses(); }

std::vector<std::string> CompilerPasses() { return compiler::PassNames(); }

Result<std::vector<std::byte>> SerializeExecutable(const Executable& executable) {
  return SerializeModule(executable.module());
}

Status WriteExecutable(const Executable& executable, const std::string& path) {
  return WriteModule(executable.module(), path);
}

}  // namespace rewire
