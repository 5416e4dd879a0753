// SPDX-License-Identifier: Apache-2.0
// Capture of streams into graphs by the simulated CUDA driver, and their runs.
#include <catch2/catch.hpp>
#include <vector>

#include "rewire/tests/simulated_cuda/driver.h"

namespace rewire::simulated_cuda::test {
namespace {

struct Streams {
  explicit Streams(Session& session) : first(session.NewStream()), second(session.NewStream()) {
    Driver().cuEventCreate(&fork, kEventDisableTiming);
    Driver().cuEventCreate(&join, kEventDisableTiming);
  }
  ~Streams() {
    Driver().cuEventDestroy(fork);
    Driver().cuEventDestroy(join);
  }
  CUstream first, second;
  CUevent fork = nullptr, join = nullptr;
};

TEST_CASE("a captured graph of two branches runs each time it is launched") {
  Session session;
  Streams streams(session);
  CUdeviceptr a = session.Upload(std::vector<int>(100)), b = session.Upload(std::vector<int>(100));
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  int count = 100;
  const CudaDriver& driver = Driver();
  session.Kernel("increment");
  CHECK(driver.cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK(driver.cuStreamIsCapturing(streams.first, &status) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(session.Launch("increment", 1, 100, {&a, &count}, streams.first) == CUDA_SUCCESS);
  CHECK(driver.cuEventRecord(streams.fork, streams.first) == CUDA_SUCCESS);
  CHECK(driver.cuStreamWaitEvent(streams.second, streams.fork, 0) == CUDA_SUCCESS);
  CHECK(driver.cuMemcpyDtoDAsync(b, a, 400, streams.second) == CUDA_SUCCESS);
  CHECK(session.Launch("increment", 1, 100, {&b, &count}, streams.second) == CUDA_SUCCESS);
  CHECK(driver.cuEventRecord(streams.join, streams.second) == CUDA_SUCCESS);
  CHECK(driver.cuStreamWaitEvent(streams.first, streams.join, 0) == CUDA_SUCCESS);
  CHECK(session.Launch("increment", 1, 100, {&b, &count}, streams.first) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_SUCCESS);
  std::size_t nodes = 0;
  CHECK(driver.cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS);
  CHECK(nodes == 4);
  CHECK(session.Count().launches == 0);  // nothing has run
  CUgraphExec exec = nullptr;
  CHECK(driver.cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(driver.cuGraphDestroy(graph) == CUDA_SUCCESS);
  for (int run = 1; run <= 3; ++run) {
    CHECK(driver.cuGraphLaunch(exec, streams.first) == CUDA_SUCCESS);
    CHECK(session.Download<int>(a, 100, streams.first) == std::vector<int>(100, run));
    CHECK(session.Download<int>(b, 100, streams.first) == std::vector<int>(100, run + 2));
  }
  CHECK(session.Count().graph_launches == 3);
  CHECK(session.Count().launches == 9);
  CHECK(driver.cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(driver.cuGraphLaunch(exec, streams.first) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an executable graph is updated to other arguments, not to another form") {
  Session session;
  Streams streams(session);
  CUdeviceptr a = session.Upload(std::vector<int>(10)), b = session.Upload(std::vector<int>(10));
  CHECK(Driver().cuCtxSynchronize() == CUDA_SUCCESS);
  session.Kernel("increment");
  const auto capture = [&](CUdeviceptr to, int launches) {
    int count = 10;
    CUgraph graph = nullptr;
    CHECK(Driver().cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    for (int i = 0; i < launches; ++i)
      CHECK(session.Launch("increment", 1, 10, {&to, &count}, streams.first) == CUDA_SUCCESS);
    CHECK(Driver().cuStreamEndCapture(streams.first, &graph) == CUDA_SUCCESS);
    return graph;
  };
  CUgraph to_a = capture(a, 1), to_b = capture(b, 1), longer = capture(b, 2);
  CUgraphExec exec = nullptr;
  CUgraphExecUpdateResultInfo info = {};
  CHECK(Driver().cuGraphInstantiate(&exec, to_a, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphLaunch(exec, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphExecUpdate(exec, to_b, &info) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphLaunch(exec, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphExecUpdate(exec, longer, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(session.Download<int>(a, 10, streams.first) == std::vector<int>(10, 1));
  CHECK(session.Download<int>(b, 10, streams.first) == std::vector<int>(10, 1));
  for (CUgraph graph : {to_a, to_b, longer}) CHECK(Driver().cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphExecDestroy(exec) == CUDA_SUCCESS);
}

TEST_CASE("memory that a capture allocates lives as long as its graphs") {
  Session session;
  Streams streams(session);
  CUdeviceptr memory = 0;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CHECK(Driver().cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(Driver().cuMemAllocAsync(&memory, 64, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemsetD32Async(memory, 9, 16, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuMemFreeAsync(memory, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamEndCapture(streams.first, &graph) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(Driver().cuGraphLaunch(exec, streams.first) == CUDA_SUCCESS);
  CHECK(Driver().cuStreamSynchronize(streams.first) == CUDA_SUCCESS);
  CHECK(session.Count().device_allocations == 1);
  CHECK(Driver().cuGraphExecDestroy(exec) == CUDA_SUCCESS);
  CHECK(session.Count().device_allocations == 0);
}

TEST_CASE("what a capture does not allow ends it") {
  Session session;
  Streams streams(session);
  const CudaDriver& driver = Driver();
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  CHECK(driver.cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  const auto begin = [&](CUstreamCaptureMode mode) {
    CHECK(driver.cuStreamBeginCapture(streams.first, mode) == CUDA_SUCCESS);
  };
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(driver.cuMemAlloc(&memory, 8) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(driver.cuMemAlloc(&memory, 8) == CUDA_SUCCESS);
  CHECK(driver.cuStreamSynchronize(streams.first) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(driver.cuMemsetD8Async(memory, 0, 8, streams.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);  // a stream that does not come back
  CHECK(driver.cuEventRecord(streams.fork, streams.first) == CUDA_SUCCESS);
  CHECK(driver.cuEventQuery(streams.fork) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(driver.cuStreamWaitEvent(streams.second, streams.fork, 0) == CUDA_SUCCESS);
  CHECK(driver.cuMemsetD8Async(memory, 0, 8, streams.second) == CUDA_SUCCESS);
  CHECK(driver.cuStreamEndCapture(streams.second, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(driver.cuEventRecord(streams.join, streams.second) == CUDA_SUCCESS);
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);  // work outside of the capture
  CHECK(driver.cuStreamWaitEvent(streams.first, streams.join, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  CHECK(driver.cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(driver.cuMemFree(memory) == CUDA_SUCCESS);
}

}  // namespace
}  // namespace rewire::simulated_cuda::test
