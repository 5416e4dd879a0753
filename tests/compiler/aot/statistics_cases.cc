// SPDX-License-Identifier: Apache-2.0
// Drawn calls of reductions and of kernels that normalize.
#include <algorithm>
#include <cmath>

#include "rewire/tests/compiler/aot/kernel_cases.h"

namespace rewire::test {
namespace {

Maker Softmax(double bound) {
  return [=](Random& random) {
    const Dims dims = random.Shape(1, 4);
    std::int64_t axis = 0;
    const std::string attribute = AxisOf(random, dims.size(), &axis);
    return Case{attribute, {random.Floats(dims, -4, 4, 0.5F)}, {Float(dims)}, bound};
  };
}

Maker RowNorm(bool has_bias) {
  return [=](Random& random) {
    const Dims dims = random.Shape(2, 3);
    std::int64_t axis = 0;
    const std::string attribute = AxisOf(random, dims.size(), &axis);
    const Dims row(dims.begin() + axis, dims.end());
    Case call{attribute + ", epsilon=0.1", {random.Floats(dims), random.Floats(row)}, {Float(dims)}, 1e-5};
    if (has_bias && random.Bool()) call.inputs.push_back(random.Floats(row));
    if (call.inputs.size() == 3 && random.Bool()) {
      Dims outside = dims;
      std::fill(outside.begin() + axis, outside.end(), 1);
      call.outputs.insert(call.outputs.end(), {Float(outside), Float(outside)});
    }
    return call;
  };
}

Case GroupNorm(Random& random) {
  const std::int64_t groups = random.Int(1, 3), channels = groups * random.Int(1, 2);
  Dims dims = {random.Int(1, 2), channels, random.Int(2, 5)};
  if (random.Bool()) dims.push_back(random.Int(1, 3));
  return {"num_groups=" + std::to_string(groups) + ", epsilon=0.1",
          {random.Floats(dims), random.Floats({channels}), random.Floats({channels})},
          {Float(dims)},
          1e-5};
}

Case BatchNorm(Random& random) {
  const Dims dims = random.Shape(2, 4);
  const Dims each = {dims[1]};
  return {"epsilon=0.25",
          {random.Floats(dims), random.Floats(each), random.Floats(each), random.Floats(each),
           random.Floats(each, 0, 4)},
          {Float(dims)},
          1e-6};
}

Maker Reduction(double bound = 0, bool has_integers = false) {
  return [=](Random& random) {
    const Dims dims = random.Shape(1, 4);
    Dims out;
    std::string axes;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const bool is_reduced = i == 0 ? random.Int(0, 2) != 0 : random.Bool();
      if (is_reduced) axes += (axes.empty() ? "" : ", ") + std::to_string(i);
      if (!is_reduced) out.push_back(dims[i]);
    }
    if (axes.empty()) out.clear();  // all
    const Tensor all[] = {random.Floats(dims, -2, 2), random.Integers<std::int8_t>(dims, -128, 127),
                          random.Integers<std::uint8_t>(dims, 0, 255),
                          random.Integers<std::int32_t>(dims, -1000000000, 1000000000),
                          random.Integers<std::int64_t>(dims, -9, 9)};
    const Tensor& x = all[has_integers ? random.Int(0, 4) : 0];
    const std::string dtype = TypeOf(x).substr(0, TypeOf(x).find('['));
    return Case{
        "keepdims=0" + (axes.empty() ? "" : ", axes=[" + axes + "]"), {x}, {dtype + ShapeOf(out)}, bound};
  };
}

// Ties are frequent, and one element may be NaN.
Case ArgReduction(Random& random) {
  const Dims dims = random.Shape(1, 4);
  std::int64_t axis = 0;
  const std::string attribute = AxisOf(random, dims.size(), &axis);
  Dims out = dims;
  out.erase(out.begin() + axis);
  const int kind = random.Int(0, 3);
  Tensor x = kind == 0   ? random.Integers<std::int8_t>(dims, -2, 2)
             : kind == 1 ? random.Integers<std::uint8_t>(dims, 0, 3)
                         : random.Floats(dims, -2, 2);
  if (kind == 3) x.data<float>()[0] = NAN;
  return {attribute + ", keepdims=0, select_last_index=" + std::to_string(random.Int(0, 1)),
          {x},
          {(random.Bool() ? "i64" : "i32") + ShapeOf(out)}};
}

}  // namespace

void AddStatisticsCases(Makers* makers) {
  makers->insert({
      {"rewire.softmax", Softmax(kClose)},
      {"rewire.log_softmax", Softmax(1e-5)},
      {"rewire.layer_norm", RowNorm(true)},
      {"rewire.rms_norm", RowNorm(false)},
      {"rewire.group_norm", GroupNorm},
      {"rewire.batch_norm", BatchNorm},
      {"rewire.argmax", ArgReduction},
      {"rewire.argmin", ArgReduction},
      {"rewire.reduce_sum", Reduction(0, true)},
      {"rewire.reduce_mean", Reduction(kClose, true)},
      {"rewire.reduce_prod", Reduction(kClose, true)},
      {"rewire.reduce_max", Reduction(0, true)},
      {"rewire.reduce_min", Reduction(0, true)},
      {"rewire.reduce_sum_square", Reduction()},
      {"rewire.reduce_l1", Reduction()},
      {"rewire.reduce_l2", Reduction(kClose)},
      {"rewire.reduce_log_sum_exp", Reduction(kClose)},
  });
}

}  // namespace rewire::test
