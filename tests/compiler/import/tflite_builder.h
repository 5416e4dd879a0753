// SPDX-License-Identifier: Apache-2.0
//
// Writes small .tflite files in a test, also wrong ones.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rewire::test {

// Numbers of the format (compiler/import/tflite_schema.h and builtins.cc).
inline constexpr std::int8_t kTfliteFloat32 = 0, kTfliteInt32 = 2, kTfliteInt8 = 9, kTfliteResource = 13;

class TfliteBuilder {
 public:
  using Ints = std::vector<std::int32_t>;

  struct Quantized {
    std::vector<float> scales;
    std::vector<std::int64_t> zeros;
    std::int32_t axis = 0;
    std::uint8_t details_type = 0;
  };
  struct TensorSpec {
    std::string name;
    std::int8_t type = kTfliteFloat32;
    Ints shape;
    std::string bytes;
    Quantized quantized;
    std::int32_t buffer = -1;  // otherwise than the one that `bytes` get
    Ints shape_signature;
  };
  // The value of an option by its field; std::int8_t for bytes and enumerations.
  using Option = std::variant<std::int8_t, std::int32_t, float, Ints, std::string>;
  struct OperatorSpec {
    std::int32_t code = 0;
    Ints inputs, outputs;
    std::uint8_t options_type = 0;
    std::vector<std::pair<int, Option>> options = {};
    std::int32_t opcode_index = -1;  // otherwise than the one of `code`
  };
  struct Graph {
    std::vector<TensorSpec> tensors;
    std::vector<OperatorSpec> operators;
    Ints inputs, outputs;

    std::int32_t Add(TensorSpec tensor) {
      tensors.push_back(std::move(tensor));
      return static_cast<std::int32_t>(tensors.size()) - 1;
    }
  };

  // The file of these subgraphs, of which the first one is the model's.
  static std::string Write(const std::vector<Graph>& graphs, std::uint32_t version = 3);

  template <typename T>
  static std::string BytesOf(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
};

}  // namespace rewire::test
