// SPDX-License-Identifier: Apache-2.0
// A primitive that multiplies by weights, made for one shape of its input, and those of one kernel of one VM.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <vector>

#include "kernels/onednn/engine.h"
#include "vm/kernel/tensor_view.h"

namespace rewire::kernel::onednn {

class Prepared {
 public:
  template <typename Forward>
  static std::unique_ptr<Prepared> Make(const typename Forward::primitive_desc& desc) {
    auto made = std::make_unique<Prepared>();
    made->primitive_ = Forward(desc);
    const auto memory = [](const dnnl::memory::desc& of) { return dnnl::memory(of, Engine(), nullptr); };
    made->x_ = memory(desc.src_desc());
    made->weights_ = memory(desc.weights_desc());
    made->bias_ = memory(desc.bias_desc());
    made->out_ = memory(desc.dst_desc());
    made->scratch_ = memory(desc.scratchpad_desc());
    return made;
  }

  // Tensors of the shapes that it was made for. Throws dnnl::error.
  Status Run(TensorView x, TensorView weights, TensorView bias, TensorView out);

 private:
  dnnl::primitive primitive_;
  dnnl::memory x_, weights_, bias_, out_, scratch_;
};

// By shape. Bounded: with more shapes than kMost the one that was made first goes.
class PreparedCache {
 public:
  // In the slot of the kernel that is running.
  static PreparedCache& OfThisKernel();

  // Null when there is none for this shape.
  Prepared* Find(ShapeView shape);
  Prepared* Add(ShapeView shape, std::unique_ptr<Prepared> prepared);

 private:
  static constexpr std::size_t kMost = 16;
  struct Item {
    std::vector<std::int64_t> shape;
    std::unique_ptr<Prepared> prepared;
  };
  std::vector<Item> items_;
};

}  // namespace rewire::kernel::onednn
