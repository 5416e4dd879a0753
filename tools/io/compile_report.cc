// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/compile_report.h"

#include <fmt/format.h>

#include <iterator>

#include "rewire/tools/io/cli.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {

namespace {

// A model for dimensions of size 0 computes nothing, and nobody wants one.
Status CompileSizes(const char* option, const std::vector<std::string>& texts,
                    std::map<std::string, std::int64_t>* sizes) {
  if (Status parsed = ParseSizes(option, texts, sizes); !parsed) return parsed;
  for (const auto& [name, size] : *sizes) {
    if (size != 0) continue;
    return Fail(
        StatusCode::kInvalidArgument,
        fmt::format("{}: {}=0 leaves nothing to compute: expected a size of at least 1", option, name));
  }
  return {};
}

}  // namespace

Result<CompileOptions> ParseCompileOptions(const std::vector<std::string>& dims,
                                           const std::vector<std::string>& max_dims,
                                           const std::vector<std::string>& disabled_passes) {
  CompileOptions options;
  options.disabled_passes.insert(disabled_passes.begin(), disabled_passes.end());
  if (Status parsed = CompileSizes("--dim", dims, &options.dims); !parsed) return Forward(parsed);
  if (Status parsed = CompileSizes("--max-dim", max_dims, &options.max_dims); !parsed) return Forward(parsed);
  return options;
}

Result<std::vector<OperatorSchema>> ReadOperatorFiles(const std::vector<std::string>& files) {
  std::vector<OperatorSchema> schemas;
  for (const std::string& path : files) {
    Result<std::vector<OperatorSchema>> read = ReadOperatorSchemas(path);
    if (!read) return Forward(read);
    schemas.insert(schemas.end(), std::make_move_iterator(read->begin()),
                   std::make_move_iterator(read->end()));
  }
  return schemas;
}

std::string UnsupportedText(const std::vector<UnsupportedNode>& nodes) {
  std::string text;
  for (const UnsupportedNode& node : nodes) {
    text += fmt::format("  {} ({}{}{}, opset {}): {}\n", node.node, node.domain,
                        node.domain.empty() ? "" : ".", node.op_type, node.opset, InOptions(node.reason));
  }
  return text.empty() ? text : "not supported:\n" + text;
}

nlohmann::ordered_json UnsupportedJson(const std::string& input, const Error& error,
                                       const std::vector<UnsupportedNode>& nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const UnsupportedNode& node : nodes) {
    list.push_back({{"node", node.node},
                    {"domain", node.domain},
                    {"operator", node.op_type},
                    {"opset", node.opset},
                    {"reason", InOptions(node.reason)}});
  }
  return {{"input", input}, {"error", ErrorJson(error)}, {"unsupported", std::move(list)}};
}

}  // namespace rewire::tools
