// SPDX-License-Identifier: Apache-2.0
#include "rewire/compiler/driver/run_passes.h"

#include <fmt/format.h>

#include "rewire/compiler/cache/cache_key.h"
#include "rewire/compiler/passes/passes.h"
#include "rewire/compiler/shard/stages.h"

namespace rewire::compiler {
namespace {

#if !defined(NDEBUG) || defined(REWIRE_ASSERTIONS)
constexpr bool kAssertions = true;
#else
constexpr bool kAssertions = false;
#endif

}  // namespace

bool PassRun::checks() const { return options_.check_passes.value_or(kAssertions); }

Status PassRun::Check(const std::string& stage, const Graph& graph) {
  if (!checks()) return {};
  if (options_.progress) options_.progress("checking after " + stage);
  const Status sound = check_.Check(graph);
  if (sound) return {};
  return Fail(StatusCode::kInternal,
              fmt::format("{} broke the program: {}. This is a fault of the compiler: please report it",
                          stage, sound.error().message()));
}

Status PassRun::Run(Graph* graph, const std::function<void(const char* pass, bool done)>& each,
                    ShardReport* report) {
  for (const Pass& pass : Passes()) {
    // Passes from here on place nodes and memory, and choose no kernels.
    if (pass.run == Place && options_.stages > 1) {
      if (Status cut = CutStage(graph, options_.stages, options_.rank, report); !cut) return cut;
      if (options_.dump) options_.dump("stage", GraphText(*graph));
      if (Status sound = Check("cutting a stage", *graph); !sound) return sound;
    }
    if (options_.disabled_passes.contains(pass.name) || (pass.for_host && graph->device)) continue;
    if (options_.strict && !IsStrict(pass)) continue;
    if (pass.run == ComputeAtLoad && IsForCache(options_)) continue;
    if (pass.run == MakeBranches && options_.parallel == Parallel::kOff) continue;
    // Elementwise kernels read and write one dtype. What this pass mixes, fuse-elementwise puts together.
    if (pass.run == RoundEarly && options_.disabled_passes.contains("fuse-elementwise")) continue;
    if (each) each(pass.name, false);
    pass.run(graph);
    if (after_) after_(pass.name, graph);
    if (each) each(pass.name, true);
    if (Status sound = Check(fmt::format("the pass '{}'", pass.name), *graph); !sound)
      return Forward(sound, fmt::format("--disable-pass {} leaves the pass out", pass.name));
  }
  return {};
}

}  // namespace rewire::compiler
