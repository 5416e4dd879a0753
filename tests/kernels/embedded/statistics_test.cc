// SPDX-License-Identifier: Apache-2.0
// Embedded plain products, normalization, reductions and gather against the stock kernels.
#include "rewire/tests/kernels/embedded/cases.h"

namespace rewire::test::embedded {

TEST_CASE("embedded gemm equals the stock kernel on whole numbers") {
  Draw draw(61);
  for (int i = 0; i < 150; ++i) {
    const int m = draw.Int(1, 6), n = draw.Int(1, 20), k = draw.Int(1, 30);
    const bool left = draw.Bool(), right = draw.Bool();
    HostTensor a = draw.Whole(left ? Shape{k, m} : Shape{m, k}),
               b = draw.Whole(right ? Shape{n, k} : Shape{k, n});
    const int form = draw.Int(0, 3);
    HostTensor c = draw.Whole(form == 0   ? Shape{m, n}
                              : form == 1 ? Shape{n}
                              : form == 2 ? Shape{m, 1}
                                          : Shape{1});
    HostTensor out = HostTensor::Empty<float>({m, n}), stock = out;
    CAPTURE(i, m, n, k, left, right, form);
    const rewire_embedded_gemm p = {m,
                                    n,
                                    k,
                                    left ? 1 : k,
                                    left ? m : 1,
                                    right ? 1 : n,
                                    right ? k : 1,
                                    form == 0   ? n
                                    : form == 2 ? 1
                                                : 0,
                                    form <= 1 ? 1 : 0,
                                    0.5F,
                                    2.0F};
    rewire_embedded_gemm_f32(&p, Data<float>(a), Data<float>(b), Data<float>(c), Data<float>(out));
    REQUIRE(Run("rewire.gemm", {&a, &b, &c, &stock},
                {{"alpha", 0.5}, {"beta", 2.0}, {"transA", left ? 1 : 0}, {"transB", right ? 1 : 0}}) == "");
    CheckSame<float>(out, stock);
  }
}

TEST_CASE("embedded convolution with the channels first equals the stock kernel on whole numbers") {
  Draw draw(62);
  for (int i = 0; i < 200; ++i) {
    const DrawnWindow window = DrawWindow(draw);
    const int images = draw.Int(0, 2), groups = draw.Of({1, 1, 2, 3}), in = draw.Int(1, 3),
              out_of_group = draw.Int(1, 3);
    HostTensor x = draw.Whole(window.Of(&rewire_embedded_axis::input, images, in * groups, false));
    HostTensor w = draw.Whole(window.Of(&rewire_embedded_axis::kernel, out_of_group * groups, in, false));
    HostTensor bias = draw.Whole({out_of_group * groups});
    HostTensor out = HostTensor::Empty<float>(
        window.Of(&rewire_embedded_axis::output, images, out_of_group * groups, false));
    HostTensor stock = out;
    CAPTURE(i, images, groups, in, out_of_group, window.rank);
    const rewire_embedded_conv p = {images, in * groups,      out_of_group * groups,
                                    groups, window.rows.axis, window.columns.axis};
    rewire_embedded_conv_f32(&p, Data<float>(x), Data<float>(w), Data<float>(bias), Data<float>(out));
    REQUIRE(Run("rewire.conv", {&x, &w, &bias, &stock},
                With({{"group", groups}}, window.Attributes(false))) == "");
    CheckSame<float>(out, stock);
  }
}

TEST_CASE("embedded normalization equals the stock kernels to rounding") {
  Draw draw(63);
  for (int i = 0; i < 150; ++i) {
    const int rows = draw.Int(1, 4), count = draw.Of({2, 3, 8, 33, 100});
    HostTensor x = draw.Floats({rows, count}), scale = draw.Floats({count}), bias = draw.Floats({count});
    HostTensor out = HostTensor::Empty<float>({rows, count}), stock = out;
    CAPTURE(i, rows, count);
    const rewire_embedded_row_norm p = {rows, count, 1e-3F};
    rewire_embedded_layer_norm_f32(&p, Data<float>(x), Data<float>(scale), Data<float>(bias),
                                   Data<float>(out), nullptr, nullptr);
    REQUIRE(Run("rewire.layer_norm", {&x, &scale, &bias, &stock}, {{"epsilon", 1e-3}}) == "");
    CheckNear(out, stock, 1, 1e-5F);
    rewire_embedded_rms_norm_f32(&p, Data<float>(x), Data<float>(scale), Data<float>(out));
    REQUIRE(Run("rewire.rms_norm", {&x, &scale, &stock}, {{"epsilon", 1e-3}}) == "");
    CheckNear(out, stock, 1, 1e-5F);

    const int groups = draw.Int(1, 3), channels = draw.Int(1, 3), positions = draw.Int(2, 9);
    x = draw.Floats({rows, groups * channels, positions});
    out = HostTensor::Empty<float>(x.shape());
    stock = out;
    scale = draw.Floats({groups * channels});
    bias = draw.Floats({groups * channels});
    const rewire_embedded_group_norm group = {rows, groups, channels, positions, 1e-3F};
    rewire_embedded_group_norm_f32(&group, Data<float>(x), Data<float>(scale), Data<float>(bias),
                                   Data<float>(out));
    REQUIRE(Run("rewire.group_norm", {&x, &scale, &bias, &stock},
                {{"num_groups", groups}, {"epsilon", 1e-3}}) == "");
    CheckNear(out, stock, 1, 1e-5F);

    HostTensor mean = draw.Floats({groups * channels}),
               variance = draw.Filled<float>({groups * channels}, [&] { return draw.Float() + 1; });
    const rewire_embedded_batch_norm batch = {{rows, groups * channels, positions}, 1e-5F};
    rewire_embedded_batch_norm_f32(&batch, Data<float>(x), Data<float>(scale), Data<float>(bias),
                                   Data<float>(mean), Data<float>(variance), Data<float>(out));
    REQUIRE(Run("rewire.batch_norm", {&x, &scale, &bias, &mean, &variance, &stock}, {{"epsilon", 1e-5}}) ==
            "");
    if (StockFuses()) CheckSame<float>(out, stock);
  }
}

TEST_CASE("embedded reductions equal the stock kernels") {
  struct Named {
    const char* kernel;
    void (*reduce)(const rewire_embedded_reduce*, const float*, float*);
  };
  const Named all[] = {
#define NAMED(name) {"rewire.reduce_" #name, &rewire_embedded_reduce_##name##_f32}
      NAMED(sum),        NAMED(mean), NAMED(prod), NAMED(max), NAMED(min),
      NAMED(sum_square), NAMED(l1),   NAMED(l2)
#undef NAMED
  };
  Draw draw(64);
  for (int i = 0; i < 400; ++i) {
    const Named& named = all[draw.Int(0, std::size(all) - 1)];
    Shape shape, kept;
    std::vector<std::int64_t> axes;
    const int rank = draw.Int(1, 4);
    for (int axis = 0; axis < rank; ++axis) shape.push_back(draw.Of({1, 2, 3, 4, 5}));
    rewire_embedded_reduce p{};
    std::int32_t step = 1;
    for (const std::int64_t size : shape) step *= static_cast<std::int32_t>(size);
    for (int axis = 0; axis < rank; ++axis) {
      const auto size = static_cast<std::int32_t>(shape[static_cast<std::size_t>(axis)]);
      step /= size;
      if (axis == rank - 1 ? axes.empty() : draw.Bool()) {
        axes.push_back(axis);
        p.reduced[p.reduced_rank] = size;
        p.reduced_steps[p.reduced_rank++] = step;
      } else {
        kept.push_back(size);
        p.kept[p.kept_rank] = size;
        p.kept_steps[p.kept_rank++] = step;
      }
    }
    // Few values, so that products stay exact.
    const bool products = std::string(named.kernel) == "rewire.reduce_prod";
    HostTensor x = products ? draw.Filled<float>(shape,
                                                 [&] {
                                                   return draw.Of({1.0F, -1.0F, 2.0F, 0.5F});
                                                 })
                            : draw.Whole(shape);
    HostTensor out = HostTensor::Empty<float>(kept), stock = out;
    CAPTURE(i, named.kernel, rank, axes.size());
    named.reduce(&p, Data<float>(x), Data<float>(out));
    REQUIRE(Run(named.kernel, {&x, &stock}, {{"axes", axes}, {"keepdims", 0}}) == "");
    CheckNear(out, stock, 1);  // a mean's division may be a product
  }
}

TEST_CASE("embedded gather equals the stock kernel, and says of an index out of range") {
  Draw draw(65);
  for (int i = 0; i < 100; ++i) {
    const int outer = draw.Int(0, 3), axis = draw.Int(1, 5), inner = draw.Int(1, 4), count = draw.Int(0, 6);
    HostTensor x = draw.Bytes<std::int16_t>({outer, axis, inner});
    HostTensor indices =
        draw.Filled<std::int64_t>({count}, [&] { return std::int64_t{draw.Int(-axis, axis - 1)}; });
    HostTensor narrow = HostTensor::Empty<std::int32_t>({count});
    for (int j = 0; j < count; ++j)
      Data<std::int32_t>(narrow)[j] = static_cast<std::int32_t>(Data<std::int64_t>(indices)[j]);
    HostTensor out = HostTensor::Empty<std::int16_t>({outer, count, inner}), stock = out, other = out;
    CAPTURE(i, outer, axis, inner, count);
    const rewire_embedded_gather p = {outer, axis, count, inner * 2};
    REQUIRE(rewire_embedded_gather_i64(&p, Data<std::int16_t>(x), Data<std::int64_t>(indices),
                                       Data<std::int16_t>(out)) == 0);
    REQUIRE(rewire_embedded_gather_i32(&p, Data<std::int16_t>(x), Data<std::int32_t>(narrow),
                                       Data<std::int16_t>(other)) == 0);
    REQUIRE(Run("rewire.gather", {&x, &indices, &stock}, {{"axis", 1}}) == "");
    CheckSame<std::int16_t>(out, stock);
    CheckSame<std::int16_t>(other, stock);
    if (count == 0 || outer == 0) continue;
    for (const std::int64_t wrong : {std::int64_t{axis}, std::int64_t{-axis - 1}, std::int64_t{1} << 32}) {
      Data<std::int64_t>(indices)[draw.Int(0, count - 1)] = wrong;
      REQUIRE(rewire_embedded_gather_i64(&p, Data<std::int16_t>(x), Data<std::int64_t>(indices),
                                         Data<std::int16_t>(out)) == 1);
    }
  }
}

}  // namespace rewire::test::embedded
