// SPDX-License-Identifier: Apache-2.0
//
// Drawn calls of the kernels that C source calls in plain C.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/executable.h"
#include "rewire/vm/tensor.h"

namespace rewire::test {

using Dims = std::vector<std::int64_t>;

// A call of a kernel: its inputs, the types of its outputs, and how far results of floats may differ.
struct Case {
  std::string attributes;
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;
  double bound = 0;
  // A constant behind the inputs.
  std::optional<std::int64_t> last_integer{};
};

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  int Int(int least, int most) {
    return least + static_cast<int>(engine_() % static_cast<std::uint32_t>(most - least + 1));
  }
  bool Bool() { return Int(0, 1) == 1; }
  Dims Shape(std::size_t least_rank, std::size_t most_rank) {
    Dims dims(static_cast<std::size_t>(Int(static_cast<int>(least_rank), static_cast<int>(most_rank))));
    for (std::int64_t& dim : dims) dim = Int(1, 4);
    return dims;
  }
  // Whole numbers, whose sums are exact in any order; `scale` of them makes others.
  Tensor Floats(const Dims& dims, int least = -4, int most = 4, float scale = 1) {
    return Filled<float>(dims, [&] { return scale * static_cast<float>(Int(least, most)); });
  }
  template <typename T>
  Tensor Integers(const Dims& dims, int least, int most) {
    return Filled<T>(dims, [&] { return static_cast<T>(Int(least, most)); });
  }
  Tensor Truths(const Dims& dims) {
    return Filled<bool>(dims, [&] { return Bool(); });
  }
  template <typename T, typename F>
  Tensor Filled(const Dims& dims, const F& value) {
    Result<Tensor> tensor = Tensor::Make(DTypeOf<T>(), {dims.data(), dims.size()});
    REQUIRE(tensor);
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) count *= dim;
    for (std::int64_t i = 0; i < count; ++i) tensor->data<T>()[i] = value();
    return *tensor;
  }
  // dims with some of them 1, and maybe without the first.
  Dims Narrower(Dims dims) {
    for (std::int64_t& dim : dims) dim = Int(0, 2) == 0 ? 1 : dim;
    if (!dims.empty() && Int(0, 3) == 0) dims.erase(dims.begin());
    return dims;
  }

 private:
  std::mt19937 engine_;
};

// "[2, 3]", "f32[2, 3]" and the type of a tensor.
std::string ShapeOf(const Dims& dims);
std::string Float(const Dims& dims);
std::string TypeOf(const Tensor& tensor);

// The tensor, or one without elements, which is an optional input that is not given.
Tensor Maybe(Random& random, const Tensor& tensor, DLDataType dtype);
// "axis=1", which may count from the end.
std::string AxisOf(Random& random, std::size_t rank, std::int64_t* axis);

// A program whose function main calls the kernel and returns one of its outputs.
std::string ProgramText(const std::string& kernel, const Case& call, std::size_t result);
Executable Assembled(const std::string& text);
Tensor RunInVm(const Executable& executable, const std::vector<Tensor>& inputs);

using Maker = std::function<Case(Random&)>;
// By kernel.
using Makers = std::map<std::string, Maker>;
void AddElementwiseCases(Makers* makers);
void AddProductCases(Makers* makers);
void AddMovementCases(Makers* makers);
void AddStatisticsCases(Makers* makers);
void AddRecurrentCases(Makers* makers);
void AddVisionCases(Makers* makers);
Makers AllMakers();

// Within this of what the C library's functions give.
inline constexpr double kClose = 2e-6;

}  // namespace rewire::test
