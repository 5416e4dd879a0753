// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/executable_format/linked/linked_copy.h"

#include <utility>

extern "C" {
extern const char REWIRE_LINKED_VERSION;
}

namespace rewire::test {

namespace {

template <typename T>
T ValueOrThrow(Result<T> result) {
  if (!result) throw Error(result.error());
  return *std::move(result);
}

const std::uint64_t* Words(const SharedBytes& bytes) {
  return reinterpret_cast<const std::uint64_t*>(bytes.view.data());
}

}  // namespace

const char* LinkedVersion() { return &REWIRE_LINKED_VERSION; }

LinkedCopy::LinkedCopy(const Executable& executable)
    : image_(ValueOrThrow(MakeLinkedImage(executable))),
      tables_(ValueOrThrow(AlignedCopy({image_.tables.data(), image_.tables.size()}))),
      data_(ValueOrThrow(AlignedCopy({image_.data.data(), image_.data.size()}))),
      linked_{LinkedVersion(), Words(tables_), Words(data_)} {}

Executable LinkedCopy::Open() const { return ValueOrThrow(OpenLinked(linked_)); }

}  // namespace rewire::test
