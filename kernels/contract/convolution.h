// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of convolution and pooling, the attributes of pools and the channels of convolutions.
#pragma once

#include <cstdint>

#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/contract/work_rule.h"

namespace rewire::names {

// Convolution.
inline constexpr char kConv[] = "rewire.conv";

// Deformable convolution.
inline constexpr char kDeformConv[] = "rewire.deform_conv";

// Convolution by packed weights.
inline constexpr char kPackedConv[] = "rewire.packed.conv";

// Transposed convolution by packed weights.
inline constexpr char kPackedConvTranspose[] = "rewire.packed.conv_transpose";

// Depthwise convolution by packed weights.
inline constexpr char kPackedDepthwise[] = "rewire.packed.depthwise";

// Depthwise convolution and the product behind it.
inline constexpr char kPackedSeparable[] = "rewire.packed.separable";

// Convolution in Winograd's form.
inline constexpr char kPackedWinograd[] = "rewire.packed.winograd";
inline constexpr char kPackedWinogradWeights[] = "rewire.packed.winograd_weights";

// Integer convolution.
inline constexpr char kConvInteger[] = "rewire.conv_integer";

// Integer convolution by packed weights.
inline constexpr char kPackedConvInteger[] = "rewire.packed.conv_integer";

// Depthwise integer convolution by packed weights.
inline constexpr char kPackedDepthwiseInteger[] = "rewire.packed.depthwise_integer";

// Pooling.
inline constexpr char kMaxPool[] = "rewire.max_pool";
inline constexpr char kAvgPool[] = "rewire.avg_pool";
inline constexpr char kLpPool[] = "rewire.lp_pool";

// Transposed convolution.
inline constexpr char kConvTranspose[] = "rewire.conv_transpose";
inline constexpr char kShapeConvTranspose[] = "rewire.shape.conv_transpose";
inline constexpr char kCol2im[] = "rewire.col2im";
inline constexpr char kShapeCol2im[] = "rewire.shape.col2im";

// Unpooling.
inline constexpr char kMaxUnpool[] = "rewire.max_unpool";
inline constexpr char kShapeMaxUnpool[] = "rewire.shape.max_unpool";

// By oneDNN.
inline constexpr char kOneDnnPackConv[] = "rewire.onednn.pack_conv";
inline constexpr char kOneDnnConv[] = "rewire.onednn.conv";
inline constexpr char kOneDnnPackConvTranspose[] = "rewire.onednn.pack_conv_transpose";
inline constexpr char kOneDnnConvTranspose[] = "rewire.onednn.conv_transpose";

inline constexpr WorkRule kConvolutionWork[] = {
    {.kernel = kConv, .products = "out * (w / w[0])", .factors = {0, 2}},
    {.kernel = kConvInteger, .products = "out * (w / w[0])"},
    {.kernel = kOneDnnConv, .products = "out * (weights / weights[0])"},
    // Packed weights are padded, so the depth is that of the image, whose channels are last.
    {.kernel = kPackedConv, .products = "out * x[-1] * kernel_shape"},
    {.kernel = kPackedConvInteger, .products = "out * x[-1] * kernel_shape"},
    // A tile of 4 x 4 elements of the output takes 6 x 6 products.
    {.kernel = kPackedWinograd,
     .products = "out * x[-1] * 36 / 16",
     .plain_products = "out * x[-1] * kernel_shape"},
    {.kernel = kPackedDepthwise, .products = "out * kernel_shape"},
    {.kernel = kPackedDepthwiseInteger, .products = "out * kernel_shape"},
    {.kernel = kPackedSeparable, .products = "out / out[-1] * x[-1] * (taps[0] + out[-1])"},
    // Each element of the output is in one window.
    {.kernel = kPackedConvTranspose, .products = "out * x[-1]"},
    // Each element of the input is multiplied with the weights of its channel.
    {.kernel = kConvTranspose, .products = "x * (w / w[0])", .factors = {0, 2}},
    {.kernel = kOneDnnConvTranspose, .products = "x * (weights / weights[0])"},
    {.kernel = kMaxPool, .operations = 1, .times = "kernel_shape"},
    {.kernel = kAvgPool, .operations = 1, .times = "kernel_shape"},
};

}  // namespace rewire::names

namespace rewire::contract {

// The attributes of pools besides those of their window (window.h). `Given` reads them by Bool and Int, as
// kernel::Attributes does.
struct MaxPoolAttributes {
  bool column_major = false;  // indices count along the columns of an image

  template <typename Given>
  void Read(Given& given) {
    column_major = given.Bool("storage_order", false);
  }
};

struct AveragePoolAttributes {
  bool count_pad = false;  // padding counts as elements that are 0

  template <typename Given>
  void Read(Given& given) {
    count_pad = given.Bool("count_include_pad", false);
  }
};

struct LpPoolAttributes {
  std::int64_t p = 2;  // the power

  template <typename Given>
  void Read(Given& given) {
    p = given.Int("p", 2, 1);
  }
};

// Checks the channels of x [N, C, ...] against those of w [M, C / groups, ...].
auto CheckChannels(const auto& x, const auto& w, std::int64_t groups, const auto& error)
    -> decltype(error("")) {
  if (w.size() != x.size() || w.size() < 3)
    return error("w has shape ", w, ", expected [M, C / group, ...] of the rank of x ", x);
  if (groups < 1 || Differ(Times(w[1], groups), x[1])) {
    return error("w has shape ", w, ", expected ", x[1], " / ", groups, " channels as x of shape ", x,
                 " with ", groups, " groups");
  }
  return {};
}

}  // namespace rewire::contract
