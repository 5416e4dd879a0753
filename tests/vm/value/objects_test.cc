// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/value/objects.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <string>

#include "rewire/tests/support/in_child.h"

namespace rewire::test {
namespace {

TEST_CASE("a register is read as the kind that it holds") {
  int object = 0;
  for (const std::int32_t kind : {kTensorKind, kAdtKind, kClosureKind, kStorageKind}) {
    CHECK(static_cast<void*>(ObjectOf(MakeAny(kind, &object))) == &object);
  }
  CHECK(static_cast<void*>(TensorOf(MakeAny(kTensorKind, &object))) == &object);
  CHECK(static_cast<void*>(TupleOf(MakeAny(kAdtKind, &object))) == &object);
  CHECK(static_cast<void*>(TupleOf(MakeAny(kClosureKind, &object))) == &object);
  CHECK(static_cast<void*>(StorageOf(MakeAny(kStorageKind, &object))) == &object);
}

#if !defined(NDEBUG) || defined(REWIRE_ASSERTIONS)
TEST_CASE("a register that is read as another kind is an assertion that says which it holds") {
  int object = 0;
  const auto says = [](const std::string& text, auto body) {
    const Outcome outcome = InChild(body);
    CHECK(WIFSIGNALED(outcome.status));
    CHECK_THAT(outcome.written, Catch::Contains(text));
  };
  const RewireFFIAny integer = MakeInteger(kInt32Kind, 7);
  const RewireFFIAny tensor = MakeAny(kTensorKind, &object);
  const RewireFFIAny closure = MakeAny(kClosureKind, &object);
  says("a value of kind -1 read as an object", [&] { static_cast<void>(ObjectOf(integer)); });
  says("a value of kind -1 read as a tensor", [&] { static_cast<void>(TensorOf(integer)); });
  says("read as a tensor", [&] { static_cast<void>(TensorOf(closure)); });
  says("read as a tuple", [&] { static_cast<void>(TupleOf(tensor)); });
  says("read as a storage", [&] { static_cast<void>(StorageOf(tensor)); });
}
#endif

}  // namespace
}  // namespace rewire::test
