// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements, against index arithmetic, and the shape functions beside them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "rewire/tests/kernels/kernel_call.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;

HostTensor ShapeTensor(const Ints& shape) { return HostTensor::Of<std::int64_t>({std::ssize(shape)}, shape); }

// Runs a shape function that takes shapes (or lists) alone.
std::string RunOnShapes(const std::string& name, const std::vector<Ints>& shapes, HostTensor* out,
                        const AttributeList& attributes) {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor*> tensors;
  inputs.reserve(shapes.size());
  tensors.reserve(shapes.size() + 1);
  for (const Ints& shape : shapes) tensors.push_back(&inputs.emplace_back(ShapeTensor(shape)));
  tensors.push_back(out);
  return Run("rewire.shape." + name, tensors, attributes);
}

Ints ShapeOf(const std::string& name, const std::vector<Ints>& shapes, std::int64_t rank,
             const AttributeList& attributes = {}) {
  HostTensor out = HostTensor::Empty<std::int64_t>({rank});
  REQUIRE(RunOnShapes(name, shapes, &out, attributes) == "");
  return out.values<std::int64_t>();
}

std::string ShapeError(const std::string& name, const std::vector<Ints>& shapes, std::int64_t rank,
                       const AttributeList& attributes = {}) {
  HostTensor out = HostTensor::Empty<std::int64_t>({rank});
  return RunOnShapes(name, shapes, &out, attributes);
}

Ints IndexOf(std::int64_t flat, const Shape& shape) {
  Ints index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

std::int64_t FlatOf(const Ints& index, const Shape& shape) {
  std::int64_t flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

// Checks that element `o` of out is the element of x that `source` names for o's index, for elements of any
// size.
template <typename T>
void CheckMoved(const HostTensor& x, const HostTensor& out, const std::function<Ints(const Ints&)>& source) {
  const auto from = x.values<T>();
  const auto to = out.values<T>();
  for (std::int64_t o = 0; o < out.size(); ++o) {
    const std::int64_t i = FlatOf(source(IndexOf(o, out.shape())), x.shape());
    if (to[static_cast<std::size_t>(o)] != from[static_cast<std::size_t>(i)]) FAIL("element " << o);
  }
}

template <typename T>
HostTensor Numbered(const Shape& shape) {
  HostTensor tensor = HostTensor::Empty<T>(shape);
  auto elements = tensor.template elements<T>();
  for (std::int64_t i = 0; i < tensor.size(); ++i) elements[i] = static_cast<T>(i * 7 + 1);
  return tensor;
}

TEMPLATE_TEST_CASE("transpose puts every axis where perm says", "", std::uint8_t, std::int16_t, float,
                   double) {
  const std::pair<Shape, Ints> cases[] = {
      {{3, 4}, {1, 0}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {0, 2, 1}},
      {{2, 3, 4}, {1, 0, 2}},
      {{33, 70}, {1, 0}},
      {{2, 3, 4, 5}, {0, 3, 1, 2}},
      {{2, 1, 3, 1}, {3, 2, 1, 0}},
      {{5}, {0}},
      {{0, 3}, {1, 0}},
      {{2, 17, 3, 40}, {0, 2, 3, 1}},
      // Squares of 16 bytes, what is left of them on either side, and few columns or rows.
      {{16, 16}, {1, 0}},
      {{4, 600}, {1, 0}},
      {{3, 601}, {1, 0}},
      {{601, 3}, {1, 0}},
      {{2, 259}, {1, 0}},
      {{19, 277}, {1, 0}},
      {{70, 40}, {1, 0}},
      {{300, 5}, {1, 0}},
      // The last axis moves far ahead.
      {{3, 2, 3, 20, 4, 17}, {2, 5, 0, 1, 4, 3}},
      {{5, 3, 4, 9}, {3, 1, 0, 2}},
      {{6, 5, 3}, {2, 1, 0}},
  };
  for (const auto& [shape, perm] : cases) {
    CAPTURE(shape, perm);
    Shape result;
    for (std::int64_t axis : perm) result.push_back(shape[static_cast<std::size_t>(axis)]);
    HostTensor x = Numbered<TestType>(shape);
    HostTensor out = HostTensor::Empty<TestType>(result);
    REQUIRE(Run("rewire.transpose", {&x, &out}, {{"perm", perm}}) == "");
    CheckMoved<TestType>(x, out, [&perm = perm](const Ints& index) {
      Ints source(index.size());
      for (std::size_t i = 0; i < index.size(); ++i) source[static_cast<std::size_t>(perm[i])] = index[i];
      return source;
    });
    CHECK(ShapeOf("transpose", {shape}, std::ssize(shape), {{"perm", perm}}) == result);
  }
}

TEST_CASE("slices with any starts and steps") {
  struct Case {
    Shape x;
    Ints starts, ends, axes, steps;
    Shape out;
    std::function<Ints(const Ints&)> source;
  };
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const Case cases[] = {
      {{6}, {1}, {4}, {}, {}, {3}, [](const Ints& i) { return Ints{i[0] + 1}; }},
      {{6}, {-2}, {most}, {0}, {1}, {2}, [](const Ints& i) { return Ints{i[0] + 4}; }},
      {{6}, {5}, {least}, {0}, {-1}, {6}, [](const Ints& i) { return Ints{5 - i[0]}; }},
      {{6}, {-1}, {0}, {0}, {-2}, {3}, [](const Ints& i) { return Ints{5 - 2 * i[0]}; }},
      {{4, 5},
       {1, 0},
       {3, 5},
       {0, 1},
       {1, 3},
       {2, 2},
       [](const Ints& i) {
         return Ints{i[0] + 1, 3 * i[1]};
       }},
      {{4, 5},
       {2},
       {4},
       {-1},
       {1},
       {4, 2},
       [](const Ints& i) {
         return Ints{i[0], i[1] + 2};
       }},
      {{4, 5}, {3}, {1}, {0}, {1}, {0, 5}, [](const Ints& i) { return i; }},
      {{4, 5},
       {0},
       {most},
       {1},
       {most},
       {4, 1},
       [](const Ints& i) {
         return Ints{i[0], 0};
       }},
      {{0, 5}, {0}, {2}, {0}, {1}, {0, 5}, [](const Ints& i) { return i; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.x, c.starts, c.ends, c.axes, c.steps);
    HostTensor x = Numbered<float>(c.x);
    HostTensor out = HostTensor::Empty<float>(c.out);
    const AttributeList attributes = {
        {"starts", c.starts}, {"ends", c.ends}, {"axes", c.axes}, {"steps", c.steps}};
    REQUIRE(Run("rewire.slice", {&x, &out}, attributes) == "");
    CheckMoved<float>(x, out, c.source);
    HostTensor starts = ShapeTensor(c.starts), ends = ShapeTensor(c.ends), axes = ShapeTensor(c.axes),
               steps = ShapeTensor(c.steps);
    HostTensor again = HostTensor::Empty<float>(c.out);
    REQUIRE(Run("rewire.dynamic_slice", {&x, &starts, &ends, &axes, &steps, &again}) == "");
    CHECK(again.values<float>() == out.values<float>());
    CHECK(ShapeOf("slice", {c.x, c.starts, c.ends, c.axes, c.steps}, std::ssize(c.x)) == c.out);
  }
  HostTensor x = Numbered<float>({4});
  HostTensor out = HostTensor::Empty<float>({4});
  CHECK(Run("rewire.slice", {&x, &out}, {{"starts", Ints{0}}, {"ends", Ints{4}}, {"steps", Ints{0}}}) ==
        "ValueError: rewire.slice: the step of axis 0 is 0");
  CHECK(Run("rewire.slice", {&x, &out}, {{"starts", Ints{0, 0}}, {"ends", Ints{4}}}) ==
        "ValueError: rewire.slice: starts, ends, axes and steps have 2, 1, 0 and 0 values, expected as many "
        "each (axes "
        "and steps may be empty)");
}

// The elements of an axis that ONNX's text gives to a slice, one by one.
Ints SlicedByText(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  Ints taken;
  if (size == 0) return taken;
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<std::int64_t>(start, 0, step < 0 ? size - 1 : size);
  end = step < 0 ? std::clamp<std::int64_t>(end, -1, size - 1) : std::clamp<std::int64_t>(end, 0, size);
  for (std::int64_t i = start; step < 0 ? i > end : i < end; i += step) taken.push_back(i);
  return taken;
}

TEST_CASE("starts and ends outside of an axis are held as ONNX's text says") {
  for (const std::int64_t size : {0, 1, 2, 4}) {
    HostTensor x = Numbered<float>({size});
    for (std::int64_t start = -7; start <= 7; ++start) {
      for (std::int64_t end = -7; end <= 7; ++end) {
        for (const std::int64_t step : {-5, -2, -1, 1, 2, 5}) {
          CAPTURE(size, start, end, step);
          const Ints taken = SlicedByText(size, start, end, step);
          const Shape shape = {static_cast<std::int64_t>(taken.size())};
          REQUIRE(ShapeOf("slice", {{size}, {start}, {end}, {0}, {step}}, 1) == shape);
          HostTensor out = HostTensor::Empty<float>(shape);
          REQUIRE(Run("rewire.slice", {&x, &out},
                      {{"starts", Ints{start}}, {"ends", Ints{end}}, {"steps", Ints{step}}}) == "");
          CheckMoved<float>(x, out,
                            [&](const Ints& i) { return Ints{taken[static_cast<std::size_t>(i[0])]}; });
        }
      }
    }
  }
}

TEST_CASE("what pads leave of an axis wraps as often as its border asks for") {
  for (const std::int64_t size : {1, 2, 3}) {
    for (std::int64_t before = -2; before <= 7; ++before) {
      for (std::int64_t after = -2; after <= 7; ++after) {
        const std::int64_t first = std::max<std::int64_t>(0, -before);
        const std::int64_t kept = size - first - std::max<std::int64_t>(0, -after);
        if (size + before + after <= 0) continue;
        CAPTURE(size, before, after);
        // As columns of rows that wrap alike, and as rows.
        HostTensor x = Numbered<float>({2, size}), out = HostTensor::Empty<float>({2, size + before + after});
        HostTensor tall = Numbered<float>({size, 2}),
                   higher = HostTensor::Empty<float>({size + before + after, 2});
        const std::string error =
            Run("rewire.pad", {&x, &out}, {{"pads", Ints{0, before, 0, after}}, {"mode", "wrap"}});
        if (kept <= 0) {
          CHECK_THAT(error, Catch::Contains("is too short for a pad of"));
          continue;
        }
        REQUIRE(error == "");
        REQUIRE(Run("rewire.pad", {&tall, &higher},
                    {{"pads", Ints{before, 0, after, 0}}, {"mode", "wrap"}}) == "");
        const auto source = [&](std::int64_t i) { return first + (i - before - first + 100 * kept) % kept; };
        CheckMoved<float>(x, out, [&](const Ints& i) { return Ints{i[0], source(i[1])}; });
        CheckMoved<float>(tall, higher, [&](const Ints& i) { return Ints{source(i[0]), i[1]}; });
      }
    }
  }
}

TEST_CASE("pads in every mode") {
  struct Case {
    const char* mode;
    std::function<std::int64_t(std::int64_t, std::int64_t)> fold;  // position and length to position
  };
  const Case cases[] = {
      {"edge", [](auto i, auto n) { return std::clamp<std::int64_t>(i, 0, n - 1); }},
      {"reflect", [](auto i, auto n) { return i < 0    ? -i
                                              : i >= n ? 2 * (n - 1) - i
                                                       : i; }},
      {"wrap", [](auto i, auto n) { return (i + n) % n; }},
  };
  const Shape shape = {3, 4, 5};
  const Ints pads = {1, 2, 0, 2, 3, -1};
  HostTensor x = Numbered<float>(shape);
  for (const Case& c : cases) {
    INFO(c.mode);
    HostTensor out = HostTensor::Empty<float>({6, 9, 4});
    REQUIRE(Run("rewire.pad", {&x, &out}, {{"pads", pads}, {"mode", c.mode}}) == "");
    CheckMoved<float>(x, out, [&](const Ints& i) {
      return Ints{c.fold(i[0] - 1, 3), c.fold(i[1] - 2, 4), c.fold(i[2], 5)};
    });
  }
  // Short and long rows, few and many of them.
  const std::pair<Shape, Ints> cases_of_rows[] = {{{3}, {2, 1}},
                                                  {{5, 3}, {1, 2, 0, 2}},
                                                  {{7, 31}, {2, 1, 3, 1}},
                                                  {{4, 40}, {1, 3, 2, -1}},
                                                  {{3, 4, 2, 5, 3}, {1, 0, -1, 2, 1, 2, 3, 0, 1, 2}},
                                                  {{40, 3, 50, 2}, {3, 1, 2, 1, 4, 0, 1, 1}}};
  for (const auto& dims_and_border : cases_of_rows) {
    const Shape& dims = dims_and_border.first;
    const Ints& border = dims_and_border.second;
    for (const Case& c : cases) {
      CAPTURE(c.mode, dims, border);
      const std::size_t rank = dims.size();
      Shape result = dims;
      bool keeps_all = true;
      for (std::size_t i = 0; i < rank; ++i) {
        result[i] += border[i] + border[rank + i];
        keeps_all = keeps_all && border[i] >= 0 && border[rank + i] >= 0;
      }
      if (c.mode == std::string("wrap") && !keeps_all) continue;  // the test above
      HostTensor bytes = Numbered<std::uint8_t>(dims), padded = HostTensor::Empty<std::uint8_t>(result);
      REQUIRE(Run("rewire.pad", {&bytes, &padded}, {{"pads", border}, {"mode", c.mode}}) == "");
      CheckMoved<std::uint8_t>(bytes, padded, [&](const Ints& i) {
        Ints from(rank);
        for (std::size_t k = 0; k < rank; ++k) from[k] = c.fold(i[k] - border[k], dims[k]);
        return from;
      });
    }
  }
  HostTensor value = HostTensor::Of<float>({}, {9});
  HostTensor row = HostTensor::Of<float>({3}, {1, 2, 3});
  HostTensor out = HostTensor::Empty<float>({4});
  REQUIRE(Run("rewire.pad", {&row, &value, &out}, {{"pads", Ints{2, -1}}}) == "");
  CHECK(out.values<float>() == std::vector<float>{9, 9, 1, 2});
  HostTensor list = ShapeTensor({2, -1}), axes = ShapeTensor({-1}), none = ShapeTensor({});
  HostTensor two = HostTensor::Of<float>({1, 3}, {1, 2, 3});
  HostTensor wide = HostTensor::Empty<float>({1, 4});
  REQUIRE(Run("rewire.dynamic_pad", {&two, &list, &value, &axes, &wide}) == "");
  CHECK(wide.values<float>() == std::vector<float>{9, 9, 1, 2});
  REQUIRE(Run("rewire.dynamic_pad", {&two, &list, &none, &axes, &wide}) == "");
  CHECK(wide.values<float>() == std::vector<float>{0, 0, 1, 2});
  CHECK(ShapeOf("dynamic_pad", {{1, 3}, {2, -1}, {1}}, 2) == Ints{1, 4});
  CHECK(ShapeOf("pad", {{1, 3}}, 2, {{"pads", Ints{0, 1, 0, 1}}}) == Ints{1, 5});
  CHECK(Run("rewire.dynamic_pad", {&two, &list, &wide}) ==
        "ValueError: rewire.dynamic_pad: pads has 2 values, expected two for each of 2 axes");
  CHECK(Run("rewire.pad", {&row, &out}, {{"pads", Ints{3, -2}}, {"mode", "reflect"}}) ==
        "ValueError: rewire.pad: axis 0 of x with shape [3] is too short for a pad of 3");
}

TEST_CASE("concat and split are each other's inverse") {
  const std::int64_t parts[] = {2, 0, 3, 1};
  for (std::int64_t axis : {0, 1, 2, -1}) {
    Shape whole = {6, 6, 6};
    std::vector<HostTensor> pieces;
    HostTensor x = Numbered<std::int16_t>(whole);
    std::vector<HostTensor*> arguments = {&x};
    for (std::int64_t part : parts) {
      Shape shape = whole;
      shape[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)] = part;
      pieces.push_back(HostTensor::Empty<std::int16_t>(shape));
    }
    for (HostTensor& piece : pieces) arguments.push_back(&piece);
    REQUIRE(Run("rewire.split", arguments, {{"axis", axis}}) == "");
    HostTensor back = HostTensor::Empty<std::int16_t>(whole);
    arguments.erase(arguments.begin());
    arguments.push_back(&back);
    REQUIRE(Run("rewire.concat", arguments, {{"axis", axis}}) == "");
    CHECK(back.values<std::int16_t>() == x.values<std::int16_t>());
  }
  HostTensor a = HostTensor::Random({2, 3}, 1), b = HostTensor::Random({2, 4}, 2);
  HostTensor out = HostTensor::Empty<float>({2, 7});
  CHECK(Run("rewire.concat", {&a, &b, &out}, {{"axis", 0}}) ==
        "ValueError: rewire.concat: input 1 has shape [2, 4], expected [2, 3] but for axis 0");
  CHECK(Run("rewire.split", {&out, &a, &a}, {{"axis", 1}}) ==
        "ValueError: rewire.split: the outputs take 6 along axis 1, x of shape [2, 7] has 7");
  CHECK(ShapeOf("concat", {{2, 3}, {2, 4}}, 2, {{"axis", 1}}) == Ints{2, 7});
  CHECK(ShapeOf("split", {{2, 7}, {3, 4}}, 2, {{"axis", 1}, {"index", 1}}) == Ints{2, 4});
  CHECK(ShapeError("split", {{2, 7}, {3, 4}}, 2, {{"axis", 1}, {"index", 2}}) ==
        "ValueError: rewire.shape.split: split has shape [2], expected more than 2 elements");
}

// f32[rows, 2] tensors in one piece of memory: {first row, rows}. -1 when the kernel fails.
int RunInside(const std::string& name, HostTensor* memory, const std::vector<std::pair<int, int>>& tensors,
              const AttributeList& attributes) {
  std::vector<Shape> shapes;
  shapes.reserve(tensors.size());
  for (const auto& [first, rows] : tensors) shapes.push_back({rows, 2});
  std::vector<DLTensor> views(tensors.size(), *memory->dl());
  std::vector<RewireFFIAny> args(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    views[i].shape = shapes[i].data();
    views[i].strides = nullptr;
    views[i].byte_offset = static_cast<std::uint64_t>(tensors[i].first) * 2 * sizeof(float);
    args[i].type_index = kRewireFFIDLTensorPtr;
    args[i].v_ptr = &views[i];
  }
  return StockKernel(name, attributes).CallRaw(args.data(), static_cast<int>(args.size()));
}

TEST_CASE("what is copied may lie where it is copied to") {
  HostTensor memory = Numbered<float>({8, 2});
  const std::vector<float> before = memory.values<float>();
  const AttributeList rows = {{"axis", 0}};
  SECTION("as a whole") {
    CHECK(RunInside("rewire.concat", &memory, {{1, 2}, {3, 3}, {1, 5}}, rows) == 0);
    CHECK(RunInside("rewire.split", &memory, {{1, 5}, {1, 2}, {3, 3}}, rows) == 0);
    CHECK(RunInside("rewire.slice", &memory, {{1, 5}, {3, 2}},
                    {{"starts", Ints{2}}, {"ends", Ints{4}}, {"axes", Ints{0}}}) == 0);
    CHECK(memory.values<float>() == before);
  }
  SECTION("in part") {
    // The second input comes from elsewhere.
    CHECK(RunInside("rewire.concat", &memory, {{1, 2}, {7, 1}, {1, 3}}, rows) == 0);
    std::vector<float> expected = before;
    std::copy_n(before.begin() + 14, 2, expected.begin() + 6);
    CHECK(memory.values<float>() == expected);
  }
  SECTION("but nowhere else") {
    CHECK(RunInside("rewire.concat", &memory, {{2, 2}, {1, 1}, {1, 3}}, rows) == -1);
    CHECK(TakeError() ==
          "ValueError: rewire.concat: out shares memory with an input; this kernel cannot work in place");
    CHECK(RunInside("rewire.split", &memory, {{1, 3}, {2, 2}, {1, 1}}, rows) == -1);
    CHECK(TakeError() ==
          "ValueError: rewire.split: an output shares memory with x; this kernel cannot work in place");
    const AttributeList slice = {{"starts", Ints{2}}, {"ends", Ints{4}}, {"axes", Ints{0}}};
    CHECK(RunInside("rewire.slice", &memory, {{1, 5}, {2, 2}}, slice) == -1);
    CHECK(TakeError() ==
          "ValueError: rewire.slice: out shares memory with x; this kernel cannot work in place");
    // The first element lies right, but the others have gaps between them.
    const AttributeList every_other = {
        {"starts", Ints{1}}, {"ends", Ints{5}}, {"axes", Ints{0}}, {"steps", Ints{2}}};
    CHECK(RunInside("rewire.slice", &memory, {{1, 5}, {2, 2}}, every_other) == -1);
    // An inner axis makes no stretch.
    CHECK(RunInside("rewire.concat", &memory, {{1, 2}, {1, 2}}, {{"axis", 1}}) == -1);
    CHECK(memory.values<float>() == before);
  }
}

TEST_CASE("expand and tile repeat") {
  HostTensor x = Numbered<float>({3, 1, 2});
  HostTensor out = HostTensor::Empty<float>({4, 3, 5, 2});
  REQUIRE(Run("rewire.expand", {&x, &out}) == "");
  CheckMoved<float>(x, out, [](const Ints& i) { return Ints{i[1], 0, i[3]}; });
  HostTensor tiled = HostTensor::Empty<float>({6, 3, 2});
  REQUIRE(Run("rewire.tile", {&x, &tiled}) == "");
  CheckMoved<float>(x, tiled, [](const Ints& i) { return Ints{i[0] % 3, 0, i[2]}; });
  HostTensor odd = HostTensor::Empty<float>({4, 1, 2});
  CHECK(Run("rewire.tile", {&x, &odd}) ==
        "ValueError: rewire.tile: out has shape [4, 1, 2], expected multiples of x's [3, 1, 2]");
  CHECK(
      Run("rewire.expand", {&x, &odd}) ==
      "ValueError: rewire.expand: x has shape [3, 1, 2], which does not broadcast to out of shape [4, 1, 2]");
  CHECK(ShapeOf("tile", {{3, 1, 2}, {2, 3, 1}}, 3) == Ints{6, 3, 2});
  CHECK(ShapeOf("broadcast", {{3, 1, 2}, {4, 1, 5, 1}}, 4) == Ints{4, 3, 5, 2});
}

TEMPLATE_TEST_CASE("reverse_sequence moves elements of every size", "", std::uint8_t, std::int16_t, float,
                   std::int64_t) {
  const Ints of_batches = {0, 37, 1, 20, 36};
  HostTensor lengths = HostTensor::Of<std::int64_t>({5}, of_batches);
  for (const std::int64_t time_axis : {0, 1}) {
    for (const Shape& inner : {Shape{}, Shape{1}, Shape{3}}) {
      Shape shape = time_axis == 0 ? Shape{37, 5} : Shape{5, 37};
      shape.insert(shape.end(), inner.begin(), inner.end());
      HostTensor x = Numbered<TestType>(shape), out = HostTensor::Empty<TestType>(shape);
      REQUIRE(Run("rewire.reverse_sequence", {&x, &lengths, &out},
                  {{"batch_axis", 1 - time_axis}, {"time_axis", time_axis}}) == "");
      CheckMoved<TestType>(x, out, [&](const Ints& i) {
        Ints from = i;
        const auto along = static_cast<std::size_t>(time_axis);
        const std::int64_t t = i[along], length = of_batches[static_cast<std::size_t>(i[1 - along])];
        from[along] = t < length ? length - 1 - t : t;
        return from;
      });
    }
  }
}

TEST_CASE("reverse_sequence, trilu, eye and arange") {
  HostTensor x = Numbered<std::int32_t>({4, 2, 3});
  HostTensor lengths = HostTensor::Of<std::int64_t>({2}, {3, 1});
  HostTensor out = HostTensor::Empty<std::int32_t>({4, 2, 3});
  REQUIRE(Run("rewire.reverse_sequence", {&x, &lengths, &out}) == "");
  const auto reversed = [](std::int64_t t, std::int64_t length) { return t < length ? length - 1 - t : t; };
  CheckMoved<std::int32_t>(x, out, [&](const Ints& i) {
    return Ints{reversed(i[0], i[1] == 0 ? 3 : 1), i[1], i[2]};
  });
  HostTensor wide = Numbered<std::int32_t>({2, 4});
  HostTensor flat = HostTensor::Empty<std::int32_t>({2, 4});
  REQUIRE(Run("rewire.reverse_sequence", {&wide, &lengths, &flat}, {{"batch_axis", 0}, {"time_axis", 1}}) ==
          "");
  CheckMoved<std::int32_t>(wide, flat, [&](const Ints& i) {
    return Ints{i[0], reversed(i[1], i[0] == 0 ? 3 : 1)};
  });
  HostTensor longer = HostTensor::Of<std::int64_t>({2}, {3, 5});
  CHECK(Run("rewire.reverse_sequence", {&x, &longer, &out}) ==
        "ValueError: rewire.reverse_sequence: element 1 of lengths is 5, expected 0 to 4");

  for (int upper : {0, 1}) {
    for (std::int64_t k : {-290, -9, -2, -1, 0, 1, 3, 9, 59}) {
      // Short lines of small and large matrices, with bands of all sizes, and long ones.
      for (const Shape& shape : {Shape{2, 3, 4}, Shape{900, 3, 4}, Shape{2, 300, 2}, Shape{3, 5, 40},
                                 Shape{2, 70, 30}, Shape{2, 300, 60}, Shape{2, 40, 70}}) {
        HostTensor matrix = Numbered<std::int64_t>(shape);
        HostTensor diagonal = HostTensor::Of<std::int64_t>({}, {k});
        HostTensor part = HostTensor::Empty<std::int64_t>(shape);
        REQUIRE(Run("rewire.trilu", {&matrix, &diagonal, &part}, {{"upper", upper}}) == "");
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < matrix.size(); ++i) {
          const std::int64_t row = i / shape[2] % shape[1], column = i % shape[2];
          const bool stays = upper == 1 ? column >= row + k : column <= row + k;
          wrong += part.elements<std::int64_t>()[i] == (stays ? i * 7 + 1 : 0) ? 0 : 1;
        }
        CAPTURE(upper, k, shape);
        CHECK(wrong == 0);
      }
    }
  }
  HostTensor ones = HostTensor::Empty<float>({2, 3});
  REQUIRE(Run("rewire.eye", {&ones}, {{"k", 1}}) == "");
  CHECK(ones.values<float>() == std::vector<float>{0, 1, 0, 0, 0, 1});

  HostTensor start = HostTensor::Of<std::int32_t>({}, {10}), limit = HostTensor::Of<std::int32_t>({}, {3}),
             delta = HostTensor::Of<std::int32_t>({}, {-3});
  HostTensor numbers = HostTensor::Empty<std::int32_t>({3});
  REQUIRE(Run("rewire.arange", {&start, &limit, &delta, &numbers}) == "");
  CHECK(numbers.values<std::int32_t>() == std::vector<std::int32_t>{10, 7, 4});
  HostTensor count = HostTensor::Empty<std::int64_t>({1});
  REQUIRE(Run("rewire.shape.arange", {&start, &limit, &delta, &count}) == "");
  CHECK(count.values<std::int64_t>() == Ints{3});
  HostTensor zero = HostTensor::Of<std::int32_t>({}, {0});
  CHECK(Run("rewire.arange", {&start, &limit, &zero, &numbers}) == "ValueError: rewire.arange: delta is 0");
}

TEST_CASE("shape functions of views") {
  CHECK(ShapeOf("squeeze", {{1, 3, 1}}, 1) == Ints{3});
  CHECK(ShapeOf("squeeze", {{1, 3, 1}, {-1}}, 2) == Ints{1, 3});
  CHECK(ShapeError("squeeze", {{1, 3, 1}, {1}}, 2) ==
        "ValueError: rewire.shape.squeeze: axis 1 of x [1, 3, 1] is not 1");
  CHECK(ShapeOf("unsqueeze", {{2, 3}, {0, -1}}, 4) == Ints{1, 2, 3, 1});
  CHECK(ShapeError("unsqueeze", {{2, 3}, {4}}, 3) ==
        "ValueError: rewire.shape.unsqueeze: axis is 4, expected at least -3 and less than 3");
  CHECK(ShapeOf("reshape", {{2, 3, 4}, {0, -1}}, 2) == Ints{2, 12});
  // -1 of no elements is 0, unless an axis of 0 leaves it open.
  CHECK(ShapeOf("reshape", {{0, 3}, {-1, 3}}, 2) == Ints{0, 3});
  CHECK(ShapeOf("reshape", {{2, 0}, {5, -1}}, 2) == Ints{5, 0});
  CHECK(ShapeError("reshape", {{0, 3}, {-1, 0}}, 2, {{"allowzero", 1}}) ==
        "ValueError: rewire.shape.reshape: target [-1, 0] leaves its -1 open");
  CHECK(ShapeOf("reshape", {{0, 3, 2}, {0, -1}}, 2) == Ints{0, 6});
  CHECK(ShapeOf("reshape", {{0, 3}, {0, 5}}, 2) == Ints{0, 5});
  CHECK(ShapeOf("reshape", {{0, 3}, {3, 0}}, 2, {{"allowzero", 1}}) == Ints{3, 0});
  CHECK(ShapeError("reshape", {{2, 3}, {4, -1}}, 2) ==
        "ValueError: rewire.shape.reshape: target [4, -1] does not take the 6 elements of x [2, 3]");
  CHECK(ShapeOf("gather", {{2, 3, 4}, {5, 6}}, 4, {{"axis", 1}}) == Ints{2, 5, 6, 4});
  CHECK(ShapeOf("matmul", {{2, 1, 3, 4}, {5, 4, 6}}, 4) == Ints{2, 5, 3, 6});
  CHECK(ShapeOf("dense", {{2, 3, 10}, {7, 10}}, 3) == Ints{2, 3, 7});
  CHECK(ShapeOf("reduce", {{2, 3, 4}}, 2, {{"axes", Ints{1}}, {"keepdims", 0}}) == Ints{2, 4});
  CHECK(ShapeOf("reduce", {{2, 3, 4}, {0, 2}}, 3) == Ints{1, 3, 1});
  CHECK(ShapeOf("top_k", {{2, 9}, {4}}, 2) == Ints{2, 4});
  CHECK(ShapeError("top_k", {{2, 9}, {10}}, 2) ==
        "ValueError: rewire.shape.top_k: k is 10, expected 0 to 9 as axis 1 of x [2, 9]");
  CHECK(ShapeError("broadcast", {{2}, {-1}}, 1) ==
        "ValueError: rewire.shape.broadcast: a shape is [-1], which is no shape");
  CHECK(ShapeError("broadcast", {{2}, {3}}, 1) ==
        "ValueError: rewire.shape.broadcast: shapes [2] and [3] do not broadcast: 2 and 3 at axis 0 of the "
        "result");
  HostTensor shape = ShapeTensor({3, 5});
  HostTensor bytes = HostTensor::Empty<std::int64_t>({});
  REQUIRE(Run("rewire.shape.bytes", {&shape, &bytes}, {{"element_bytes", 4}}) == "");
  CHECK(bytes.values<std::int64_t>() == Ints{60});
  HostTensor vast = ShapeTensor({std::int64_t{1} << 40, std::int64_t{1} << 40});
  CHECK(Run("rewire.shape.bytes", {&vast, &bytes}, {{"element_bytes", 4}}) ==
        "ValueError: rewire.shape.bytes: shape [1099511627776, 1099511627776] has too many elements");
}

}  // namespace
}  // namespace rewire::test
