// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/names/no_function.h"

#include <string>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"

namespace rewire {

Status NoFunction(const Module& module, std::string_view name) {
  Array<std::string> names;
  for (const Function& function : module.functions) names.push_back(function.name);
  return Fail(StatusCode::kNotFound, "the executable has no function named \"{}\"{}", name,
              KnownNames("functions", name, names));
}

}  // namespace rewire
