// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/compile/parameter_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "rewire/tools/io/units.h"
#include "rewire/tools/run/parameter_files.h"

namespace rewire::tools {

Status ReadParameterOptions(const std::vector<std::string>& chosen, CompileOptions* compile) {
  for (const std::string& each : chosen) {
    std::error_code ignored;
    if (each == "all") {
      compile->all_parameters = true;
    } else if (std::filesystem::is_regular_file(each, ignored)) {
      const Result<std::vector<StoredParameter>> list = ListParameters(each);
      if (!list) return Forward(list, "--parameters");
      for (const StoredParameter& parameter : *list) compile->parameters.insert(parameter.named.name);
    } else {
      compile->parameters.insert(each);
    }
  }
  return {};
}

Status WriteWeights(const std::string& path, const ParameterSet& parameters) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Result<Tensor> tensor = parameters.TryGet(i);
    if (!tensor) return Forward(tensor);
    const TensorView view = tensor->view();
    NamedTensor named{std::string(parameters.name(i)), {}};
    named.tensor.dtype = view.dtype();
    named.tensor.shape.assign(view.shape().begin(), view.shape().end());
    named.tensor.bytes = {{static_cast<const std::byte*>(view.data()), view.bytes()},
                          std::make_shared<const Tensor>(*tensor)};
    tensors.push_back(std::move(named));
  }
  const Status written = WriteParameterFile(path, {tensors.data(), tensors.size()}, 0);
  return written ? written : Forward(written, "--weights");
}

std::string ParametersText(const CompileReport& report) {
  if (report.parameters == 0) return "";
  return fmt::format("{} parameters with {} are bound when a program is linked, as by vm-run --params\n",
                     report.parameters, BytesText(report.parameter_bytes));
}

}  // namespace rewire::tools
