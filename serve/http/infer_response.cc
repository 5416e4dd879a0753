// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/infer_response.h"

#include "rewire/serve/core/json_text.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {

Status WriteInferResponse(const Request& request, const ResponseForm& form, std::string* text,
                          std::vector<Span<const std::byte>>* tensors) {
  JsonText json(text);
  json.Begin('{')
      .Key("model_name")
      .String(request.used_model)
      .Key("model_version")
      .String(request.used_version);
  if (!request.id.empty()) json.Key("id").String(request.id);
  json.Key("outputs").Begin('[');
  for (const OutputTensor& tensor : request.results) {
    const OutputForm one =
        tensor.wanted < form.wanted.size() ? form.wanted[tensor.wanted] : OutputForm{form.binary, {}, 0};
    json.Begin('{').Key("name").String(tensor.name).Key("datatype").String(WireName(tensor.dtype));
    json.Key("shape").Numbers(tensor.shape);
    if (!one.region.empty()) {
      json.Key("parameters").Begin('{').Key("shared_memory_region").String(one.region);
      json.Key("shared_memory_offset")
          .Number(one.offset)
          .Key("shared_memory_byte_size")
          .Number(tensor.bytes)
          .End('}');
    } else if (one.binary) {
      json.Key("parameters").Begin('{').Key("binary_data_size").Number(tensor.bytes).End('}');
      if (tensor.bytes > 0) tensors->push_back({tensor.data, static_cast<std::size_t>(tensor.bytes)});
    } else {
      json.Key("data");
      if (Status written = json.Elements(tensor); !written) return written;
    }
    json.End('}');
  }
  json.End(']').End('}');
  return {};
}

}  // namespace rewire::serve
