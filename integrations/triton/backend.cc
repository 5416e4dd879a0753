// SPDX-License-Identifier: Apache-2.0
//
// The functions that Triton looks up in libtriton_rewire.so.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/base/status.h"
#include "rewire/integrations/triton/backend_api.h"
#include "rewire/integrations/triton/status.h"
#include "rewire/integrations/triton/triton_instance.h"
#include "rewire/integrations/triton/triton_model.h"
#include "rewire/vm/kernel_set.h"

#define REWIRE_TRITON_EXPORT extern "C" __attribute__((visibility("default")))

namespace rewire::triton {
namespace {

constexpr std::uint32_t kMajor = 1, kMinor = 15;

Status CheckApi() {
  std::uint32_t major = 0, minor = 0;
  if (Status got = Taken(TRITONBACKEND_ApiVersion(&major, &minor)); !got) return got;
  if (major == kMajor && minor >= kMinor) return {};
  return Fail(StatusCode::kUnsupported,
              "the backend speaks version {}.{} of Triton's interface for backends, and the server {}.{}: "
              "Triton 2.51 or later is expected",
              kMajor, kMinor, major, minor);
}

Result<BackendSettings> SettingsOf(TRITONBACKEND_Backend* backend) {
  TRITONSERVER_Message* message = nullptr;  // the server's
  const char* text = nullptr;
  std::size_t size = 0;
  if (Status got = Taken(TRITONBACKEND_BackendConfig(backend, &message)); !got) return Forward(got);
  if (Status got = Taken(TRITONSERVER_MessageSerializeToJson(message, &text, &size)); !got)
    return Forward(got);
  return ReadBackendSettings({text, size});
}

Status Start(TRITONBACKEND_Backend* handle) {
  if (Status good = CheckApi(); !good) return good;
  Result<BackendSettings> settings = SettingsOf(handle);
  if (!settings) return Forward(settings);
  for (const std::string& key : settings->unknown)
    LogWarning("--backend-config=rewire," + key + ": the backend has no such setting; it has kernels");
  auto backend = std::make_unique<TritonBackend>();
  backend->settings = *std::move(settings);
  KernelSet kernels;
  for (const std::string& path : backend->settings.kernels) {
    if (Status added = kernels.AddLibrary(path); !added)
      return Forward(added, "--backend-config=rewire,kernels");
  }
  backend->loader = std::make_unique<serve::ModelLoader>(TritonLog(), std::move(kernels));
  Status set = Taken(TRITONBACKEND_BackendSetState(handle, backend.get()));
  if (set) backend.release();  // NOLINT(bugprone-unused-return-value): the state is deleted by Finalize
  return set;
}

Status StartModel(TRITONBACKEND_Model* handle) {
  TRITONBACKEND_Backend* backend = nullptr;
  void* state = nullptr;
  if (Status got = Taken(TRITONBACKEND_ModelBackend(handle, &backend)); !got) return got;
  if (Status got = Taken(TRITONBACKEND_BackendState(backend, &state)); !got) return got;
  Result<std::unique_ptr<TritonModel>> model = TritonModel::Load(static_cast<TritonBackend*>(state), handle);
  if (!model) return Forward(model);
  Status set = Taken(TRITONBACKEND_ModelSetState(handle, model->get()));
  if (set) model->release();  // NOLINT(bugprone-unused-return-value): as above
  return set;
}

Status StartInstance(TRITONBACKEND_ModelInstance* handle) {
  int kind = 0;
  const char* name = nullptr;
  TRITONBACKEND_Model* model = nullptr;
  void* state = nullptr;
  if (Status got = Taken(TRITONBACKEND_ModelInstanceKind(handle, &kind)); !got) return got;
  if (Status got = Taken(TRITONBACKEND_ModelInstanceName(handle, &name)); !got) return got;
  if (kind != kTritonKindCpu) {
    return Fail(
        StatusCode::kUnsupported,
        "instance '{}' is not of KIND_CPU, which is what the backend runs on: say so in instance_group",
        name);
  }
  if (Status got = Taken(TRITONBACKEND_ModelInstanceModel(handle, &model)); !got) return got;
  if (Status got = Taken(TRITONBACKEND_ModelState(model, &state)); !got) return got;
  auto instance = std::make_unique<TritonInstance>(static_cast<TritonModel*>(state), handle);
  Status set = Taken(TRITONBACKEND_ModelInstanceSetState(handle, instance.get()));
  if (set) instance.release();  // NOLINT(bugprone-unused-return-value): as above
  return set;
}

// Deletes the state that `get` gives for a handle.
template <typename State, typename Handle>
TRITONSERVER_Error* Delete(Handle* handle, TRITONSERVER_Error* (*get)(Handle*, void**)) {
  void* state = nullptr;
  TRITONSERVER_Error* const error = get(handle, &state);
  if (error == nullptr) delete static_cast<State*>(state);
  return error;
}

}  // namespace
}  // namespace rewire::triton

using namespace rewire::triton;  // NOLINT(google-build-using-namespace): for the functions of the C interface

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  return ErrorOf(Start(backend));
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  return Delete<TritonBackend>(backend, &TRITONBACKEND_BackendState);
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(
    TRITONBACKEND_Backend* /*backend*/, TRITONBACKEND_BackendAttribute* attribute) {
  // Models that say nothing of it would get instances on GPUs where there are some.
  TRITONSERVER_Error* const error =
      TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attribute, kTritonKindCpu, 0, nullptr, 0);
  return error != nullptr ? error
                          : TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attribute, true);
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return ErrorOf(StartModel(model));
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) {
  return Delete<TritonModel>(model, &TRITONBACKEND_ModelState);
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(
    TRITONBACKEND_ModelInstance* instance) {
  return ErrorOf(StartInstance(instance));
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(
    TRITONBACKEND_ModelInstance* instance) {
  return Delete<TritonInstance>(instance, &TRITONBACKEND_ModelInstanceState);
}

REWIRE_TRITON_EXPORT TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, const std::uint32_t count) {
  void* state = nullptr;
  if (TRITONSERVER_Error* const error = TRITONBACKEND_ModelInstanceState(instance, &state); error != nullptr)
    return error;
  static_cast<TritonInstance*>(state)->Execute({requests, count});
  return nullptr;
}
