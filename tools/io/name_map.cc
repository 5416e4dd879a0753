// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/name_map.h"

#include <utility>

#include "rewire/executable_format/names/name_map.h"

namespace rewire::tools {

Status RestoreNames(const std::string& map, OpenedModel* model) {
  if (map.empty()) return {};
  Result<Executable> executable = rewire::RestoreNames(model->executable, map);
  if (!executable) return Forward(executable);
  model->executable = *std::move(executable);
  return {};
}

}  // namespace rewire::tools
