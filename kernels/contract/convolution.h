// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels of convolution and pooling.
#pragma once

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

}  // namespace rewire::names
