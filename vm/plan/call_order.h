// SPDX-License-Identifier: Apache-2.0
//
// Groups functions so that callees come before their callers.
#pragma once

#include <cstdint>

#include "rewire/base/array.h"
#include "rewire/executable_format/module.h"

namespace rewire {

struct CallOrder {
  explicit CallOrder(const Module& module);

  // Functions that call one another, directly or indirectly. A group with one function is not recursive
  // unless `recursive` is set. All callees outside the group are in earlier groups.
  struct Group {
    std::uint32_t begin = 0;  // in `functions`
    std::uint32_t end = 0;
    bool recursive = false;
  };
  Array<std::uint32_t> functions;
  Array<Group> groups;
};

}  // namespace rewire
