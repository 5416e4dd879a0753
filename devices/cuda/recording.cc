// SPDX-License-Identifier: Apache-2.0
//
// Recording by stream capture, replay as a graph.
#include "rewire/devices/cuda/state.h"

namespace rewire::cuda {
namespace {

int BeginRecording(void* context, DLDevice device, void* stream) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered found = state.Enter(device, &code);
  if (!found) return code;
  if (found->properties.records == 0) {
    return FailWith(REWIRE_DEVICE_UNSUPPORTED, "the driver has no graphs; one of CUDA 12 or later has them");
  }
  return CodeOf(state.driver, "cuStreamBeginCapture",
                state.driver.cuStreamBeginCapture(StreamOf(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

int EndRecording(void* context, DLDevice device, void* stream, void** recording) {
  State& state = State::Of(context);
  const Entered entered = state.EnterToRelease(device);
  if (!entered) return REWIRE_DEVICE_FAILED;
  CUgraph graph = nullptr;
  int code =
      CodeOf(state.driver, "cuStreamEndCapture", state.driver.cuStreamEndCapture(StreamOf(stream), &graph));
  if (code != REWIRE_DEVICE_OK) return code;
  CUgraphExec exec = nullptr;
  code = CodeOf(state.driver, "cuGraphInstantiate", state.driver.cuGraphInstantiate(&exec, graph, 0));
  state.driver.cuGraphDestroy(graph);
  *recording = exec;
  return code;
}

int Replay(void* context, DLDevice device, void* recording, void* stream) {
  State& state = State::Of(context);
  int code = REWIRE_DEVICE_OK;
  const Entered entered = state.Enter(device, &code);
  if (!entered) return code;
  return CodeOf(state.driver, "cuGraphLaunch",
                state.driver.cuGraphLaunch(static_cast<CUgraphExec>(recording), StreamOf(stream)));
}

int DestroyRecording(void* context, DLDevice device, void* recording) {
  State& state = State::Of(context);
  const Entered entered = state.EnterToRelease(device);
  if (!entered) return REWIRE_DEVICE_FAILED;
  return CodeOf(state.driver, "cuGraphExecDestroy",
                state.driver.cuGraphExecDestroy(static_cast<CUgraphExec>(recording)));
}

}  // namespace

void AddRecording(RewireDeviceApi* api) {
  api->begin_recording = BeginRecording;
  api->end_recording = EndRecording;
  api->replay = Replay;
  api->destroy_recording = DestroyRecording;
}

}  // namespace rewire::cuda
