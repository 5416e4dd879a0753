// SPDX-License-Identifier: Apache-2.0
//
// BundleReader makes executables of modules that were verified in another way than by Executable's own
// functions. The models of a bundle are verified under one meter. Executables that are linked into the
// program were verified when it was built.
#pragma once

#include <memory>
#include <utility>

#include "rewire/executable_format/executable.h"

namespace rewire {

class BundleReader {
 public:
  static Executable Accept(std::shared_ptr<const Module> module) { return Executable(std::move(module)); }
};

}  // namespace rewire
