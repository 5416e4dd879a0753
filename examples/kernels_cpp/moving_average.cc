// SPDX-License-Identifier: Apache-2.0
// A kernel library in C++: a kernel with an attribute and with state. Header-only helpers, nothing to link.
//
//   example.moving_average {window=3} (x: f32[...], out: f32[...])
//
// out is the element-wise mean of x and of what x was in the calls before, `window` of them at most. Each VM
// has a history of its own for each import of the kernel; a call with another shape starts it anew.
#include <algorithm>
#include <vector>

#include "rewire/vm/kernel/define.h"

REWIRE_KERNEL_LIBRARY;

namespace {

using rewire::kernel::Attributes;
using rewire::kernel::Status;
using rewire::kernel::TensorView;
using rewire::kernel::TypeError;
using rewire::kernel::ValueError;

// The state that changes from call to call. It lives in the VM's slot for the import, and the VM deletes it.
struct History {
  std::vector<std::int64_t> shape;
  std::vector<float> samples;  // up to `window` inputs, one behind the other, the oldest overwritten
  std::size_t count = 0;       // inputs in it
  std::size_t next = 0;        // where the next one goes

  static History* OfThisVm() {
    auto* history = static_cast<History*>(__rewire_kernel_api->get_slot());
    if (history == nullptr) {
      history = new History;
      __rewire_kernel_api->set_slot(history, [](void* state) { delete static_cast<History*>(state); });
    }
    return history;
  }
};

// The values of the attributes. Made once when a program is linked, then only read, by any number of threads.
struct MovingAverage {
  static constexpr const char kName[] = "example.moving_average";
  std::size_t window = 0;

  static Status Make(Attributes& attributes, MovingAverage* average) {
    attributes.Require("window");
    average->window = static_cast<std::size_t>(attributes.Int("window", 1, 1, 1000));
    return Status();
  }

  Status operator()(TensorView x, TensorView out) const {
    if (!x.Is<float>() || !out.Is<float>()) return TypeError("x and out: expected f32 tensors");
    if (!(x.dims() == out.dims())) {
      return ValueError("out has shape ", out.dims(), ", expected that of x, ", x.dims());
    }
    if (!x.IsContiguous() || !out.IsContiguous()) return ValueError("x and out: expected contiguous tensors");

    const auto size = static_cast<std::size_t>(x.size());
    const std::vector<std::int64_t> shape(x.dims().begin(), x.dims().end());
    History* history = History::OfThisVm();
    if (history->shape != shape) {
      *history = History();
      history->shape = shape;
      history->samples.resize(window * size);
    }
    std::copy_n(x.data<float>(), size,
                history->samples.begin() + static_cast<std::ptrdiff_t>(history->next * size));
    history->next = (history->next + 1) % window;
    history->count = std::min(history->count + 1, window);

    float* mean = out.data<float>();
    for (std::size_t i = 0; i < size; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < history->count; ++k) sum += history->samples[k * size + i];
      mean[i] = sum / static_cast<float>(history->count);
    }
    return Status();
  }
};

constexpr RewireKernelEntry kEntries[] = {rewire::kernel::Entry<MovingAverage>()};

}  // namespace

// The loader reads this: every kernel of the library.
extern "C" REWIRE_KERNEL_EXPORT const RewireKernelTable __rewire_kernel_table =
    rewire::kernel::Table(kEntries);
