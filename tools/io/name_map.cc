// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/name_map.h"

#include <utility>

#include "rewire/base/mapped_file.h"
#include "rewire/executable_format/strip.h"

namespace rewire::tools {

Status RestoreNames(const std::string& map, OpenedModel* model) {
  if (map.empty()) return {};
  const Result<SharedBytes> bytes = ReadFile(map);
  if (!bytes) return Forward(bytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes->view.data()), bytes->view.size());
  const Result<NameMap> names = NameMap::Parse(text);
  if (!names) return Forward(names, map);
  Result<Module> restored = names->Restore(model->executable.module());
  if (!restored) return Forward(restored, map);
  Result<Executable> executable = Executable::FromModule(*std::move(restored));
  if (!executable) return Forward(executable, map);
  model->executable = *std::move(executable);
  return {};
}

}  // namespace rewire::tools
