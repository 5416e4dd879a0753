// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/fused.h"

namespace rewire::kernel::onednn {

void Activation::Read(Attributes& attributes) {
  kind = attributes.Choice(
      "activation",
      {"none", "relu", "clip", "sigmoid", "tanh", "hard_swish", "swish", "gelu", "elu", "leaky_relu"}, 0);
  alpha = static_cast<float>(attributes.Float("alpha", 0));
  beta = static_cast<float>(attributes.Float("beta", 0));
}

void Activation::AppendTo(dnnl::primitive_attr* attributes) const {
  using Algorithm = dnnl::algorithm;
  struct Row {
    Algorithm algorithm;
    float alpha, beta;
  };
  const Row rows[] = {
      {Algorithm::undef, 0, 0},
      {Algorithm::eltwise_relu, 0, 0},
      {Algorithm::eltwise_clip, alpha, beta},
      {Algorithm::eltwise_logistic, 0, 0},
      {Algorithm::eltwise_tanh, 0, 0},
      {Algorithm::eltwise_hardswish, 0, 0},
      {Algorithm::eltwise_swish, 1, 0},
      {Algorithm::eltwise_gelu_erf, 0, 0},
      {Algorithm::eltwise_elu, alpha, 0},
      {Algorithm::eltwise_relu, alpha, 0},
  };
  if (kind == 0) return;
  dnnl::post_ops after;
  after.append_eltwise(1.0F, rows[kind].algorithm, rows[kind].alpha, rows[kind].beta);
  attributes->set_post_ops(after);
}

}  // namespace rewire::kernel::onednn
