// SPDX-License-Identifier: Apache-2.0
// Drawn calls of kernels that move elements.
#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

Case Copy(Random& random) {
  const Dims dims = random.Shape(0, 3);
  return {{}, {random.Floats(dims)}, {Float(dims)}};
}

Case Transpose(Random& random) {
  const Dims dims = random.Shape(1, 4);
  Dims perm;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    perm.insert(perm.begin() + random.Int(0, static_cast<int>(i)), static_cast<std::int64_t>(i));
  }
  Dims out;
  for (const std::int64_t axis : perm) out.push_back(dims[static_cast<std::size_t>(axis)]);
  return {"perm=" + ShapeOf(perm), {random.Integers<std::int8_t>(dims, -9, 9)}, {"i8" + ShapeOf(out)}};
}

Case Expand(Random& random) {
  const Dims out = random.Shape(1, 4);
  return {{}, {random.Integers<std::int64_t>(random.Narrower(out), -9, 9)}, {"i64" + ShapeOf(out)}};
}

Case Tile(Random& random) {
  const Dims dims = random.Shape(1, 3);
  Dims out = dims;
  for (std::int64_t& dim : out) dim *= random.Int(1, 3);
  return {{}, {random.Floats(dims)}, {Float(out)}};
}

Case Concat(Random& random) {
  Dims dims = random.Shape(1, 3);
  std::int64_t axis = 0;
  Case call{AxisOf(random, dims.size(), &axis), {}, {}};
  const auto at = static_cast<std::size_t>(axis);
  std::int64_t total = 0;
  for (int i = random.Int(1, 4); i > 0; --i) {
    dims[at] = random.Int(0, 3);
    total += dims[at];
    call.inputs.push_back(random.Integers<std::uint8_t>(dims, 0, 255));
  }
  dims[at] = total;
  call.outputs.push_back("u8" + ShapeOf(dims));
  return call;
}

Case Split(Random& random) {
  Dims dims = random.Shape(1, 3);
  std::int64_t axis = 0;
  Case call{AxisOf(random, dims.size(), &axis), {}, {}};
  const auto at = static_cast<std::size_t>(axis);
  std::int64_t total = 0;
  for (int i = random.Int(1, 3); i > 0; --i) {
    dims[at] = random.Int(1, 3);
    total += dims[at];
    call.outputs.push_back(Float(dims));
  }
  dims[at] = total;
  call.inputs.push_back(random.Floats(dims));
  return call;
}

Case Slice(Random& random) {
  const Dims dims = random.Shape(1, 3);
  Dims starts, ends, axes, steps, out = dims;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (random.Int(0, 3) == 0) continue;
    axes.push_back(static_cast<std::int64_t>(i));
    const std::int64_t size = dims[i], start = random.Int(0, static_cast<int>(size) - 1);
    const bool is_back = random.Bool();
    const std::int64_t step = random.Int(1, 2);
    steps.push_back(is_back ? -step : step);
    starts.push_back(random.Bool() ? start : start - size);
    ends.push_back(is_back ? -1000 : 1000);
    out[i] = ((is_back ? start + 1 : size - start) + step - 1) / step;
  }
  if (axes.empty()) return {"starts=[0], ends=[1000]", {random.Floats(dims)}, {Float(dims)}};
  return {"starts=" + ShapeOf(starts) + ", ends=" + ShapeOf(ends) + ", axes=" + ShapeOf(axes) +
              ", steps=" + ShapeOf(steps),
          {random.Floats(dims)},
          {Float(out)}};
}

Case GatherElements(Random& random) {
  const Dims dims = random.Shape(1, 3);
  std::int64_t axis = 0;
  const std::string attribute = AxisOf(random, dims.size(), &axis);
  const int most = static_cast<int>(dims[static_cast<std::size_t>(axis)]);
  Dims out;
  for (const std::int64_t dim : dims) out.push_back(random.Int(1, static_cast<int>(dim)));
  out[static_cast<std::size_t>(axis)] = random.Int(1, 5);
  const Tensor indices = random.Bool() ? random.Integers<std::int32_t>(out, -most, most - 1)
                                       : random.Integers<std::int64_t>(out, -most, most - 1);
  const Tensor x = random.Bool() ? random.Floats(dims) : random.Integers<std::int8_t>(dims, -9, 9);
  return {attribute, {x, indices}, {TypeOf(x).substr(0, TypeOf(x).find('[')) + ShapeOf(out)}};
}

// The diagonal is a constant, which may lie beside all elements.
Case Trilu(Random& random) {
  const Dims dims = random.Shape(2, 4);
  const Tensor x = random.Bool() ? random.Floats(dims) : random.Integers<std::int64_t>(dims, -9, 9);
  Case call{"upper=" + std::to_string(random.Int(0, 1)), {x}, {TypeOf(x)}};
  if (random.Int(0, 3) != 0) call.last_integer = random.Int(-6, 6);
  return call;
}

Case Gather(Random& random) {
  const Dims dims = random.Shape(1, 3);
  const Dims indices = random.Shape(0, 2);
  std::int64_t axis = 0;
  const std::string attribute = AxisOf(random, dims.size(), &axis);
  const auto size = static_cast<int>(dims[static_cast<std::size_t>(axis)]);
  Dims out(dims.begin(), dims.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), dims.begin() + axis + 1, dims.end());
  const Tensor at = random.Bool() ? random.Integers<std::int64_t>(indices, -size, size - 1)
                                  : random.Integers<std::int32_t>(indices, -size, size - 1);
  return {attribute, {random.Floats(dims), at}, {Float(out)}};
}

}  // namespace

void AddMovementCases(Makers* makers) {
  makers->insert({
      {"rewire.copy", Copy},
      {"rewire.transpose", Transpose},
      {"rewire.expand", Expand},
      {"rewire.tile", Tile},
      {"rewire.concat", Concat},
      {"rewire.split", Split},
      {"rewire.slice", Slice},
      {"rewire.gather", Gather},
      {"rewire.gather_elements", GatherElements},
      {"rewire.trilu", Trilu},
  });
}

}  // namespace rewire::test
