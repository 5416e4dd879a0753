// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA driver: capture of streams, graphs.
#include <algorithm>
#include <memory>

#include "rewire/tests/simulated_cuda/simulator.h"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace rewire::simulated_cuda {
namespace {

// Whether each node that a joined stream ended with comes before what the first stream ended with.
bool AllJoined(const Simulator& simulator, const Capture& capture, const Stream& origin) {
  const Graph& graph = *capture.graph;
  std::vector<char> before(graph.nodes.size(), 0);
  std::vector<std::size_t> open = origin.capture_last;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (before[node] != 0) continue;
    before[node] = 1;
    open.insert(open.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  for (const auto& [handle, stream] : simulator.streams) {
    if (stream->capture.get() != &capture) continue;
    for (const std::size_t node : stream->capture_last)
      if (before[node] == 0) return false;
  }
  return true;
}

// Memory that the capture allocated goes with the last graph or executable that has it.
template <typename Table, typename Handle>
CUresult ReleaseGraph(Call& call, Table* table, Handle handle) {
  const auto found = table->find(handle);
  if (found == table->end()) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Graph> graph = std::move(found->second);
  table->erase(found);
  const auto has = [&graph](const auto& row) {
    return row.second == graph || row.second->allocations == graph->allocations;
  };
  const Simulator& simulator = call.simulator();
  const bool used = std::any_of(simulator.graphs.begin(), simulator.graphs.end(), has) ||
                    std::any_of(simulator.graph_execs.begin(), simulator.graph_execs.end(), has);
  if (!used && !graph->allocations.empty()) {
    Device* device = simulator.devices[static_cast<std::size_t>(graph->device)].get();
    call.simulator().WaitForDevice(call.lock(), device);
    for (const std::uint64_t address : graph->allocations) {
      const auto block = device->memory.blocks().find(address);
      if (block != device->memory.blocks().end()) device->memory.Free(block, {});
    }
  }
  return call.Returns(CUDA_SUCCESS);
}

}  // namespace

REWIRE_SIMULATED_EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  Call call("cuStreamBeginCapture");
  if (call.Fails()) return call.result();
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream == &stream->device->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->origin = handle;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph->device = stream->device->index;
  call.simulator().captures.insert(capture.get());
  stream->capture = std::move(capture);
  stream->capture_last.clear();
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  Call call("cuStreamEndCapture", Call::kRelease);
  Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != handle) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  Simulator& simulator = call.simulator();
  const bool joined = AllJoined(simulator, *capture, *stream);
  const auto leave = [&capture](Stream* other) {
    if (other->capture != capture) return;
    other->capture.reset();
    other->capture_last.clear();
  };
  leave(stream);
  for (auto& [other_handle, other] : simulator.streams) leave(other.get());
  simulator.captures.erase(capture.get());
  *graph = nullptr;
  CUresult result = call.result();
  if (result == CUDA_SUCCESS && capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result == CUDA_SUCCESS && !joined) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (result == CUDA_SUCCESS) {
    *graph = reinterpret_cast<CUgraph>(capture->graph.get());
    simulator.graphs[*graph] = capture->graph;
  } else {
    DeviceMemory& memory = simulator.devices[static_cast<std::size_t>(capture->graph->device)]->memory;
    for (const std::uint64_t address : capture->graph->allocations)
      memory.Free(memory.blocks().find(address), {});
  }
  return result;
}

REWIRE_SIMULATED_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  Call call("cuStreamIsCapturing");
  if (call.Fails()) return call.result();
  const Stream* stream = call.FindStream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph handle,
                                                             unsigned long long) {
  Call call("cuGraphInstantiate");
  if (call.Fails()) return call.result();
  const auto found = call.simulator().graphs.find(handle);
  if (found == call.simulator().graphs.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto copy = std::make_shared<Graph>(*found->second);
  // No address: an update gives the executable another graph.
  *exec = reinterpret_cast<CUgraphExec>(++call.simulator().executables_made * 16);
  call.simulator().graph_execs[*exec] = std::move(copy);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  Call call("cuGraphLaunch");
  if (call.Fails()) return call.result();
  const auto found = call.simulator().graph_execs.find(exec);
  Stream* stream = call.FindStream(handle);
  if (found == call.simulator().graph_execs.end() || stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return call.simulator().LaunchGraph(stream, found->second);
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                                      CUgraphExecUpdateResultInfo* info) {
  Call call("cuGraphExecUpdate");
  if (call.Fails()) return call.result();
  Simulator& simulator = call.simulator();
  const auto old = simulator.graph_execs.find(exec);
  const auto next = simulator.graphs.find(graph);
  if (old == simulator.graph_execs.end() || next == simulator.graphs.end()) return CUDA_ERROR_INVALID_HANDLE;
  const Graph& from = *next->second;
  const Graph& to = *old->second;
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  if (from.nodes.size() != to.nodes.size()) info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (std::size_t i = 0; i < from.nodes.size() && info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS; ++i) {
    if (from.nodes[i].after != to.nodes[i].after)
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    else if (from.nodes[i].work.kind != to.nodes[i].work.kind)
      info->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  }
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  // Runs of the old form that are queued have a hold of it.
  old->second = std::make_shared<Graph>(from);
  return CUDA_SUCCESS;
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Call call("cuGraphExecDestroy", Call::kRelease);
  return ReleaseGraph(call, &call.simulator().graph_execs, exec);
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  Call call("cuGraphDestroy", Call::kRelease);
  return ReleaseGraph(call, &call.simulator().graphs, graph);
}

REWIRE_SIMULATED_EXPORT CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  Call call("cuGraphGetNodes", Call::kWithoutContext);
  if (call.Fails()) return call.result();
  const auto found = call.simulator().graphs.find(handle);
  if (found == call.simulator().graphs.end()) return CUDA_ERROR_INVALID_HANDLE;
  Graph& graph = *found->second;
  if (nodes == nullptr) {
    *count = graph.nodes.size();
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i)
    nodes[i] = i < graph.nodes.size() ? reinterpret_cast<CUgraphNode>(&graph.nodes[i]) : nullptr;
  *count = std::min(*count, graph.nodes.size());
  return CUDA_SUCCESS;
}

}  // namespace rewire::simulated_cuda

// NOLINTEND(readability-identifier-naming)
