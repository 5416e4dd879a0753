// SPDX-License-Identifier: Apache-2.0
// The error of a file that must not be readable.
#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "rewire/executable_format/reader.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire::test {

inline Error ReadError(const std::vector<std::byte>& file, const OpenOptions& options = {}) {
  const Result<Module> module = ReadModule(Share(file), options);
  if (module) FAIL("the file was read");
  return module.error();
}

inline std::string ReadMessage(const std::vector<std::byte>& file, const OpenOptions& options = {}) {
  return ReadError(file, options).message();
}

}  // namespace rewire::test
