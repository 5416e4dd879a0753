// SPDX-License-Identifier: Apache-2.0
// Products and convolutions by packed weights against sums in double precision.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "rewire/kernels/cpu/product/panels/panels.h"
#include "rewire/kernels/cpu/support/half.h"
#include "rewire/tests/kernels/close.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/product/channels_last.h"
#include "rewire/tests/kernels/targets.h"

namespace rewire::test {
namespace {

using kernel::cpu::Activation;
using kernel::cpu::ChooseHalfPanelKernel;
using kernel::cpu::ChoosePanelKernel;
using kernel::cpu::Float16;
using kernel::cpu::kPanelWidth;
using kernel::cpu::PackedColumns;
using kernel::cpu::PanelKernel;
using kernel::cpu::PanelTile;
using kernel::cpu::WidthOfPanel;

float Numbered(std::size_t i, std::size_t modulus) {
  return static_cast<float>(static_cast<int>(i * 7 % modulus) - static_cast<int>(modulus / 2));
}

// A tile of `rows` rows in two segments, whose sums are whole numbers. T: what panels hold.
template <typename T>
void CheckTile(const PanelKernel& panel_kernel, int rows, std::int64_t depth, std::int64_t columns,
               bool finish, bool backward) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<float> x(at(2 * rows * depth));
  std::vector<T> panels(at(2 * depth * PackedColumns(columns)));
  std::vector<float> bias(at(columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = Numbered(i, 13);
  for (std::size_t i = 0; i < panels.size(); ++i) panels[i] = static_cast<T>(Numbered(i, 11));
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = Numbered(i, 5);
  std::vector<const float*> pointers;
  for (std::int64_t i = 0; i < 2 * rows; ++i) pointers.push_back(x.data() + i * depth);
  const std::int64_t step = columns + 3;
  std::vector<float> out(at(rows * step), -77.0F), addend(at(rows * step));
  for (std::size_t i = 0; i < addend.size(); ++i) addend[i] = Numbered(i, 7);
  const auto* const first_panel = reinterpret_cast<const float*>(panels.data());
  PanelTile tile{pointers.data(), rows,    2,          depth, first_panel,  columns,
                 nullptr,         nullptr, out.data(), step,  Activation{}, backward};
  if (finish) {
    tile.bias = bias.data();
    tile.addend = addend.data();
    tile.activation = {Activation::kRelu, 0, 0, 2, -3, true};
  }
  // Two whole panels, or nearly, go by at once if there are not too many rows.
  if (columns <= 2 * kPanelWidth && !backward && rows <= kernel::cpu::MakeWide(panel_kernel, &tile))
    CHECK(tile.wide == (columns > 48 && panel_kernel.wide_rows > 0));
  else
    tile.wide = false;
  panel_kernel.run(tile);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < step; ++j) {
      double sum = finish && j < columns ? bias[at(j)] + addend[at(i * step + j)] : 0;
      const std::int64_t width = WidthOfPanel(j / kPanelWidth, columns);
      const std::int64_t of_panel = 2 * depth * (j / kPanelWidth * kPanelWidth) + j % kPanelWidth;
      for (std::int64_t k = 0; j < columns && k < 2 * depth; ++k)
        sum += pointers[at(k / depth * rows + i)][k % depth] *
               static_cast<float>(panels[at(of_panel + k * width)]);
      if (finish) sum = std::max(sum, 0.0) * 2 - 3;
      const double expected = j < columns ? sum : -77;
      INFO(rows << " rows, depth " << depth << ", column " << j << " of " << columns << ", row " << i);
      REQUIRE(out[at(i * step + j)] == expected);
    }
  }
}

// All tiles of the kernel of an instruction set.
template <typename T>
void CheckTiles(const PanelKernel& kernel) {
  for (int rows = 1; rows <= kernel.rows; ++rows) {
    for (std::int64_t depth : {1, 4, 7}) {
      for (std::int64_t columns : {1, 5, 16, 17, 24, 32, 33, 49, 60, 64, 96, 117}) {
        CheckTile<T>(kernel, rows, depth, columns, false, false);
        CheckTile<T>(kernel, rows, depth, columns, true, false);
        CheckTile<T>(kernel, rows, depth, columns, true, true);
      }
    }
  }
}

HostTensor PackedFloats(HostTensor& w, std::int64_t columns, std::int64_t depth, const char* order) {
  HostTensor packed = HostTensor::Empty<float>({PackedColumns(columns), depth});
  REQUIRE(Run("rewire.packed.pack", {&w, &packed}, {{"order", order}}) == "");
  return packed;
}

// By definition, x [N, H, W, C], w [M, C / groups, KH, KW].
std::vector<double> NaiveConv(const LastChannels& c, const HostTensor& x, const HostTensor& w,
                              const HostTensor& bias, const Shape& out, bool depthwise) {
  const auto xs = x.values<float>(), ws = w.values<float>(), bs = bias.values<float>();
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<double> result;
  for (std::int64_t n = 0; n < out[0]; ++n) {
    for (std::int64_t oy = 0; oy < out[1]; ++oy) {
      for (std::int64_t ox = 0; ox < out[2]; ++ox) {
        for (std::int64_t m = 0; m < c.channels; ++m) {
          double sum = bs[at(m)];
          const std::int64_t depth = depthwise ? 1 : c.x[3];
          for (std::int64_t k = 0; k < depth * c.kernel[0] * c.kernel[1]; ++k) {
            const std::int64_t kx = k % c.kernel[1], ky = k / c.kernel[1] % c.kernel[0];
            const std::int64_t channel = k / (c.kernel[0] * c.kernel[1]);
            const std::int64_t y = oy * c.strides[0] - c.pads[0] + ky * c.dilations[0];
            const std::int64_t column = ox * c.strides[1] - c.pads[1] + kx * c.dilations[1];
            if (y < 0 || y >= c.x[1] || column < 0 || column >= c.x[2]) continue;
            const std::int64_t from =
                ((n * c.x[1] + y) * c.x[2] + column) * c.x[3] + (depthwise ? m : channel);
            sum += static_cast<double>(xs[at(from)]) * ws[at(m * depth * c.kernel[0] * c.kernel[1] + k)];
          }
          result.push_back(sum);
        }
      }
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the panel kernel of every instruction set multiplies whole numbers exactly") {
  ForEachTarget([] {
    CheckTiles<float>(ChoosePanelKernel());
    CheckTiles<Float16>(ChooseHalfPanelKernel());
  });
}

TEST_CASE("rows by packed weights of f16 give what the same weights give as floats") {
  // Whole numbers, so that sums are exact in any order.
  for (const std::int64_t rows : {1, 2, 7, 25, 60, 530}) {
    for (const std::int64_t depth : {0, 1, 17, 256, 300, 513}) {
      for (const std::int64_t columns : {1, 16, 33, 100}) {
        HostTensor x = HostTensor::Empty<float>({rows, depth}),
                   w = HostTensor::Empty<float>({depth, columns});
        HostTensor bias = HostTensor::Empty<float>({columns}),
                   addend = HostTensor::Empty<float>({rows, columns});
        for (HostTensor* tensor : {&x, &w, &bias, &addend}) {
          std::size_t i = 0;
          for (float& element : tensor->values<float>()) element = Numbered(i++, 9);
        }
        HostTensor halves = HostTensor::Empty<Float16>({PackedColumns(columns), depth});
        REQUIRE(Run("rewire.packed.pack", {&w, &halves}, {}) == "");
        HostTensor floats = PackedFloats(w, columns, depth, "IO");
        const AttributeList attributes = {{"columns", columns}, {"activation", "leaky_relu"}, {"alpha", 0.5}};
        HostTensor expected = HostTensor::Empty<float>({rows, columns}), out = expected;
        REQUIRE(Run("rewire.packed.matmul", {&x, &floats, &bias, &addend, &expected}, attributes) == "");
        REQUIRE(Run("rewire.packed.matmul", {&x, &halves, &bias, &addend, &out}, attributes) == "");
        INFO(rows << " rows, depth " << depth << ", " << columns << " columns");
        REQUIRE(std::ranges::equal(out.values<float>(), expected.values<float>()));
      }
    }
  }
}

TEST_CASE("rows by packed weights, in either order, of any size") {
  const Shape sizes[] = {{1, 1, 1},
                         {3, 5, 40},
                         {4, 9, 100},
                         {20, 17, 133},
                         {70, 64, 16},
                         // Two panels at once, and a rest.
                         {9, 300, 64},
                         {13, 257, 100},
                         {25, 513, 49},
                         {40, 256, 65}};
  for (const Shape& size : sizes) {
    const std::int64_t m = size[0], k = size[1], n = size[2];
    HostTensor x = HostTensor::Random({2, m, k}, 1);
    HostTensor bias = HostTensor::Random({n}, 3);
    HostTensor addend = HostTensor::Random({2, m, n}, 4);
    for (const char* order : {"IO", "OI"}) {
      const bool outputs_first = order[0] == 'O';
      HostTensor w = HostTensor::Random(outputs_first ? Shape{n, k} : Shape{k, n}, 2);
      HostTensor packed = PackedFloats(w, n, k, order);
      std::vector<double> expected;
      const auto xs = x.values<float>(), ws = w.values<float>();
      for (std::int64_t i = 0; i < 2 * m * n; ++i) {
        double sum = static_cast<double>(bias.elements<float>()[i % n]) + addend.elements<float>()[i];
        for (std::int64_t l = 0; l < k; ++l) {
          sum += static_cast<double>(xs[static_cast<std::size_t>(i / n * k + l)]) *
                 ws[static_cast<std::size_t>(outputs_first ? i % n * k + l : l * n + i % n)];
        }
        expected.push_back(std::max(-0.5, sum));
      }
      for (int i = 0; i < 2; ++i) {  // the panels forward and backward
        HostTensor out = HostTensor::Empty<float>({2, m, n});
        REQUIRE(Run("rewire.packed.matmul", {&x, &packed, &bias, &addend, &out},
                    {{"columns", n}, {"activation", "clip"}, {"alpha", -0.5}, {"beta", 1e30}}) == "");
        CheckClose(out, expected);
      }
    }
  }
}

TEST_CASE("the activations of packed products are the kernels of their names") {
  HostTensor x = HostTensor::Random({7, 9}, 1);
  HostTensor w = HostTensor::Random({9, 21}, 2);
  HostTensor packed = PackedFloats(w, 21, 9, "IO");
  HostTensor plain = HostTensor::Empty<float>({7, 21});
  REQUIRE(Run("rewire.packed.matmul", {&x, &packed, &plain}, {{"columns", std::int64_t{21}}}) == "");
  for (const char* name : {"relu", "sigmoid", "tanh", "hard_swish", "gelu", "leaky_relu", "swish"}) {
    INFO(name);
    AttributeList of_kernel;
    AttributeList of_product = {{"columns", std::int64_t{21}}, {"activation", name}};
    if (std::string(name) == "leaky_relu") {
      of_kernel.emplace_back("alpha", 0.3);
      of_product.emplace_back("alpha", 0.3);
    }
    HostTensor expected = HostTensor::Empty<float>({7, 21});
    HostTensor out = HostTensor::Empty<float>({7, 21});
    REQUIRE(Run(std::string("rewire.") + name, {&plain, &expected}, of_kernel) == "");
    REQUIRE(Run("rewire.packed.matmul", {&x, &packed, &out}, of_product) == "");
    const auto values = expected.values<float>();
    CheckClose(out, std::vector<double>(values.begin(), values.end()));
  }
}

TEST_CASE("packed convolutions meet borders, strides and dilations") {
  const LastChannels cases[] = {
      {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 5, 7, 3}, 18, {1, 1}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
      {{2, 9, 21, 5}, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 9, 21, 4}, 20, {3, 5}, {2, 2}, {1, 1}, {1, 2, 1, 2}},
      {{1, 12, 13, 2}, 8, {3, 2}, {1, 3}, {2, 3}, {0, 1, 4, 0}},
      {{1, 3, 4, 6}, 6, {5, 5}, {1, 1}, {1, 1}, {2, 2, 2, 2}},
      {{1, 30, 1, 6}, 40, {5, 1}, {1, 1}, {1, 1}, {2, 0, 2, 0}},
      {{1, 15, 40, 3}, 33, {7, 7}, {2, 2}, {1, 1}, {2, 2, 3, 3}},
      {{1, 6, 11, 17}, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},   // whose borders are not copied: channels
      {{1, 8, 30, 12}, 8, {3, 5}, {1, 2}, {1, 1}, {1, 1, 1, 1}},   // and memory
      {{1, 2, 3, 2}, 5, {2, 2}, {1, 1}, {1, 1}, {0, 5, 0, 5}},     // windows without any of the image
      {{1, 1, 301, 2}, 40, {1, 9}, {1, 2}, {1, 1}, {0, 4, 0, 4}},  // a line, which the threads share
      // Two panels at once, and a rest.
      {{2, 7, 15, 30}, 100, {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{1, 5, 9, 65}, 51, {2, 2}, {2, 1}, {1, 1}, {0, 0, 1, 1}},
  };
  for (const LastChannels& c : cases) {
    const std::vector<std::int64_t>& kernel = c.kernel;
    const AttributeList attributes = {{"channels", c.channels},
                                      {"kernel_shape", kernel},
                                      {"strides", c.strides},
                                      {"dilations", c.dilations},
                                      {"pads", c.pads}};
    INFO("x of " << c.x[1] << " by " << c.x[2] << ", kernel " << kernel[0] << " by " << kernel[1]);
    HostTensor x = HostTensor::Random(c.x, 1);
    HostTensor w = HostTensor::Random({c.channels, c.x[3], kernel[0], kernel[1]}, 2);
    HostTensor bias = HostTensor::Random({c.channels}, 3);
    HostTensor packed = PackedFloats(w, c.channels, c.x[3] * kernel[0] * kernel[1], "OI");
    HostTensor out = HostTensor::Empty<float>(OutShape(c));
    REQUIRE(Run("rewire.packed.conv", {&x, &packed, &bias, &out}, attributes) == "");
    CheckClose(out, NaiveConv(c, x, w, bias, out.shape(), false));

    LastChannels own = c;
    own.channels = c.x[3];
    HostTensor each = HostTensor::Random({own.channels, 1, kernel[0], kernel[1]}, 4);
    HostTensor taps = HostTensor::Empty<float>({kernel[0] * kernel[1], own.channels});
    for (std::int64_t i = 0; i < each.size(); ++i) {
      const std::int64_t count = kernel[0] * kernel[1];
      taps.elements<float>()[i % count * own.channels + i / count] = each.elements<float>()[i];
    }
    HostTensor each_bias = HostTensor::Random({own.channels}, 5);
    HostTensor each_out = HostTensor::Empty<float>(OutShape(own));
    AttributeList of_each = attributes;
    of_each[0].second = own.channels;
    REQUIRE(Run("rewire.packed.depthwise", {&x, &taps, &each_bias, &each_out}, of_each) == "");
    CheckClose(each_out, NaiveConv(own, x, each, each_bias, each_out.shape(), true));
  }
}

TEST_CASE("recurrent layers take packed weights, or inputs that are multiplied already") {
  // The larger ones are worth several threads.
  struct Size {
    std::int64_t batch, hidden;
  };
  for (const auto [batch, hidden] : {Size{3, 16}, Size{33, 64}, Size{2, 24}}) {
    const std::int64_t steps = 5, inputs = 7;
    struct Kind {
      const char* name;
      int gates;
      std::optional<bool> linear;  // the reset lies behind the product
      bool peepholes = false;
    };
    for (const auto& [name, gates, linear, peepholes] :
         {Kind{"lstm", 4, {}}, {"lstm", 4, {}, true}, {"gru", 3, false}, {"gru", 3, true}, {"rnn", 1, {}}}) {
      if (linear == false && hidden % 16 != 0) continue;
      INFO(name << " " << batch << " " << hidden << " " << linear.value_or(false) << " " << peepholes);
      const std::int64_t width = gates * hidden;
      HostTensor x = HostTensor::Random({steps, batch, inputs}, 1);
      HostTensor w = HostTensor::Random({1, width, inputs}, 2);
      HostTensor r = HostTensor::Random({1, width, hidden}, 3);
      HostTensor b = HostTensor::Random({1, 2 * width}, 4);
      HostTensor p = HostTensor::Random({1, 3 * hidden}, 5);
      std::vector<std::int32_t> each(static_cast<std::size_t>(batch), 5);
      each[1] = 3;
      HostTensor lengths = HostTensor::Of<std::int32_t>({batch}, each);
      HostTensor w_matrix = HostTensor::Of<float>({width, inputs}, w.values<float>());
      HostTensor r_matrix = HostTensor::Of<float>({width, hidden}, r.values<float>());
      HostTensor w_packed = PackedFloats(w_matrix, width, inputs, "OI");
      HostTensor r_packed = PackedFloats(r_matrix, width, hidden, "OI");
      HostTensor multiplied = HostTensor::Empty<float>({steps, batch, width});
      std::vector<float> biases = b.values<float>();
      biases.resize(static_cast<std::size_t>(width));
      HostTensor w_bias = HostTensor::Of<float>({width}, biases);
      REQUIRE(Run("rewire.packed.matmul", {&x, &w_packed, &w_bias, &multiplied}, {{"columns", width}}) == "");
      for (const char* direction : {"forward", "reverse"}) {
        std::vector<std::vector<float>> results;
        const std::vector<std::vector<HostTensor*>> weights = {
            {&x, &w, &r}, {&x, &w_packed, &r_packed}, {&multiplied, nullptr, &r_packed}};
        for (std::vector<HostTensor*> tensors : weights) {
          const bool packed = tensors[2] == &r_packed;
          HostTensor y = HostTensor::Empty<float>({steps, 1, batch, hidden});
          HostTensor y_h = HostTensor::Empty<float>({1, batch, hidden});
          HostTensor y_c = HostTensor::Empty<float>({1, batch, hidden});
          tensors.insert(tensors.end(), {&b, &lengths});
          if (peepholes) tensors.insert(tensors.end(), {nullptr, nullptr, &p});
          tensors.insert(tensors.end(), {&y, &y_h});
          if (gates == 4) tensors.push_back(&y_c);
          AttributeList attributes = {{"packed", std::int64_t{packed}}, {"direction", direction}};
          if (linear) attributes.emplace_back("linear_before_reset", std::int64_t{*linear});
          REQUIRE(Run(std::string("rewire.") + name, tensors, attributes) == "");
          std::vector<float> all = y.values<float>();
          for (const HostTensor* last : {&y_h, &y_c}) {
            if (last == &y_c && gates != 4) continue;
            const std::vector<float> values = last->values<float>();
            all.insert(all.end(), values.begin(), values.end());
          }
          results.push_back(all);
        }
        const std::vector<double> expected(results[0].begin(), results[0].end());
        const auto count = static_cast<std::int64_t>(expected.size());
        CheckClose(HostTensor::Of<float>({count}, results[1]), expected);
        CheckClose(HostTensor::Of<float>({count}, results[2]), expected);
      }
    }
  }
}

TEST_CASE("two directions of a recurrent layer are packed one behind the other") {
  // The columns of three gates of 24 units do not fill their last panel.
  const std::int64_t steps = 4, batch = 2, inputs = 5, hidden = 24, width = 3 * hidden;
  HostTensor x = HostTensor::Random({steps, batch, inputs}, 1), b = HostTensor::Random({2, 2 * width}, 4);
  HostTensor w = HostTensor::Random({2, width, inputs}, 2), r = HostTensor::Random({2, width, hidden}, 3);
  const auto packed = [&](const HostTensor& weights, std::int64_t depth) {
    std::vector<float> stacked;
    const std::vector<float> all = weights.values<float>();
    for (const std::ptrdiff_t d : {0, 1}) {
      const auto begin = all.begin() + d * width * depth;
      HostTensor one = HostTensor::Of<float>({width, depth}, {begin, begin + width * depth});
      const std::vector<float> values = PackedFloats(one, width, depth, "OI").values<float>();
      stacked.insert(stacked.end(), values.begin(), values.end());
    }
    return HostTensor::Of<float>({static_cast<std::int64_t>(stacked.size()) / depth, depth}, stacked);
  };
  HostTensor w_packed = packed(w, inputs), r_packed = packed(r, hidden);
  std::vector<std::vector<float>> results;
  for (const bool is_packed : {false, true}) {
    HostTensor y = HostTensor::Empty<float>({steps, 2, batch, hidden});
    HostTensor y_h = HostTensor::Empty<float>({2, batch, hidden});
    REQUIRE(Run("rewire.gru", {&x, is_packed ? &w_packed : &w, is_packed ? &r_packed : &r, &b, &y, &y_h},
                {{"packed", std::int64_t{is_packed}},
                 {"hidden_size", hidden},
                 {"direction", "bidirectional"},
                 {"linear_before_reset", std::int64_t{1}}}) == "");
    results.push_back(y.values<float>());
    const std::vector<float> last = y_h.values<float>();
    results.back().insert(results.back().end(), last.begin(), last.end());
  }
  CheckClose(HostTensor::Of<float>({static_cast<std::int64_t>(results[1].size())}, results[1]),
             {results[0].begin(), results[0].end()});
}

TEST_CASE("pools with the channels last are those with the channels first") {
  using Ints = std::vector<std::int64_t>;
  const bool volume = GENERATE(false, true);
  const Ints to_last = volume ? Ints{0, 2, 3, 4, 1} : Ints{0, 2, 3, 1};
  const Shape out_last = volume ? Shape{2, 4, 5, 7, 5} : Shape{2, 5, 7, 5};
  HostTensor first = HostTensor::Random(volume ? Shape{2, 5, 4, 9, 7} : Shape{2, 5, 9, 7}, 1);
  HostTensor last = HostTensor::Empty<float>(volume ? Shape{2, 4, 9, 7, 5} : Shape{2, 9, 7, 5});
  REQUIRE(Run("rewire.transpose", {&first, &last}, {{"perm", to_last}}) == "");
  AttributeList attributes = {{"kernel_shape", volume ? Ints{2, 3, 2} : Ints{3, 2}},
                              {"strides", volume ? Ints{1, 2, 1} : Ints{2, 1}},
                              {"pads", volume ? Ints{1, 1, 1, 0, 1, 0} : Ints{1, 1, 1, 0}}};
  for (const char* name : {"rewire.max_pool", "rewire.avg_pool"}) {
    INFO(name);
    HostTensor expected = HostTensor::Empty<float>(volume ? Shape{2, 5, 4, 5, 7} : Shape{2, 5, 5, 7});
    HostTensor expected_last = HostTensor::Empty<float>(out_last);
    HostTensor given = HostTensor::Empty<float>(out_last);
    REQUIRE(Run(name, {&first, &expected}, attributes) == "");
    AttributeList of_last = attributes;
    of_last.emplace_back("layout", "NHWC");
    REQUIRE(Run(name, {&last, &given}, of_last) == "");
    REQUIRE(Run("rewire.transpose", {&expected, &expected_last}, {{"perm", to_last}}) == "");
    const auto values = expected_last.values<float>();
    CheckClose(given, std::vector<double>(values.begin(), values.end()));
  }
}

TEST_CASE("packed kernels refuse what does not fit") {
  HostTensor x = HostTensor::Random({2, 5}, 1);
  HostTensor w = HostTensor::Random({5, 7}, 2);
  HostTensor packed = PackedFloats(w, 7, 5, "IO");
  HostTensor out = HostTensor::Empty<float>({2, 7});
  HostTensor narrow = HostTensor::Empty<float>({2, 6});
  const AttributeList columns = {{"columns", std::int64_t{7}}};
  CHECK(Run("rewire.packed.matmul", {&x, &packed, &narrow}, columns) ==
        "ValueError: rewire.packed.matmul: out has shape [2, 6], expected [2, 7]");
  CHECK(Run("rewire.packed.matmul", {&x, &w, &out}, columns) ==
        "ValueError: rewire.packed.matmul: w has shape [5, 7], expected [16, 5]");
  CHECK(Run("rewire.packed.matmul", {&x, &packed, &out}).find("attribute 'columns' is missing") !=
        std::string::npos);
  CHECK(Run("rewire.packed.pack", {&w, &packed}, {{"order", "OI"}}) ==
        "ValueError: rewire.packed.pack: out has shape [16, 5], expected [16, 7]");
  HostTensor image = HostTensor::Random({1, 4, 4, 3}, 1);
  HostTensor taps = HostTensor::Random({9, 4}, 1);
  HostTensor result = HostTensor::Empty<float>({1, 2, 2, 4});
  const std::vector<std::int64_t> three = {3, 3}, huge = {20, 20};
  CHECK(Run("rewire.packed.depthwise", {&image, &taps, &result},
            {{"channels", std::int64_t{4}}, {"kernel_shape", three}}) ==
        "ValueError: rewire.packed.depthwise: x has shape [1, 4, 4, 3], expected 4 channels");
  CHECK(Run("rewire.packed.conv", {&image, &taps, &result},
            {{"channels", std::int64_t{4}}, {"kernel_shape", huge}})
            .find("expected at most 256 positions") == std::string::npos);
  // A row of positions counts once where the window never leaves the image.
  const std::vector<std::int64_t> pads = {1, 1, 1, 1};
  for (const char* name : {"rewire.packed.conv", "rewire.packed.depthwise"}) {
    CHECK(Run(name, {&image, &taps, &result},
              {{"channels", std::int64_t{4}}, {"kernel_shape", huge}, {"pads", pads}})
              .find("expected at most 256 positions") != std::string::npos);
  }
  CHECK(Run("rewire.packed.depthwise", {&image, &taps, &result},
            {{"channels", std::int64_t{4}}, {"kernel_shape", huge}})
            .find("expected at most 256 positions") != std::string::npos);
  CHECK(Run("rewire.packed.conv", {&image, &taps, &result},
            {{"channels", std::int64_t{4}}, {"kernel_shape", std::vector<std::int64_t>{257, 1}}})
            .find("expected at most 256 rows") != std::string::npos);
}

TEST_CASE("a long window over a signal") {
  // 300 positions, which lie side by side; and 200 with a border.
  HostTensor x = HostTensor::Random({1, 1000, 1}, 1);
  for (const std::int64_t size : {300, 200}) {
    const std::int64_t pad = size == 200 ? 7 : 0, steps = (1000 + 2 * pad - size) / 10 + 1;
    HostTensor w = HostTensor::Random({5, 1, size}, 2), packed = PackedFloats(w, 5, size, "OI");
    HostTensor out = HostTensor::Empty<float>({1, steps, 5});
    REQUIRE(Run("rewire.packed.conv", {&x, &packed, &out},
                {{"channels", std::int64_t{5}},
                 {"kernel_shape", std::vector<std::int64_t>{size}},
                 {"strides", std::vector<std::int64_t>{10}},
                 {"pads", std::vector<std::int64_t>{pad, pad}}}) == "");
    std::vector<double> expected;
    for (std::int64_t i = 0; i < steps * 5; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < size; ++k) {
        const std::int64_t at = i / 5 * 10 - pad + k;
        if (at >= 0 && at < 1000)
          sum += double{x.elements<float>()[at]} * w.elements<float>()[i % 5 * size + k];
      }
      expected.push_back(sum);
    }
    CheckClose(out, expected);
  }
}

}  // namespace rewire::test
