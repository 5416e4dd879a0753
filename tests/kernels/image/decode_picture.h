// SPDX-License-Identifier: Apache-2.0
//
// Decodes pictures by a program of one kernel.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rewire/tests/vm/test_program.h"

namespace rewire::test {

using Bytes = std::vector<std::uint8_t>;

inline Program Linked(const std::string& text) {
  Result<Program> program = Program::Link(ExecutableOf(text));
  INFO(MessageOf(program));
  REQUIRE(program);
  return *std::move(program);
}

inline Program DecoderOf(const std::string& format) {
  return Linked(R"(.kernel decode = "rewire.image.decode" {pixel_format=")" + format +
                "\"}\n.func main(x: u8[?]) -> u8[?, ?, ?]\n"
                "  %y = invoke_packed decode(%x), outputs=0\n  ret %y\n.end\n");
}

struct Decoded {
  std::vector<std::int64_t> shape;
  Bytes pixels;
};

inline Result<Value> TryDecode(VirtualMachine& vm, Bytes file) {
  const std::int64_t size = std::ssize(file);
  file.push_back(0);
  const Value x(*Tensor::CopyOf(TensorView(file.data(), DTypeOf<std::uint8_t>(), Array<std::int64_t>{size})));
  return vm.TryInvoke("main", {&x, 1});
}

inline Decoded Decode(VirtualMachine& vm, const Bytes& file) {
  const Result<Value> result = TryDecode(vm, file);
  INFO(MessageOf(result));
  REQUIRE(result);
  const Tensor tensor = result->tensor();
  const auto* data = static_cast<const std::uint8_t*>(tensor.view().data());
  return {{tensor.shape().begin(), tensor.shape().end()}, Bytes(data, data + tensor.view().bytes())};
}

}  // namespace rewire::test
