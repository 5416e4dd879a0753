// SPDX-License-Identifier: Apache-2.0
//
// The error that an executable has no function of a name, which is the same wherever one is named.
#pragma once

#include <string_view>

#include "rewire/base/export.h"
#include "rewire/base/status.h"
#include "rewire/executable_format/module.h"

namespace rewire {

// kNotFound, with similar names and the functions that there are.
REWIRE_API Status NoFunction(const Module& module, std::string_view name);

}  // namespace rewire
