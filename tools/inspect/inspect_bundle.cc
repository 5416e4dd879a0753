// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/inspect_bundle.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/mapped_file.h"
#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/tools/io/units.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

std::uint64_t ConstantBytes(const Module& module) {
  std::uint64_t bytes = 0;
  for (const Constant& constant : module.constants) bytes += constant.stored.view.size();
  return bytes;
}

}  // namespace

Result<BundleReport> InspectBundle(const std::string& path, bool check) {
  OpenOptions options;
  options.verify_data = check;
  const Result<SharedBytes> file = MapFile(path);
  if (!file) return Forward(file);
  Result<Array<BundledExecutable>> models = BundleFromBytes(*file, options);
  if (!models) return Forward(models, path);
  BundleReport report{path, file->view.size(), 0, 0, *std::move(models)};
  std::set<const std::byte*> blobs;
  for (const BundledExecutable& model : report.models) {
    report.constant_bytes += ConstantBytes(model.executable.module());
    for (const Constant& constant : model.executable.module().constants) {
      if (!constant.stored.view.empty() && blobs.insert(constant.stored.view.data()).second) {
        report.stored_bytes += constant.stored.view.size();
      }
    }
  }
  return report;
}

std::string BundleText(const BundleReport& report, bool all) {
  std::string text = fmt::format("{}: bundle of {} models, {}; constants {}, stored once {}\n", report.path,
                                 report.models.size(), BytesText(report.file_size),
                                 BytesText(report.constant_bytes), BytesText(report.stored_bytes));
  for (const BundledExecutable& model : report.models) {
    const Module& module = model.executable.module();
    text += fmt::format("\nmodel {}, constants {}\n{}", model.name, BytesText(ConstantBytes(module)),
                        all ? ListingText(module) : InterfaceText(module));
  }
  return text;
}

Json BundleJson(const BundleReport& report) {
  Json models = Json::array();
  for (const BundledExecutable& model : report.models) {
    Json json = {{"name", model.name}, {"constant_bytes", ConstantBytes(model.executable.module())}};
    json.update(ListingJson(model.executable.module()));
    models.push_back(std::move(json));
  }
  return {{"file", report.path},
          {"kind", "bundle"},
          {"bytes", report.file_size},
          {"constant_bytes", report.constant_bytes},
          {"stored_bytes", report.stored_bytes},
          {"models", std::move(models)}};
}

}  // namespace rewire::tools
