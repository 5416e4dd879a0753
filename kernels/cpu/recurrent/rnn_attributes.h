// SPDX-License-Identifier: Apache-2.0
//
// The attributes of recurrent layers. Kernels of devices read them, too.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "rewire/kernels/cpu/math/scalar_forms.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// A function between a matrix product and the state, by ONNX's names and in their order in rnn_attributes.cc.
struct GateFunction {
  enum Kind {
    kSigmoid,
    kTanh,
    kRelu,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus,
  };
  Kind kind = kSigmoid;
  double alpha = 0;
  double beta = 0;

  template <typename T>
  T operator()(T x) const {
    const auto a = static_cast<T>(alpha);
    const auto b = static_cast<T>(beta);
    switch (kind) {
      case kSigmoid:
        return functions::Sigmoid(x);
      case kTanh:
        return std::tanh(x);
      case kRelu:
        return functions::Relu(x);
      case kAffine:
        return a * x + b;
      case kLeakyRelu:
        return functions::PRelu(x, a);
      case kThresholdedRelu:
        return x < a ? T{0} : x;
      case kScaledTanh:
        return a * std::tanh(b * x);
      case kHardSigmoid:
        return functions::HardSigmoid(x, a, b);
      case kElu:
        return functions::Elu(x, a);
      case kSoftsign:
        return functions::Softsign(x);
      case kSoftplus:
        return functions::Softplus(x);
    }
    return x;
  }
};

struct RnnAttributes {
  std::int64_t hidden = 0;  // 0: the size follows from r
  int directions = 1;
  bool reversed = false;  // a single direction that goes backwards
  bool batch_first = false;
  bool packed = false;                  // w and r are (panels.h): f32 [directions * packed columns, depth]
  double clip = 0;                      // 0: none
  std::vector<GateFunction> functions;  // those of one direction, then of the other

  // `defaults` are the functions of one direction.
  Status Read(Attributes& attributes, std::initializer_list<GateFunction::Kind> defaults);
  // The functions of a direction.
  const GateFunction* FunctionsOf(int direction) const {
    return functions.data() +
           functions.size() / static_cast<std::size_t>(directions) * static_cast<std::size_t>(direction);
  }
  template <typename T>
  T Clip(T x) const {
    const auto limit = static_cast<T>(clip);
    return clip == 0 ? x : functions::Clip(x, -limit, limit);
  }
};

}  // namespace rewire::kernel::cpu
