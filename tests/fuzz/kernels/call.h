// SPDX-License-Identifier: Apache-2.0
// Describes one call of a kernel that the fuzz drill makes up. The description can be changed, repeated and
// printed. It holds no tensor memory; memory.h makes that when the call is run.
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rewire::test {

// The kind of an argument's elements.
enum class Fill { kSmall, kOrdinary, kSpecial, kBytes, kZero };

struct Argument {
  bool missing = false;   // None
  bool sequence = false;  // an ADT of `elements` tensors like this one
  int elements = 0;
  DLDataType dtype{kDLFloat, 32, 1};
  std::vector<std::int64_t> shape;
  Fill fill = Fill::kSmall;
  std::vector<std::int64_t> values;  // of integers and floats, in turn, in place of the fill
  std::uint64_t seed = 0;
  std::uint64_t byte_offset = 0;
  int layout = 0;          // 0 contiguous; 1 gaps between elements; 2 backwards; 3 one element repeated
  bool null_data = false;  // of a tensor without elements
  int alias = -1;          // lies in the memory of this argument,
  std::uint64_t alias_offset = 0;  // so many bytes behind its beginning, as far as there is room
};

using AttributeValue = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                    std::vector<double>, std::monostate>;

struct Call {
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  std::vector<Argument> arguments;
};

// The product of the dimensions, or -1 when it is over `most`; 0 when one is 0.
std::int64_t Elements(const std::vector<std::int64_t>& shape, std::int64_t most);
std::int64_t ElementBytes(DLDataType dtype);
std::string Describe(const Call& call);

// A source of numbers that gives the same ones for the same seed, on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }
  // 0 to count - 1.
  std::int64_t Below(std::int64_t count) {
    return static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(count));
  }
  bool OneIn(std::int64_t count) { return Below(count) == 0; }
  template <typename T>
  const T& Of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace rewire::test
