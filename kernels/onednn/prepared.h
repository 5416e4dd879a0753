// SPDX-License-Identifier: Apache-2.0
//
// A primitive that multiplies by weights, made for one input shape; and a cache of the primitives of one
// kernel in one VM.
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <vector>

#include "rewire/kernels/onednn/engine.h"
#include "rewire/vm/kernel/tensor_view.h"

namespace rewire::kernel::onednn {

// Scratch memory of one call, which may run several primitives in turn.
class Scratchpad {
 public:
  // At least `bytes`; null if `bytes` is 0.
  Status Take(std::size_t bytes, void** memory);

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

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

  // The memory must have the shapes that the primitive was made for. `scratch` is reused by all runs of a
  // call. Throws dnnl::error.
  Status Run(const void* x, TensorView weights, TensorView bias, void* out, Scratchpad& scratch);

 private:
  dnnl::primitive primitive_;
  dnnl::memory x_, weights_, bias_, out_, scratch_;
};

// Primitives by shape. With more than kMost shapes, the oldest one is dropped.
class PreparedCache {
 public:
  // The cache in the slot of the kernel that is running.
  static PreparedCache& OfThisKernel();

  // Null if there is none for this shape.
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
