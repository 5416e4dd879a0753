// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/onednn/fused.h"

#include "rewire/kernels/contract/activation.h"

namespace rewire::kernel::onednn {

namespace {

// The activations that all libraries have, then one more.
enum Kind {
  kNone,
#define REWIRE_ACTIVATION_KIND(name, ...) k##name,
  REWIRE_ACTIVATIONS(REWIRE_ACTIVATION_KIND)
#undef REWIRE_ACTIVATION_KIND
      kElu,
};

}  // namespace

void Activation::Read(Attributes& attributes) {
#define REWIRE_ACTIVATION_TEXT(name, ...) names::Stem(names::k##name),
  kind = attributes.Choice("activation",
                           {"none", REWIRE_ACTIVATIONS(REWIRE_ACTIVATION_TEXT) names::Stem(names::kElu)}, 0);
#undef REWIRE_ACTIVATION_TEXT
  alpha = static_cast<float>(attributes.Float("alpha", 0));
  beta = static_cast<float>(attributes.Float("beta", 0));
}

void Activation::AppendTo(dnnl::primitive_attr* attributes) const {
  using Algorithm = dnnl::algorithm;
  dnnl::post_ops after;
  const auto append = [&](Algorithm algorithm, float a = 0, float b = 0) {
    after.append_eltwise(1.0F, algorithm, a, b);
  };
  switch (static_cast<Kind>(kind)) {
    case kNone:
      return;
    case kRelu:
      append(Algorithm::eltwise_relu);
      break;
    case kClip:
      append(Algorithm::eltwise_clip, alpha, beta);
      break;
    case kSigmoid:
      append(Algorithm::eltwise_logistic);
      break;
    case kTanh:
      append(Algorithm::eltwise_tanh);
      break;
    case kHardSwish:
      append(Algorithm::eltwise_hardswish);
      break;
    case kGelu:
      append(Algorithm::eltwise_gelu_erf);
      break;
    case kLeakyRelu:
      append(Algorithm::eltwise_relu, alpha);
      break;
    case kSwish:
      append(Algorithm::eltwise_swish, 1);
      break;
    case kElu:
      append(Algorithm::eltwise_elu, alpha);
      break;
  }
  attributes->set_post_ops(after);
}

}  // namespace rewire::kernel::onednn
