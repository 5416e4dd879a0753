// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/vm/c_api/model.h"

#include <catch2/catch.hpp>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/writer.h"

namespace rewire::test {

const std::vector<std::byte>& ModelBytes() {
  static const std::vector<std::byte> kBytes = [] {
    const Result<Module> module = Assemble(R"(
      .param w: f32[2]
      .kernel add = "host.add"
      .kernel fail = "host.fail"
      .func main(x: f32[2]) -> y: f32[2]
        %w = load_const w
        %s = alloc_storage _, alignment=64, f32[2], cpu
        %y = alloc_tensor %s, _, f32[2]
        invoke_packed add(%x, %w, %y), outputs=1
        ret %y
      .end
      .func swap(pair: (f32[2], integer)) -> (number: integer, vector: f32[2])
        %vector = get_field %pair, index=0
        %number = get_field %pair, index=1
        %swapped = alloc_adt tag=0 (%number, %vector)
        ret %swapped
      .end
      .func forever() -> value
      again:
        goto again
      .end
      .func fail() -> value
        %r = invoke_packed fail(), outputs=0
        ret %r
      .end
      .func batch(b: f32[N, ?]) -> b: f32[N, ?]
        ret %b
      .end)");
    if (!module) FAIL(module.error().message());
    Result<std::vector<std::byte>> file = SerializeModule(*module);
    if (!file) FAIL(file.error().message());
    return *std::move(file);
  }();
  return kBytes;
}

}  // namespace rewire::test
