// SPDX-License-Identifier: Apache-2.0
// Normalization of groups of channels, which lie one behind the other or side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/contract/layout_attribute.h"
#include "rewire/kernels/contract/normalization.h"
#include "rewire/kernels/cpu/normalization/spread.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"

namespace rewire::kernel::cpu {

struct GroupNorm : contract::GroupNormAttributes {
  static constexpr const char* kName = names::kGroupNorm;
  bool channels_last = false;
  static Status Make(Attributes& attributes, GroupNorm* norm) {
    norm->Read(attributes);
    norm->channels_last = contract::ReadChannelsLast(attributes);
    return Status();
  }
  Status operator()(TensorView x, TensorView scale, TensorView bias, TensorView out) const {
    if (Status s = CheckShaped(x, out); !s.ok()) return s;
    if (x.ndim() < 2)
      return ValueError("x has shape ", x.dims(), ", expected ",
                        channels_last ? "[N, ..., C]" : "[N, C, ...]");
    Form form;
    form.images = x.dim(0);
    form.channels = x.dim(channels_last ? x.ndim() - 1 : 1);
    form.parts = GroupsOf(form.channels);
    if (form.parts != 0 && form.channels % form.parts != 0)
      return ValueError("x has shape ", x.dims(), ": ", form.channels, " channels are no multiple of ",
                        form.parts, " groups");
    // One scale and bias for each channel, or for each group.
    const std::int64_t parameters =
        scale.ndim() == 1 && scale.dim(0) == form.parts ? form.parts : form.channels;
    if (Status s = CheckParameter("scale", scale, ShapeView(&parameters, 1), x, out); !s.ok()) return s;
    if (Status s = CheckParameter("bias", bias, ShapeView(&parameters, 1), x, out); !s.ok()) return s;
    if (x.size() == 0 || form.parts == 0) return Status();
    form.plane = x.size() / form.images / form.channels;
    form.part_channels = form.channels / form.parts;
    form.per_parameter = form.channels / parameters;
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Parameters<T> of = {scale.data<T>(), bias.data<T>()};
      return channels_last ? RunLast(form, x.data<T>(), of, out.data<T>())
                           : RunFirst(form, x.data<T>(), of, out.data<T>());
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    if (!channels_last) return true;
    const DLTensor* x = sizes.Tensor(0, 2);
    if (x == nullptr) return false;
    const std::int64_t columns = Times(x->shape[0], LastDim(x));
    sizes.Take(Times(2, columns), sizeof(double));
    sizes.Take(Times(3, columns), x->dtype.bits == 32 ? sizeof(float) : sizeof(double));
    return true;
  }

 private:
  struct Form {
    std::int64_t images, channels, plane;  // plane: positions of an image
    std::int64_t parts, part_channels, per_parameter;
  };
  template <typename T>
  struct Parameters {
    const T* scale;
    const T* bias;
  };

  // The channels lie one behind the other, so a group is one run.
  template <typename T>
  Status RunFirst(const Form& form, const T* x, const Parameters<T>& of, T* out) const {
    const RowFunctions<T> rows = ChooseRowFunctions<T>();
    const std::int64_t count = form.part_channels * form.plane;
    return ParallelFor(form.images * form.parts, GrainOf(kGrain, count),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           const Spread<T> spread = SpreadOf(rows, x + i * count, count, epsilon, pace);
                           for (std::int64_t c = 0; c < form.part_channels; ++c) {
                             const std::int64_t p =
                                 (i % form.parts * form.part_channels + c) / form.per_parameter;
                             const std::int64_t at = i * count + c * form.plane;
                             const auto scaled = [&](std::int64_t first, std::int64_t last) {
                               rows.scale(x + at + first, last - first, spread.center,
                                          spread.factor * of.scale[p], of.bias[p], out + at + first);
                             };
                             if (!pace.For(form.plane, 1, scaled)) return;
                           }
                         }
                       });
  }

  // The channels lie side by side: moments of all columns, which are added up by group, and then each
  // position in turn.
  template <typename T>
  Status RunLast(const Form& form, const T* x, const Parameters<T>& of, T* out) const {
    constexpr std::int64_t kColumns = 32;     // whole cache lines, whose sums are held in registers
    constexpr std::int64_t kElements = 8192;  // rows at once: they lie in the first cache
    const RowFunctions<T> rows = ChooseRowFunctions<T>();
    const std::int64_t channels = form.channels, columns = Times(form.images, channels);
    const std::int64_t image = form.plane * channels;
    double* sums = nullptr;
    T* centers = nullptr;
    if (Status s = Workspace(Times(2, columns), &sums); !s.ok()) return s;
    if (Status s = Workspace(Times(3, columns), &centers); !s.ok()) return s;
    double* squares = sums + columns;
    T *factors = centers + columns, *biases = factors + columns;
    if (Status s = FillAll(sums, 2 * columns, 0.0); !s.ok()) return s;
    // Until the means are known, the shifts of the moments: the first element of the group.
    const auto shift_of = [&](std::int64_t i) {
      const std::int64_t c = i % channels;
      return x[i / channels * image + c / form.part_channels * form.part_channels];
    };
    Status shifted = SerialFor(columns, 4, [&](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) centers[i] = shift_of(i);
    });
    if (!shifted.ok()) return shifted;
    const std::int64_t blocks = (channels + kColumns - 1) / kColumns;
    Status added = ParallelFor(
        form.images * blocks, GrainOf(kGrain, form.plane, std::min(channels, kColumns)),
        [&](std::int64_t begin, std::int64_t end, Pace& pace) {
          while (begin < end) {
            const std::int64_t n = begin / blocks, block = begin % blocks;
            const std::int64_t last = std::min(blocks, block + (end - begin)), first = block * kColumns;
            const std::int64_t width = std::min(channels, last * kColumns) - first, at = n * channels + first;
            const std::int64_t most = std::max<std::int64_t>(8, kElements / width);
            for (std::int64_t row = 0; row < form.plane; row += most) {
              const std::int64_t count = std::min(most, form.plane - row);
              if (!pace.Spend(count * width)) return;
              rows.add_column_moments(x + n * image + row * channels + first, count, channels, width,
                                      centers + at, sums + at, squares + at);
            }
            begin += last - block;
          }
        });
    if (!added.ok()) return added;
    Status found = SerialFor(
        columns / form.part_channels, 4 * form.part_channels, [&](std::int64_t part, std::int64_t end) {
          for (; part < end; ++part) {
            const std::int64_t at = part * form.part_channels;
            Moments moments;
            for (std::int64_t i = at; i < at + form.part_channels; ++i) moments.Add({sums[i], squares[i]});
            const Spread<T> spread = SpreadOf<T>(moments, form.part_channels * form.plane,
                                                 static_cast<double>(centers[at]), epsilon);
            for (std::int64_t i = at; i < at + form.part_channels; ++i) {
              const std::int64_t p = i % channels / form.per_parameter;
              centers[i] = spread.center;
              factors[i] = spread.factor * of.scale[p];
              biases[i] = of.bias[p];
            }
          }
        });
    if (!found.ok()) return found;
    return ParallelFor(form.images * form.plane, GrainOf(kGrain, channels),
                       [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                         for (std::int64_t r = begin; r < end; ++r) {
                           const std::int64_t first = r / form.plane * channels;
                           const auto scale = [&](std::int64_t c, std::int64_t last) {
                             rows.scale_columns(x + r * channels + c, last - c, centers + first + c,
                                                factors + first + c, biases + first + c,
                                                out + r * channels + c);
                           };
                           if (!pace.For(channels, 1, scale)) return;
                         }
                       });
  }
};

}  // namespace rewire::kernel::cpu
