// SPDX-License-Identifier: Apache-2.0
// Packed convolutions whose windows have rows and planes outside the image, which are left out.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/vm/thread_pool.h"

namespace rewire::test {
namespace {

using kernel::cpu::BFloat16;

using Ints = std::vector<std::int64_t>;

// Small whole numbers: their sums are exact in any order, and they are exact in bf16.
HostTensor Whole(const Shape& shape, std::int64_t step) {
  HostTensor tensor = HostTensor::Empty<float>(shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.elements<float>()[i] = static_cast<float>((i * step + i / 5) % 7 - 3);
  return tensor;
}

struct Case {
  Ints image;  // spatial
  Ints window, pads;
  Ints strides, dilations;
};

Shape With(std::int64_t first, std::int64_t second, const Ints& spatial) {
  Shape shape = {first, second};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}
Shape WithLast(std::int64_t first, const Ints& spatial, std::int64_t last) {
  Shape shape = {first};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  shape.push_back(last);
  return shape;
}

// Against the convolution by weights as the model has them.
void Check(const Case& c, std::int64_t in, std::int64_t channels) {
  CAPTURE(c.image, c.window, c.pads, c.strides, c.dilations, in, channels);
  const std::size_t rank = c.image.size();
  Ints result, to_last = {0};
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t reach = (c.window[i] - 1) * c.dilations[i] + 1;
    result.push_back((c.image[i] + c.pads[i] + c.pads[rank + i] - reach) / c.strides[i] + 1);
    to_last.push_back(static_cast<std::int64_t>(i) + 2);
    taps *= c.window[i];
  }
  to_last.push_back(1);
  HostTensor x = Whole(With(2, in, c.image), 3), w = Whole(With(channels, in, c.window), 2);
  HostTensor bias = Whole({channels}, 1), x_last = HostTensor::Empty<float>(WithLast(2, c.image, in));
  HostTensor expected = HostTensor::Empty<float>(With(2, channels, result));
  HostTensor expected_last = HostTensor::Empty<float>(WithLast(2, result, channels));
  AttributeList attributes = {{"strides", c.strides}, {"dilations", c.dilations}, {"pads", c.pads}};
  REQUIRE(Run("rewire.conv", {&x, &w, &bias, &expected}, attributes) == "");
  REQUIRE(Run("rewire.transpose", {&x, &x_last}, {{"perm", to_last}}) == "");
  REQUIRE(Run("rewire.transpose", {&expected, &expected_last}, {{"perm", to_last}}) == "");
  attributes.emplace_back("channels", channels);
  attributes.emplace_back("kernel_shape", c.window);
  const std::int64_t columns = (channels + 15) / 16 * 16;
  HostTensor floats = HostTensor::Empty<float>({columns, in * taps});
  HostTensor pairs = HostTensor::Empty<BFloat16>({columns, (in + 1) / 2 * 2 * taps});
  for (HostTensor* packed : {&floats, &pairs}) {
    REQUIRE(Run("rewire.packed.pack", {&w, packed}, {{"order", "OI"}}) == "");
    for (const std::int32_t threads : {1, 2}) {
      CAPTURE(threads, packed == &pairs);
      const std::shared_ptr<ThreadPool> pool = ThreadPool::Make(threads);
      HostTensor out = HostTensor::Empty<float>(WithLast(2, result, channels));
      UseThreads(pool.get());
      const std::string error = Run("rewire.packed.conv", {&x_last, packed, &bias, &out}, attributes);
      UseThreads(nullptr);
      REQUIRE(error == "");
      REQUIRE(out.values<float>() == expected_last.values<float>());
    }
  }
}

TEST_CASE("packed convolutions leave out rows and planes outside the image") {
  const Case cases[] = {
      {{1, 4, 4}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, {1, 1, 1}},  // one plane of three
      {{2, 5, 9}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {1, 1, 1}, {1, 1, 1}},  // two of them
      {{2, 7, 6}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {2, 2, 2}, {1, 1, 1}},
      {{4, 3, 20}, {5, 3, 2}, {2, 1, 0, 4, 1, 1}, {1, 1, 1}, {1, 1, 1}},
      {{3, 4, 5}, {3, 2, 2}, {4, 1, 1, 5, 3, 1}, {1, 1, 1}, {2, 2, 1}},  // whole windows outside
      {{2, 3, 4}, {2, 3, 3}, {0, 5, 0, 0, 4, 2}, {1, 2, 1}, {1, 3, 2}},
      {{3, 6}, {5, 3}, {2, 1, 2, 1}, {1, 1}, {1, 1}},  // a window higher than the image
      {{7, 7}, {3, 3}, {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {{2, 30}, {4, 4}, {6, 0, 7, 3}, {3, 1}, {1, 1}},
      {{9}, {5}, {6, 4}, {2}, {1}},
      {{9}, {3}, {9, 9}, {1}, {4}},
  };
  for (const Case& c : cases) {
    Check(c, 3, 5);    // rows that are copied, and half a panel
    Check(c, 20, 40);  // more than a panel
    Check(c, 17, 33);
  }
}

}  // namespace
}  // namespace rewire::test
