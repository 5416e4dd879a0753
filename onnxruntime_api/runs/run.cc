// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/runs/run.h"

#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "rewire/onnxruntime_api/functions.h"
#include "rewire/onnxruntime_api/runs/invoke.h"
#include "rewire/onnxruntime_api/runs/run_inputs.h"
#include "rewire/onnxruntime_api/runs/run_options.h"
#include "rewire/onnxruntime_api/runs/run_outputs.h"
#include "rewire/onnxruntime_api/sessions/session.h"
#include "rewire/onnxruntime_api/status.h"
#include "rewire/onnxruntime_api/values/tensor_types.h"

namespace rewire::onnxruntime_api {
namespace {

OrtStatus* Terminated() { return MakeStatus(ORT_FAIL, "Exiting due to terminate flag being set to true."); }

// A VM for one run. It refers to no memory of the run afterwards.
class LentVm {
 public:
  explicit LentVm(const Model& model) : model_(model), vm_(model.TakeVm()) {}
  ~LentVm() {
    // A VM that does not let go of its result is not used again.
    if (vm_->TryDropResult()) Quietly([&] { model_.GiveBack(std::move(vm_)); });
  }
  LentVm(const LentVm&) = delete;
  LentVm& operator=(const LentVm&) = delete;
  VirtualMachine& operator*() { return *vm_; }

 private:
  const Model& model_;
  std::unique_ptr<VirtualMachine> vm_;
};

// Writes down what a run takes, for the session's profile and the run's own.
class ProfiledRun final : public Observer {
 public:
  ProfiledRun(const OrtSession& session, const OrtRunOptions* options, VirtualMachine* vm)
      : session_(session.profile.get()), vm_(vm) {
    if (options != nullptr && !options->profile_prefix.empty()) own_.emplace(options->profile_prefix);
    if (is_wanted()) (void)vm_->TrySetObserver(this);
  }
  ~ProfiledRun() override {
    if (!is_wanted()) return;
    (void)vm_->TrySetObserver(nullptr);
    Quietly([&] {
      const std::int64_t end = Profile::Now();
      if (session_ != nullptr) session_->AddSession("model_run", begin_, end);
      if (!own_) return;
      own_->AddSession("model_run", begin_, end);
      std::string file;
      ReleaseStatus(own_->Finish(&file));
    });
  }
  ProfiledRun(const ProfiledRun&) = delete;
  ProfiledRun& operator=(const ProfiledRun&) = delete;

  bool wants_kernels() const override { return true; }
  void OnKernel(const KernelCall& call) override {
    if (session_ != nullptr) session_->AddKernel(call);
    if (own_) own_->AddKernel(call);
  }

 private:
  bool is_wanted() const { return session_ != nullptr || own_; }

  Profile* session_;
  VirtualMachine* vm_;
  std::optional<Profile> own_;
  std::int64_t begin_ = Profile::Now();
};

// One element takes that of an output of another rank, whose shape the value then has.
bool MayChangeShape(const Port& port, const ValueBody& value) {
  const OrtTensorTypeAndShapeInfo& type = port.type.tensor;
  return value.elements() == 1 && (!type.has_shape || type.dims.size() != value.shape.size());
}

// Whether the VM can make the output in the host's own tensor. Strings and maps are made of its results.
bool IsDirect(const Port& port, const ValueBody& value) {
  if (port.type.kind == ONNX_TYPE_TENSOR && MayChangeShape(port, value)) return false;
  return port.type.kind == ONNX_TYPE_TENSOR && !port.parts && !port.list && value.kind == ONNX_TYPE_TENSOR &&
         !value.is_string();
}

OrtStatus* RunAsItIs(const OrtSession& session, const Model& model, const OrtRunOptions* options,
                     const std::vector<NamedInput>& inputs, std::vector<NamedOutput>* outputs) {
  const Ports& ports = model.ports();
  std::vector<Value> values;
  if (OrtStatus* const wrong = BindInputs(ports, inputs, &values); wrong != nullptr) return wrong;
  if (outputs->empty()) return InvalidArgument("At least one output should be requested.");

  std::vector<const Port*> wanted;
  std::vector<OutputBinding> bindings;
  std::vector<bool> is_direct;
  std::vector<bool> bound(ports.outputs.size());
  static char nothing[16] = {};  // tensors without elements may have no memory
  for (const NamedOutput& output : *outputs) {
    if (output.name == nullptr || *output.name == '\0') return InvalidArgument("output name cannot be empty");
    const auto found = ports.output_by_name.find(output.name);
    if (found == ports.output_by_name.end())
      return InvalidArgument("Invalid output name: " + std::string(output.name));
    const Port& port = ports.outputs[found->second];
    if (output.value != nullptr) {
      if (OrtStatus* const wrong = CheckOutput(port, *output.value); wrong != nullptr) return wrong;
    }
    wanted.push_back(&port);
    // The second of two outputs of one name is a copy.
    const bool direct = output.value != nullptr && IsDirect(port, *output.value) && !bound[found->second];
    is_direct.push_back(direct);
    if (!direct) continue;
    bound[found->second] = true;
    ValueBody& body = *output.value;
    const TensorView view(body.data == nullptr ? nothing : body.data, DTypeOf(body.type),
                          Span<const std::int64_t>(body.shape));
    bindings.push_back({OutputRef(OutputHandle{model.function(), port.place}), view, {}});
  }

  if (OrtStatus* const missing = CheckAllGiven(ports, values); missing != nullptr) return missing;
  LentVm vm(model);
  {
    const RunUnder under(options, &*vm);
    if (under.terminated()) return Terminated();
    const ProfiledRun profiled(session, options, &*vm);
    if (const auto time = model.limits().run_time; time.count() != 0)
      (*vm).SetDeadline(std::chrono::steady_clock::now() + time);
    const Status ran = Invoke(model, *vm, values, bindings, DonationsOf(values, bindings));
    if (!ran) return ran.code() == StatusCode::kCancelled ? Terminated() : FromError(ran.error());
  }

  UsedMemory used;
  for (const NamedInput& input : inputs) {
    if (input.value->body->kind == ONNX_TYPE_TENSOR && !input.value->body->is_string())
      used.Add(input.value->body->data, input.value->body->bytes());
    for (const auto& part : input.value->body->parts) {
      if (!part->is_string()) used.Add(part->data, part->bytes());
    }
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    if (is_direct[i]) used.Add((*outputs)[i].value->data, (*outputs)[i].value->bytes());
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    if (is_direct[i]) continue;
    NamedOutput& output = (*outputs)[i];
    // The VM keeps no result that it has made in the host's memory.
    const ValueBody* made_elsewhere = nullptr;
    for (std::size_t j = 0; j < outputs->size(); ++j) {
      if (is_direct[j] && wanted[j] == wanted[i]) made_elsewhere = (*outputs)[j].value.get();
    }
    std::shared_ptr<ValueBody> made;
    if (made_elsewhere != nullptr) {
      Result<std::shared_ptr<ValueBody>> copy = MakeTensor(made_elsewhere->type, made_elsewhere->shape);
      if (!copy) return FromError(copy.error());
      const Status copied = CopyInto(*made_elsewhere, *wanted[i], copy->get());
      if (!copied) return FromError(copied.error());
      made = *std::move(copy);
    } else {
      Result<std::shared_ptr<ValueBody>> taken = TakeOutput(*wanted[i], *vm, &used);
      if (!taken) return FromError(taken.error(), ORT_FAIL);
      made = *std::move(taken);
    }
    if (output.value == nullptr) {
      output.value = std::move(made);
    } else if (const Status copied = CopyInto(*made, *wanted[i], output.value.get()); !copied) {
      return FromError(copied.error());
    }
  }
  return nullptr;
}

}  // namespace

OrtStatus* RunModel(const OrtSession& session, const OrtRunOptions* options,
                    const std::vector<NamedInput>& inputs, std::vector<NamedOutput>* outputs) {
  const Model& model = *session.model;
  std::set<std::string> overridden;
  for (const NamedInput& input : inputs) {
    for (const Port& port : model.ports().overridable) {
      if (input.name != nullptr && port.name == input.name) overridden.insert(port.name);
    }
  }
  if (overridden.empty()) return RunAsItIs(session, model, options, inputs, outputs);
  std::shared_ptr<const Model> overriding;
  if (OrtStatus* const failed = model.Overriding(overridden, &overriding); failed != nullptr) return failed;
  return RunAsItIs(session, *overriding, options, inputs, outputs);
}

OrtStatus* Run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
               const OrtValue* const* inputs, std::size_t input_count, const char* const* output_names,
               std::size_t output_count, OrtValue** outputs) noexcept {
  return Guard([&]() -> OrtStatus* {
    std::vector<NamedInput> in;
    for (std::size_t i = 0; i < input_count; ++i) in.push_back({input_names[i], inputs[i]});
    std::vector<NamedOutput> out;
    for (std::size_t i = 0; i < output_count; ++i)
      out.push_back({output_names[i], outputs[i] == nullptr ? nullptr : outputs[i]->body});
    OrtStatus* const failed = RunModel(*session, options, in, &out);
    if (failed != nullptr) return failed;
    for (std::size_t i = 0; i < output_count; ++i) {
      if (outputs[i] != nullptr) continue;
      if (OrtStatus* const status = NewValue(std::move(out[i].value), &outputs[i]); status != nullptr)
        return status;
    }
    return nullptr;
  });
}

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                    const OrtValue* const* inputs, std::size_t input_count, const char* const* output_names,
                    std::size_t output_count, OrtValue** outputs, RunAsyncCallbackFn callback,
                    void* user_data) noexcept {
  return Guard([&]() -> OrtStatus* {
    // The interface asks the host to keep names, values and the session until the callback.
    std::thread([=] {
      OrtStatus* const status =
          Run(session, options, input_names, inputs, input_count, output_names, output_count, outputs);
      callback(user_data, status == nullptr ? outputs : nullptr, status == nullptr ? output_count : 0,
               status);
    }).detach();
    return nullptr;
  });
}

}  // namespace rewire::onnxruntime_api
