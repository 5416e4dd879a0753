// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/methods.h"

#include <algorithm>
#include <array>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/serve/core/dim_names.h"
#include "rewire/serve/core/wire_types.h"
#include "rewire/serve/grpc/protobuf_wire.h"

namespace rewire::serve {
namespace {

// The fields of the small requests: two texts, and two numbers.
struct Fields {
  std::string_view text[3];      // fields 1 and 2
  std::uint64_t number[5] = {};  // fields 1 to 4
};

Result<Fields> ReadFields(std::string_view message) {
  Fields fields;
  WireReader reader(message);
  while (reader.Next()) {
    const std::uint32_t field = reader.field();
    if (reader.type() == WireType::kBytes && field < 3) fields.text[field] = reader.bytes();
    if (reader.type() == WireType::kVarint && field < 5) fields.number[field] = reader.number();
  }
  if (reader.malformed())
    return Fail(StatusCode::kInvalidArgument,
                "the message is malformed: a request of this method is expected");
  return fields;
}

Status ServerLive(Service*, std::string_view, std::string* response) {
  WireWriter(response).Number(1, 1);
  return {};
}

Status ServerReady(Service* service, std::string_view, std::string* response) {
  WireWriter(response).Number(1, service->Ready() ? 1 : 0);
  return {};
}

Status ModelReady(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const Status ready = service->CheckReady(fields->text[1], fields->text[2]);
  if (!ready && ready.code() != StatusCode::kBusy && ready.code() != StatusCode::kNotFound) return ready;
  WireWriter(response).Number(1, ready ? 1 : 0);
  return {};
}

Status ServerMetadata(Service* service, std::string_view, std::string* response) {
  const ServerDescription server = service->Describe();
  WireWriter writer(response);
  writer.Text(1, server.name).Text(2, server.version);
  for (const std::string& extension : server.extensions) writer.AlwaysText(3, extension);
  return {};
}

Status ModelMetadata(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const Result<ModelDescription> model = service->Describe(fields->text[1], fields->text[2]);
  if (!model) return Forward(model);
  WireWriter writer(response);
  writer.Text(1, model->name);
  for (const std::string& version : model->versions) writer.AlwaysText(2, version);
  writer.Text(3, model->platform);
  const auto tensors = [&](std::uint32_t field, const std::vector<TensorDescription>& list) {
    for (const TensorDescription& tensor : list) {
      writer.Message(field, [&](WireWriter* metadata) {
        metadata->Text(1, tensor.name).Text(2, WireName(tensor.dtype)).Packed(3, tensor.shape);
      });
    }
  };
  tensors(4, model->inputs);
  tensors(5, model->outputs);
  return {};
}

// The enum DataType of model_config.proto.
std::uint64_t DataTypeOf(DLDataType dtype) {
  constexpr std::array<std::string_view, 15> kNames = {"",       "BOOL", "UINT8", "UINT16", "UINT32",
                                                       "UINT64", "INT8", "INT16", "INT32",  "INT64",
                                                       "FP16",   "FP32", "FP64",  "BYTES",  "BF16"};
  const auto found = std::find(kNames.begin(), kNames.end(), WireName(dtype));
  return found == kNames.end() ? 0 : static_cast<std::uint64_t>(found - kNames.begin());
}

void WriteModelConfig(const ModelDescription& model, WireWriter* config) {
  constexpr std::uint64_t kOnCpu = 2;
  config->Text(1, model.name).Text(2, model.platform).Text(17, "rewire");
  const BatchSettings& batching = model.batching;
  const bool batches = batching.max_batch_size > 0;
  config->Number(4, batches ? static_cast<std::uint64_t>(batching.max_batch_size) : 0);
  const auto dims = [batches](const TensorDescription& tensor) {
    // The batch dimension is not said where there is a largest batch.
    const auto begin = tensor.shape.begin() + (batches && !tensor.shape.empty() ? 1 : 0);
    return std::vector<std::int64_t>(begin, tensor.shape.end());
  };
  for (const TensorDescription& tensor : model.inputs) {
    config->Message(5, [&](WireWriter* input) {
      input->Text(1, tensor.name).Number(2, DataTypeOf(tensor.dtype)).Packed(4, dims(tensor));
    });
  }
  for (const TensorDescription& tensor : model.outputs) {
    config->Message(6, [&](WireWriter* output) {
      output->Text(1, tensor.name).Number(2, DataTypeOf(tensor.dtype)).Packed(3, dims(tensor));
    });
  }
  config->Message(7, [&](WireWriter* group) {
    group->Text(1, model.name + "_0").Number(2, model.instances).Number(4, kOnCpu);
  });
  const auto names = [&](std::string_view prefix, const std::vector<TensorDescription>& tensors) {
    for (const TensorDescription& tensor : tensors) {
      config->Entry(14, std::string(prefix) + tensor.name,
                    [&](WireWriter* value) { value->Text(1, tensor.dims); });
    }
  };
  names(kInputDims, model.inputs);
  names(kOutputDims, model.outputs);
  if (!model.sequence.state.empty()) {
    config->Message(13, [&](WireWriter* sequence) {
      sequence->Number(1, model.sequence.idle_us);
      for (const auto& pair : model.sequence.state)
        sequence->Message(5, [&](WireWriter* state) { state->Text(1, pair.second).Text(2, pair.first); });
    });
  }
  if (!batches) return;
  config->Message(11, [&](WireWriter* dynamic) {
    dynamic->Packed(1, batching.preferred_sizes).Number(2, batching.max_queue_delay_us);
  });
}

Status ModelConfig(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const Result<ModelDescription> model = service->Describe(fields->text[1], fields->text[2]);
  if (!model) return Forward(model);
  WireWriter(response).Message(1, [&](WireWriter* config) { WriteModelConfig(*model, config); });
  return {};
}

void WriteDuration(std::uint32_t field, const DurationCount& duration, WireWriter* writer) {
  writer->Message(field, [&](WireWriter* one) { one->Number(1, duration.count).Number(2, duration.ns); });
}

void WriteStatistics(const serve::ModelStatistics& model, WireWriter* writer) {
  writer->Text(1, model.name).Text(2, model.version).Number(3, model.last_inference_ms);
  writer->Number(4, model.inference_count).Number(5, model.execution_count);
  writer->Message(6, [&](WireWriter* all) {
    const DurationCount* const durations[] = {&model.success,       &model.fail,
                                              &model.queue,         &model.compute_input,
                                              &model.compute_infer, &model.compute_output};
    std::uint32_t field = 0;
    for (const DurationCount* const duration : durations) WriteDuration(++field, *duration, all);
  });
  for (const BatchStatistics& batch : model.batches) {
    writer->Message(7, [&](WireWriter* one) {
      one->Number(1, batch.batch_size);
      WriteDuration(2, batch.compute_input, one);
      WriteDuration(3, batch.compute_infer, one);
      WriteDuration(4, batch.compute_output, one);
    });
  }
}

Status ModelStatistics(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const Result<std::vector<serve::ModelStatistics>> statistics =
      service->Statistics(fields->text[1], fields->text[2]);
  if (!statistics) return Forward(statistics);
  WireWriter writer(response);
  for (const serve::ModelStatistics& model : *statistics)
    writer.Message(1, [&](WireWriter* one) { WriteStatistics(model, one); });
  return {};
}

Status RepositoryIndex(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  WireWriter writer(response);
  for (const ModelIndexEntry& entry : service->Index(fields->number[2] != 0)) {
    writer.Message(1, [&](WireWriter* model) {
      model->Text(1, entry.name)
          .Text(2, entry.version)
          .Text(3, ModelStateName(entry.state))
          .Text(4, entry.reason);
    });
  }
  return {};
}

Status RepositoryModelLoad(Service* service, std::string_view message, std::string*) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  WireReader reader(message);
  while (reader.Next()) {
    if (reader.Is(3, WireType::kBytes)) {
      return Fail(StatusCode::kUnsupported,
                  "parameters of a load, such as 'config' and files, are not supported: the repository has "
                  "the model");
    }
  }
  return service->Load(fields->text[2]);
}

Status RepositoryModelUnload(Service* service, std::string_view message, std::string*) {
  // Its parameter unload_dependents means nothing where no model depends on another.
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  return service->Unload(fields->text[2]);
}

Status SystemSharedMemoryStatus(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const Result<std::vector<RegionDescription>> regions = service->regions().List(fields->text[1]);
  if (!regions) return Forward(regions);
  WireWriter writer(response);
  for (const RegionDescription& region : *regions) {
    writer.Entry(1, region.name, [&](WireWriter* status) {
      status->Text(1, region.name).Text(2, region.key).Number(3, region.offset).Number(4, region.bytes);
    });
  }
  return {};
}

Status SystemSharedMemoryRegister(Service* service, std::string_view message, std::string*) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  return service->regions().Register(fields->text[1], fields->text[2], fields->number[3], fields->number[4]);
}

Status SystemSharedMemoryUnregister(Service* service, std::string_view message, std::string*) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  if (fields->text[1].empty()) {
    service->regions().UnregisterAll();
  } else {
    service->regions().Unregister(fields->text[1]);
  }
  return {};
}

Status CudaSharedMemoryStatus(Service*, std::string_view message, std::string*) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  if (fields->text[1].empty()) return {};  // no region is registered
  return Fail(StatusCode::kNotFound, "there is no region '" + std::string(fields->text[1]) + "' of CUDA");
}

Status CudaSharedMemoryRegister(Service*, std::string_view, std::string*) {
  return Fail(StatusCode::kUnsupported, "the extension 'cuda_shared_memory' is not supported");
}

// As for regions of the system, a region that is not registered is no error.
Status CudaSharedMemoryUnregister(Service*, std::string_view message, std::string*) {
  return ReadFields(message).status();
}

// An entry of a map of settings: its key, and the message that is its value.
Status ReadSetting(std::string_view entry, std::string_view* key, std::string_view* value) {
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) *key = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) *value = reader.bytes();
  }
  if (!reader.malformed()) return {};
  return Fail(StatusCode::kInvalidArgument, "the message is malformed: a setting is expected");
}

Status TraceSetting(Service* service, std::string_view message, std::string* response) {
  const Result<Fields> fields = ReadFields(message);
  if (!fields) return Forward(fields);
  const std::string_view model = fields->text[2];
  if (!model.empty()) {
    Status ready = service->CheckReady(model, {});
    if (!ready && ready.code() == StatusCode::kNotFound) return ready;
  }
  std::vector<serve::TraceSetting> changes;
  WireReader reader(message);
  while (reader.Next()) {
    if (!reader.Is(1, WireType::kBytes)) continue;
    std::string_view key, value;
    if (Status read = ReadSetting(reader.bytes(), &key, &value); !read) return read;
    serve::TraceSetting& change = changes.emplace_back();
    change.name = key;
    WireReader texts(value);
    while (texts.Next()) {
      if (texts.Is(1, WireType::kBytes)) change.values.emplace_back(texts.bytes());
    }
  }
  if (!changes.empty()) {
    if (Status changed = service->traces().Change(model, changes); !changed) return changed;
  }
  WireWriter writer(response);
  for (const serve::TraceSetting& setting : service->traces().Settings(model)) {
    writer.Entry(1, setting.name, [&](WireWriter* value) { value->AlwaysText(1, setting.values[0]); });
  }
  return {};
}

Status LogSettings(Service* service, std::string_view message, std::string* response) {
  std::vector<Parameter> changes;
  WireReader reader(message);
  while (reader.Next()) {
    if (!reader.Is(1, WireType::kBytes)) continue;
    std::string_view value;
    Parameter& change = changes.emplace_back();
    change.value = false;  // protobuf leaves out no choice, but a client may
    if (Status read = ReadSetting(reader.bytes(), &change.name, &value); !read) return read;
    WireReader choice(value);
    while (choice.Next()) {
      if (choice.Is(1, WireType::kVarint)) change.value = choice.flag();
      if (choice.Is(2, WireType::kVarint)) change.value = choice.integer();
      if (choice.Is(3, WireType::kBytes)) change.value = choice.bytes();
    }
  }
  if (Status changed = ChangeLog(changes, service->log()); !changed) return changed;
  const serve::LogSettings settings = SettingsOfLog(*service->log());
  WireWriter writer(response);
  const auto flag = [&](const char* name, bool on) {
    writer.Entry(1, name, [&](WireWriter* value) { value->AlwaysNumber(1, on ? 1 : 0); });
  };
  flag("log_info", settings.info);
  flag("log_warning", settings.warning);
  flag("log_error", settings.error);
  writer.Entry(1, "log_verbose_level", [&](WireWriter* value) { value->AlwaysNumber(2, settings.verbose); });
  writer.Entry(1, "log_file", [](WireWriter* value) { value->AlwaysText(3, ""); });
  writer.Entry(1, "log_format", [](WireWriter* value) { value->AlwaysText(3, "default"); });
  return {};
}

constexpr auto kUnary = GrpcMethod::Kind::kUnary;
constexpr auto kSlow = GrpcMethod::Kind::kSlow;
constexpr std::array<GrpcMethod, 20> kMethods = {{
    {"ModelInfer", GrpcMethod::Kind::kInfer, nullptr},
    {"ModelStreamInfer", GrpcMethod::Kind::kStreamInfer, nullptr},
    {"ServerLive", kUnary, ServerLive},
    {"ServerReady", kUnary, ServerReady},
    {"ModelReady", kUnary, ModelReady},
    {"ServerMetadata", kUnary, ServerMetadata},
    {"ModelMetadata", kUnary, ModelMetadata},
    {"ModelConfig", kUnary, ModelConfig},
    {"ModelStatistics", kUnary, ModelStatistics},
    {"RepositoryIndex", kUnary, RepositoryIndex},
    {"RepositoryModelLoad", kSlow, RepositoryModelLoad},
    {"RepositoryModelUnload", kSlow, RepositoryModelUnload},
    {"SystemSharedMemoryStatus", kUnary, SystemSharedMemoryStatus},
    {"SystemSharedMemoryRegister", kUnary, SystemSharedMemoryRegister},
    {"SystemSharedMemoryUnregister", kUnary, SystemSharedMemoryUnregister},
    {"CudaSharedMemoryStatus", kUnary, CudaSharedMemoryStatus},
    {"CudaSharedMemoryRegister", kUnary, CudaSharedMemoryRegister},
    {"CudaSharedMemoryUnregister", kUnary, CudaSharedMemoryUnregister},
    {"TraceSetting", kUnary, TraceSetting},
    {"LogSettings", kUnary, LogSettings},
}};

}  // namespace

const GrpcMethod* FindGrpcMethod(std::string_view path) {
  constexpr std::string_view kService = "/inference.GRPCInferenceService/";
  if (path.substr(0, kService.size()) != kService) return nullptr;
  path.remove_prefix(kService.size());
  const auto found = std::find_if(kMethods.begin(), kMethods.end(),
                                  [&](const GrpcMethod& method) { return method.name == path; });
  return found == kMethods.end() ? nullptr : &*found;
}

}  // namespace rewire::serve
