// SPDX-License-Identifier: Apache-2.0
//
// Convolution of images with one to three spatial axes.
//
// With many output channels, a group is one matrix product: weights [M, C * taps] by windows [C * taps,
// outputs]. The matrix of windows is never in memory as a whole; Gemm asks for blocks of it.
#include "rewire/kernels/cpu/convolution/conv.h"

#include <algorithm>

#include "rewire/kernels/contract/convolution.h"
#include "rewire/kernels/cpu/convolution/direct_conv.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/gemm_workspace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {

namespace {

// The channels of one group of one image, as the matrix of its windows.
template <typename T>
struct Windows {
  const T* image;
  WindowAxis depth, rows, columns;

  static void Pack(const void* context, std::int64_t k0, std::int64_t count, std::int64_t j0,
                   std::int64_t used, std::int64_t width, T* to) {
    const auto& self = *static_cast<const Windows*>(context);
    for (std::int64_t k = k0; k < k0 + count; ++k, to += width) {
      self.PackTap(k, j0, used, to);
      std::fill(to + used, to + width, T{0});
    }
  }

 private:
  // The input elements that tap k of the kernel meets at output positions j0 to j0 + count, row by row of the
  // output.
  void PackTap(std::int64_t k, std::int64_t j0, std::int64_t count, T* to) const {
    const std::int64_t kx = k % columns.kernel;
    const std::int64_t ky = k / columns.kernel % rows.kernel;
    const std::int64_t kz = k / (columns.kernel * rows.kernel) % depth.kernel;
    const std::int64_t channel = k / (columns.kernel * rows.kernel * depth.kernel);
    const T* plane = image + channel * depth.input * rows.input * columns.input;
    const std::int64_t shift = kx * columns.dilation - columns.before;
    std::int64_t begin, end;
    columns.Reached(kx, &begin, &end);
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t row = (j0 + done) / columns.output;
      const std::int64_t ox = (j0 + done) % columns.output;
      const std::int64_t run = std::min(columns.output - ox, count - done);
      const std::int64_t y = rows.start(row % rows.output) + ky * rows.dilation;
      const std::int64_t z = depth.start(row / rows.output) + kz * depth.dilation;
      T* at = to + done - ox;  // at[o] is output column o
      if (y < 0 || y >= rows.input || z < 0 || z >= depth.input) {
        std::fill_n(at + ox, run, T{0});
      } else {
        const T* line = plane + (z * rows.input + y) * columns.input + shift;
        const std::int64_t first = std::clamp(begin, ox, ox + run);
        const std::int64_t last = std::clamp(end, first, ox + run);
        std::fill(at + ox, at + first, T{0});
        if (columns.stride == 1)
          std::copy(line + first, line + last, at + first);
        else
          for (std::int64_t o = first; o < last; ++o) at[o] = line[o * columns.stride];
        std::fill(at + last, at + ox + run, T{0});
      }
      done += run;
    }
  }
};

struct Conv {
  static constexpr const char* kName = names::kConv;
  ConvAttributes attributes;

  static Status Make(Attributes& given, Conv* conv) { return conv->attributes.Read(given); }

  Status operator()(TensorView x, TensorView w, std::optional<TensorView> bias, TensorView out) const {
    Window window;
    if (Status s = CheckConvArguments(attributes, x, w, bias, out, &window); !s.ok()) return s;
    return ForType(Floats(), "x", x,
                   [&](auto tag) { return Run<typename decltype(tag)::type>(x, w, bias, out, window); });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor *x = sizes.Tensor(0), *w = sizes.Tensor(1, 3), *out = sizes.Tensor(-1, 3);
    if (x == nullptr || w == nullptr || out == nullptr) return false;
    if (w->shape[0] / attributes.groups < kLeastGemmChannels) return true;
    sizes.Take(MostPacked(SizeFrom(out, 2), SizeFrom(w, 1)), x->dtype.bits / 8);
    return true;
  }

 private:
  // Fewer of a group are not worth a product of matrices.
  static constexpr std::int64_t kLeastGemmChannels = 4;

  template <typename T>
  Status Run(TensorView x, TensorView w, const std::optional<TensorView>& bias, TensorView out,
             const Window& window) const {
    if (out.size() == 0) return Status();
    const std::int64_t outputs = window.outputs();
    const std::int64_t channels = out.dim(1);
    const std::int64_t group_channels = channels / attributes.groups;
    const std::int64_t in_channels = w.dim(1);
    Pace pace;
    for (std::int64_t i = 0; i < Times(out.dim(0), channels); ++i) {
      const T first = bias ? bias->data<T>()[i % channels] : T{0};
      if (!pace.Spend(1) || !pace.Fill(out.data<T>() + i * outputs, outputs, first)) return Stopped();
    }
    if (group_channels < kLeastGemmChannels) {
      const ConvSizes sizes{out.dim(0), channels, in_channels, attributes.groups};
      return DirectConv<T>(window, sizes, x.data<T>(), w.data<T>(), out.data<T>()).Run();
    }
    const std::int64_t depth = Times(in_channels, window.taps());
    GemmScratch<T> scratch;
    for (std::int64_t i = 0; i < Times(out.dim(0), attributes.groups); ++i) {
      const Windows<T> windows{x.data<T>() + i * in_channels * window.inputs(), window.axes[0],
                               window.axes[1], window.axes[2]};
      const std::int64_t group = i % attributes.groups;
      const Matrix<T> weights{w.data<T>() + group * group_channels * depth, depth, 1};
      T* to = out.data<T>() + i * group_channels * outputs;
      const Source<T> source{&Windows<T>::Pack, &windows};
      if (!pace.Spend(64)) return Stopped();
      Status s = Gemm<T>(group_channels, outputs, depth, weights, source, to, outputs, scratch);
      if (!s.ok()) return s;
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> ConvKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Conv>(
          "x, w, bias? -> out", "f32 f64",
          "group = 1, strides = ones, dilations = ones, pads = zeros (before each spatial axis, then after "
          "each), auto_pad = NOTSET, SAME_UPPER, SAME_LOWER or VALID",
          "x [N, C, ...] with one to three spatial axes, weights [M, C / group, ...], plus bias [M]"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
