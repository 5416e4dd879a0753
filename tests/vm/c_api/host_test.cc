// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/c_api/host.h"

#include <catch2/catch.hpp>

#include "rewire/tests/vm/c_api/model.h"
#include "rewire/tests/vm/parameters/parameter_files.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// The scenarios are C's (host.c): what they print says which check failed.
TEST_CASE("a host in C runs a model, keeps its results and frees everything") {
  CHECK(RunCHostInference(ModelBytes().data(), ModelBytes().size()) == 0);
}

TEST_CASE("a host in C injects allocator, pool, observer, limits and interrupts runs") {
  CHECK(RunCHostServices(ModelBytes().data(), ModelBytes().size()) == 0);
}

TEST_CASE("a host in C gets outputs in its own memory") {
  CHECK(RunCHostOutputs(ModelBytes().data(), ModelBytes().size()) == 0);
}

TEST_CASE("a host in C hands over memory for outputs") {
  CHECK(RunCHostOwnedOutputs(ModelBytes().data(), ModelBytes().size()) == 0);
}

TEST_CASE("a host in C is told which inputs are copies") {
  CHECK(RunCHostInputReports(ModelBytes().data(), ModelBytes().size()) == 0);
}

TEST_CASE("a host in C binds parameters from files, by hand and from programs") {
  const Folder folder;
  const std::string path =
      WriteSafetensorsFile(folder / "p", {{"w", Floats({30, 40})}, {"another", Floats({1})}});
  CHECK(RunCHostParameters(ModelBytes().data(), ModelBytes().size(), path.c_str()) == 0);
}

TEST_CASE("a host in C passes trees and ownership") {
  CHECK(RunCHostTrees(ModelBytes().data(), ModelBytes().size()) == 0);
}

}  // namespace
}  // namespace rewire::test
