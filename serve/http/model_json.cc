// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/model_json.h"

#include "rewire/serve/core/dim_names.h"
#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

std::string Written(const std::vector<TensorDescription>& tensors, bool config, bool batched) {
  std::string text;
  JsonText json(&text);
  json.Begin('[');
  for (const TensorDescription& tensor : tensors) {
    json.Begin('{').Key("name").String(tensor.name);
    const std::string type(WireName(tensor.dtype));
    std::vector<std::int64_t> shape = tensor.shape;
    if (config && batched && !shape.empty()) shape.erase(shape.begin());
    if (config) {
      json.Key("data_type").String("TYPE_" + type).Key("dims").Numbers(shape);
    } else {
      json.Key("datatype").String(type).Key("shape").Numbers(shape);
    }
    json.End('}');
  }
  json.End(']');
  return text;
}

// Parameters of the configuration: the names of each tensor's dimensions.
void WriteDims(std::string_view prefix, const std::vector<TensorDescription>& tensors, JsonText* json) {
  for (const TensorDescription& tensor : tensors) {
    json->Key(std::string(prefix) + tensor.name).Begin('{');
    json->Key("string_value").String(tensor.dims).End('}');
  }
}

void WriteSequence(const ModelDescription& model, JsonText* json) {
  json->Key("sequence_batching").Begin('{').Key("max_sequence_idle_microseconds");
  json->Number(model.sequence.idle_us).Key("state").Begin('[');
  for (const auto& [output, input] : model.sequence.state) {
    json->Begin('{').Key("input_name").String(input).Key("output_name").String(output).End('}');
  }
  json->End(']').End('}');
}

void Write(const char* key, const DurationCount& count, JsonText* json) {
  json->Key(key).Begin('{').Key("count").Number(count.count).Key("ns").Number(count.ns).End('}');
}

}  // namespace

void WriteModelMetadata(const ModelDescription& model, std::string* text) {
  JsonText json(text);
  json.Begin('{').Key("name").String(model.name).Key("versions").Begin('[');
  for (const std::string& version : model.versions) json.String(version);
  json.End(']').Key("platform").String(model.platform).Key("inputs").Raw(Written(model.inputs, false, false));
  json.Key("outputs").Raw(Written(model.outputs, false, false)).End('}');
}

void WriteModelConfig(const ModelDescription& model, std::string* text) {
  const BatchSettings& batching = model.batching;
  const bool batched = batching.max_batch_size > 0;
  JsonText json(text);
  json.Begin('{')
      .Key("name")
      .String(model.name)
      .Key("platform")
      .String(model.platform)
      .Key("backend")
      .String("rewire");
  json.Key("max_batch_size").Number(batching.max_batch_size);
  json.Key("input").Raw(Written(model.inputs, true, batched));
  json.Key("output")
      .Raw(Written(model.outputs, true, batched))
      .Key("instance_group")
      .Begin('[')
      .Begin('{')
      .Key("kind")
      .String("KIND_CPU")
      .Key("count");
  json.Number(std::uint64_t{model.instances}).End('}').End(']');
  json.Key("parameters").Begin('{');
  WriteDims(kInputDims, model.inputs, &json);
  WriteDims(kOutputDims, model.outputs, &json);
  json.End('}');
  if (batched) {
    json.Key("dynamic_batching").Begin('{').Key("preferred_batch_size").Numbers(batching.preferred_sizes);
    json.Key("max_queue_delay_microseconds")
        .Number(batching.max_queue_delay_us)
        .Key("default_queue_policy")
        .Begin('{');
    json.Key("max_queue_size").Number(std::uint64_t{model.max_queue_size}).End('}').End('}');
  }
  if (!model.sequence.state.empty()) WriteSequence(model, &json);
  json.End('}');
}

void WriteStatistics(const std::vector<ModelStatistics>& list, std::string* text) {
  JsonText json(text);
  json.Begin('{').Key("model_stats").Begin('[');
  for (const ModelStatistics& model : list) {
    json.Begin('{').Key("name").String(model.name).Key("version").String(model.version);
    json.Key("last_inference")
        .Number(model.last_inference_ms)
        .Key("inference_count")
        .Number(model.inference_count);
    json.Key("execution_count").Number(model.execution_count).Key("inference_stats").Begin('{');
    Write("success", model.success, &json);
    Write("fail", model.fail, &json);
    Write("queue", model.queue, &json);
    Write("compute_input", model.compute_input, &json);
    Write("compute_infer", model.compute_infer, &json);
    Write("compute_output", model.compute_output, &json);
    Write("cancel", model.cancel, &json);
    json.End('}').Key("batch_stats").Begin('[');
    for (const BatchStatistics& batch : model.batches) {
      json.Begin('{').Key("batch_size").Number(batch.batch_size);
      Write("compute_input", batch.compute_input, &json);
      Write("compute_infer", batch.compute_infer, &json);
      Write("compute_output", batch.compute_output, &json);
      json.End('}');
    }
    json.End(']').End('}');
  }
  json.End(']').End('}');
}

}  // namespace rewire::serve
