// SPDX-License-Identifier: Apache-2.0
//
// IoBinding: inputs and outputs that several runs use.
#include <cstring>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/runs/run.h"
#include "rewire/onnxruntime_api/sessions/session.h"
#include "rewire/onnxruntime_api/status.h"

namespace rewire::onnxruntime_api {

struct BoundInput {
  std::string name;
  OrtValue value;
};
struct BoundOutput {
  std::string name;
  bool allocated = false;            // each run allocates it anew, so its size may change
  std::shared_ptr<ValueBody> value;  // the host's, or that of the last run
};

}  // namespace rewire::onnxruntime_api

struct OrtIoBinding {
  std::shared_ptr<const rewire::onnxruntime_api::Model> model;
  std::vector<rewire::onnxruntime_api::BoundInput> inputs;
  mutable std::vector<rewire::onnxruntime_api::BoundOutput> outputs;  // a run fills in those it allocates
};

namespace rewire::onnxruntime_api {
namespace {

// The run says whether there is such an output.
OrtStatus* Bind(OrtIoBinding* binding, const char* name, std::shared_ptr<ValueBody> value) {
  BoundOutput bound{name, value == nullptr, std::move(value)};
  for (BoundOutput& output : binding->outputs) {
    if (output.name != name) continue;
    output = std::move(bound);
    return nullptr;
  }
  binding->outputs.push_back(std::move(bound));
  return nullptr;
}

}  // namespace

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) noexcept {
  return Guard([&]() -> OrtStatus* {
    *out = new OrtIoBinding{session->model, {}, {}};
    return nullptr;
  });
}
void ReleaseIoBinding(OrtIoBinding* binding) noexcept { delete binding; }

OrtStatus* BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return Guard([&]() -> OrtStatus* {
    if (binding->model->ports().input_by_name.count(name) == 0)
      return MakeStatus(ORT_FAIL, "Failed to find input name in the mapping: " + std::string(name));
    for (BoundInput& input : binding->inputs) {
      if (input.name != name) continue;
      input.value = *value;
      return nullptr;
    }
    binding->inputs.push_back({name, *value});
    return nullptr;
  });
}
OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return Guard([&] { return Bind(binding, name, value->body); });
}
OrtStatus* BindOutputToDevice(OrtIoBinding* binding, const char* name, const OrtMemoryInfo*) noexcept {
  return Guard([&] { return Bind(binding, name, nullptr); });
}
void ClearBoundInputs(OrtIoBinding* binding) noexcept { binding->inputs.clear(); }
void ClearBoundOutputs(OrtIoBinding* binding) noexcept { binding->outputs.clear(); }
// A run that has returned is finished.
OrtStatus* SynchronizeBoundInputs(OrtIoBinding*) noexcept { return nullptr; }
OrtStatus* SynchronizeBoundOutputs(OrtIoBinding*) noexcept { return nullptr; }

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* options,
                          const OrtIoBinding* binding) noexcept {
  return Guard([&]() -> OrtStatus* {
    std::vector<NamedInput> inputs;
    for (const BoundInput& input : binding->inputs) inputs.push_back({input.name.c_str(), &input.value});
    std::vector<NamedOutput> outputs;
    for (const BoundOutput& output : binding->outputs)
      outputs.push_back({output.name.c_str(), output.allocated ? nullptr : output.value});
    OrtStatus* const failed = RunModel(*session, options, inputs, &outputs);
    if (failed != nullptr) return failed;
    for (std::size_t i = 0; i < outputs.size(); ++i) binding->outputs[i].value = std::move(outputs[i].value);
    return nullptr;
  });
}

// The names lie one behind the other, without zeros between them.
OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** names,
                               std::size_t** lengths, std::size_t* count) noexcept {
  *names = nullptr;
  *lengths = nullptr;
  *count = 0;
  if (binding->outputs.empty()) return nullptr;
  std::size_t size = 0;
  for (const BoundOutput& output : binding->outputs) size += output.name.size();
  char* at = static_cast<char*>(allocator->Alloc(allocator, size));
  auto* const sizes =
      static_cast<std::size_t*>(allocator->Alloc(allocator, binding->outputs.size() * sizeof(std::size_t)));
  if (at == nullptr || sizes == nullptr) {
    if (at != nullptr) allocator->Free(allocator, at);
    if (sizes != nullptr) allocator->Free(allocator, sizes);
    return OutOfMemory();
  }
  *names = at;
  *lengths = sizes;
  for (const BoundOutput& output : binding->outputs) {
    std::memcpy(at, output.name.data(), output.name.size());
    at += output.name.size();
    sizes[(*count)++] = output.name.size();
  }
  return nullptr;
}
OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator, OrtValue*** values,
                                std::size_t* count) noexcept {
  return Guard([&]() -> OrtStatus* {
    *values = nullptr;
    *count = 0;
    if (binding->outputs.empty()) return nullptr;
    std::vector<std::unique_ptr<OrtValue>> made;
    for (const BoundOutput& output : binding->outputs) {
      if (output.value == nullptr)
        return MakeStatus(ORT_FAIL, "output '" + output.name + "' has no value before a run");
      made.push_back(std::make_unique<OrtValue>(OrtValue{output.value}));
    }
    auto** const list = static_cast<OrtValue**>(allocator->Alloc(allocator, made.size() * sizeof(OrtValue*)));
    if (list == nullptr) return OutOfMemory();
    for (std::size_t i = 0; i < made.size(); ++i) list[i] = made[i].release();
    *values = list;
    *count = made.size();
    return nullptr;
  });
}

}  // namespace rewire::onnxruntime_api
