// SPDX-License-Identifier: Apache-2.0
#include "rewire/onnxruntime_api/sessions/initializers.h"

#include <vector>

namespace rewire::onnxruntime_api {

GivenInitializers GivenInitializers::Kept() const {
  GivenInitializers kept = *this;
  for (auto& [name, file] : kept.files) {
    if (file.owner != nullptr) continue;
    const auto copy = std::make_shared<const std::vector<std::byte>>(file.view.begin(), file.view.end());
    file = {{copy->data(), copy->size()}, copy};
  }
  return kept;
}

Status GiveInitializers(const GivenInitializers& given, const ModelText& text,
                        const std::set<std::string>& overridden, CompileOptions* compile) {
  const auto give = [&](const InitializerValues& values, const std::set<std::string>& known) -> Status {
    for (const auto& [name, body] : values) {
      const bool is_given = compile->parameters.count(name) != 0;
      if (known.count(name) == 0 || overridden.count(name) != 0 || is_given) continue;
      if (body->is_string())
        return Fail(StatusCode::kUnsupported,
                    "initializer '{}' is given strings, expected numbers; keep strings in the model", name);
      const Result<Value> value = ToTensor(body);
      if (!value) return Forward(value);
      compile->initializers.Set(name, value->tensor());
      compile->parameters.insert(name);
    }
    return {};
  };
  if (Status done = give(given.values, text.initializers); !done) return done;
  if (Status done = give(given.external, text.external); !done) return done;
  compile->external_files = given.files;
  compile->overridden = overridden;
  return {};
}

}  // namespace rewire::onnxruntime_api
