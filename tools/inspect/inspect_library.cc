// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/inspect/inspect_library.h"

#include <fmt/format.h>

#include <utility>

#include "rewire/tools/inspect/listing.h"
#include "rewire/tools/io/open_model.h"
#include "rewire/tools/io/table_text.h"
#include "rewire/vm/kernel_set.h"
#include "rewire/vm/prepare/kernel_work.h"

namespace rewire::tools {

Result<LibraryReport> InspectLibrary(const std::string& path) {
  KernelSet set;
  // With a slash it is this file and no other of the same name elsewhere.
  const std::string exact = path.find('/') == std::string::npos ? "./" + path : path;
  if (Status added = set.AddLibrary(exact); !added) return Forward(added);
  LibraryReport library;
  library.path = path;
  const KernelSource& source = *set.sources().back();
  library.description = source.Description();
  for (const std::string& name : source.Names()) {
    KernelSource::Notes notes = source.Describe(name);
    LibraryReport::Kernel kernel{name, std::move(notes.documentation), std::move(notes.metadata), {}};
    const PackedFunction function = source.Find(name).function;
    if (function.row != nullptr && function.work != nullptr) {
      const Status checked = CheckWork(*function.row, *function.work);
      kernel.work = checked ? WorkText(*function.work) : checked.error().message();
    }
    library.kernels.push_back(std::move(kernel));
  }
  Result<OpenedModel> model = OpenModel(path);
  if (model) {
    library.model = std::move(model->executable);
  } else if (model.error().code() != StatusCode::kInvalidArgument) {  // else there is none
    return Forward(model);
  }
  return library;
}

std::string LibraryText(const LibraryReport& library, bool all) {
  std::string text =
      fmt::format("{}: {}\n\nkernels: {}\n", library.path, library.description, library.kernels.size());
  std::vector<std::vector<std::string>> rows;
  for (const LibraryReport::Kernel& kernel : library.kernels) {
    rows.push_back({kernel.name, kernel.documentation.substr(0, kernel.documentation.find('\n'))});
    if (!kernel.metadata.empty()) rows.back().push_back(kernel.metadata);
    if (!kernel.work.empty()) rows.back().push_back(kernel.work);
  }
  text += TableText(rows, {});
  if (!library.model) return text;
  const Module& module = library.model->module();
  text += "\nmodel inside:\n\n" + (all ? ListingText(module) : InterfaceText(module));
  return text;
}

nlohmann::ordered_json LibraryJson(const LibraryReport& library) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const LibraryReport::Kernel& kernel : library.kernels) {
    kernels.push_back(
        {{"name", kernel.name}, {"documentation", kernel.documentation}, {"metadata", kernel.metadata}});
    if (!kernel.work.empty()) kernels.back()["work"] = kernel.work;
  }
  nlohmann::ordered_json json = {{"file", library.path},
                                 {"kind", "kernel library"},
                                 {"description", library.description},
                                 {"kernels", std::move(kernels)}};
  if (library.model) json["model"] = ListingJson(library.model->module());
  return json;
}

}  // namespace rewire::tools
