// SPDX-License-Identifier: Apache-2.0
// Loops over the windows of images with the channels first: in vectors where the windows fit, else element by
// element.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/convolution/pool/sliding_windows.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

inline Status CheckPool(const WindowAttributes& attributes, TensorView x, TensorView out, Window* window) {
  Checks checks;
  checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
  if (Status s = checks.Take(); !s.ok()) return s;
  if (Status s = attributes.Resolve(x.dims(), window); !s.ok()) return s;
  return CheckShape("out", out, window->OutputDims(x.dim(0), x.dim(1)).view());
}

// The elements of one plane that lie under the window at one output position.
template <typename T>
struct Covered {
  const T* plane;
  const WindowAxis* axes;
  Pace* pace;  // of a window that is so large that rows of it are reported; null for others
  std::int64_t position[kMaxSpatial];
  std::int64_t first[kMaxSpatial];
  std::int64_t last[kMaxSpatial];

  void MoveTo(int axis, std::int64_t o) {
    position[axis] = o;
    axes[axis].Inside(o, &first[axis], &last[axis]);
  }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int i = 0; i < kMaxSpatial; ++i) product *= std::max<std::int64_t>(0, last[i] - first[i]);
    return product;
  }
  // body(value, its index in the plane), in order, unless told to stop.
  template <typename Body>
  void ForEach(const Body& body) const {
    for (std::int64_t i = first[0]; i < last[0]; ++i) {
      const std::int64_t z = axes[0].start(position[0]) + i * axes[0].dilation;
      for (std::int64_t j = first[1]; j < last[1]; ++j) {
        const std::int64_t y = axes[1].start(position[1]) + j * axes[1].dilation;
        const std::int64_t line = (z * axes[1].input + y) * axes[2].input + axes[2].start(position[2]);
        const auto run = [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t k = first[2] + begin; k < first[2] + end; ++k) {
            const std::int64_t index = line + k * axes[2].dilation;
            body(plane[index], index);
          }
        };
        if (pace == nullptr)
          run(0, last[2] - first[2]);
        else if (!pace->Spend(1) || !pace->For(last[2] - first[2], 1, run))
          return;
      }
    }
  }
};

// body(covered, output index, plane number) for each output position of lines [first, last) of a plane.
// Returns false if told to stop.
template <typename T, typename Body>
bool ForWindowsOfLines(TensorView x, const Window& window, std::int64_t plane, std::int64_t first,
                       std::int64_t last, Pace& pace, const Body& body) {
  const std::int64_t taps = window.taps(), columns = window.axes[2].output, rows = window.axes[1].output;
  Covered<T> covered{
      x.data<T>() + plane * window.inputs(), window.axes, taps > kPace ? &pace : nullptr, {}, {}, {}};
  std::int64_t to = plane * window.outputs() + first * columns;
  const auto run = [&](std::int64_t ox, std::int64_t end) {
    for (; ox < end && !pace.stopped(); ++ox) {
      covered.MoveTo(2, ox);
      body(covered, to++, plane);
    }
  };
  for (std::int64_t line = first; line < last; ++line) {
    covered.MoveTo(0, line / rows);
    covered.MoveTo(1, line % rows);
    if (!pace.For(columns, std::min(taps, kPace), run)) return false;
  }
  return true;
}

// The same for all planes.
template <typename T, typename Body>
Status ForEachWindow(TensorView x, const Window& window, const Body& body) {
  const std::int64_t lines = Times(window.axes[0].output, window.axes[1].output);
  return ParallelFor(Times(x.dim(0), x.dim(1)), GrainOf(kGrain, window.outputs(), window.taps()),
                     [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                       for (std::int64_t p = begin; p < end; ++p) {
                         if (!ForWindowsOfLines<T>(x, window, p, 0, lines, pace, body)) return;
                       }
                     });
}

// Lines of a plane that are one task. Their windows share rows with those of the next task.
constexpr std::int64_t kTaskLines = 64;

// Pools in vectors where the windows fit, else by `body` as ForEachWindow does.
template <typename T, typename Body>
Status Slide(TensorView x, TensorView out, const Window& window, PoolKind kind, const Body& body) {
  if (!CanSlide<T>(window)) return ForEachWindow<T>(x, window, body);
  const SlideKernel<T> slide = ChooseSlideKernel<T>(kind);
  const std::int64_t lines = Times(window.axes[0].output, window.axes[1].output);
  const std::int64_t tasks = (lines + kTaskLines - 1) / kTaskLines;
  const std::int64_t in_task = Times(std::min(lines, kTaskLines), window.axes[2].output);
  return ParallelFor(
      Times(x.dim(0), x.dim(1), tasks), GrainOf(4 * kGrain, in_task, window.taps()),
      [&](std::int64_t begin, std::int64_t end, Pace& pace) {
        while (begin < end) {
          const std::int64_t plane = begin / tasks, first = begin % tasks;
          const std::int64_t last = std::min(tasks, first + end - begin);
          const PoolLines<T> of{window, x.data<T>() + plane * window.inputs(),
                                out.data<T>() + plane * window.outputs(), first * kTaskLines,
                                std::min(lines, last * kTaskLines)};
          if (!slide(of, pace) && !ForWindowsOfLines<T>(x, window, plane, of.first, of.last, pace, body))
            return;
          if (pace.stopped()) return;
          begin += last - first;
        }
      });
}

}  // namespace rewire::kernel::cpu
