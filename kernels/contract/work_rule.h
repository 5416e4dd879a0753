// SPDX-License-Identifier: Apache-2.0
//
// The work of a kernel that does more than some operations for each element (cost.h): a product, or a kernel
// with a window. Each family's file has a list of its own.
#pragma once

#include <cstddef>

namespace rewire::names {

// The inputs of a kernel from `first` on, `count` of them.
struct InputRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// The rules are those of a row's column (vm/kernel/work.h), in the names of the row's arguments.
struct WorkRule {
  const char* kernel;
  const char* products = nullptr;
  const char* plain_products = nullptr;
  double operations = 0;
  const char* times = nullptr;
  // The factors of products of floats that a model has: an element next to 0 in one of them hardly counts.
  InputRange factors = {};
};

}  // namespace rewire::names
