// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of the lines of a tensor, on all threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rewire/kernels/cpu/signal/fourier.h"
#include "rewire/kernels/cpu/signal/fourier_steps.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {

// The lines that are transformed, and where they go. T is float or double; sums are double.
// `first_read(line)` and `first_written(line)` are where a line begins.
template <typename T, typename FirstRead, typename FirstWritten>
struct FourierLines {
  std::int64_t lines;
  std::int64_t length;   // of the transform
  std::int64_t given;    // samples of a line; those beyond are 0
  std::int64_t parts;    // of a sample: 1 or 2, the real and the imaginary one
  std::int64_t step;     // from a sample to the next
  const T* window;       // factors of the samples, or null
  bool inverse;          // the result is then divided by the length
  bool gives_real;       // samples are the first half of a real line's bins, and the result has one part
  std::int64_t kept;     // bins of the result
  std::int64_t to_step;  // from a bin to the next
  FirstRead first_read;
  FirstWritten first_written;

  Status Run() const {
    Pace pace;
    Fourier fourier;
    if (Status s = fourier.Init(length, inverse, packs(), pace); !s.ok()) return s;
    const std::int64_t lanes = Lanes(lines, length);
    const std::int64_t groups = (lines + lanes - 1) / lanes;
    const std::int64_t buffer = Times(2, fourier.numbers(), lanes);
    const std::int64_t tasks = Tasks(groups, lanes);
    double* buffers = nullptr;
    if (Status s = Workspace(Times(2, tasks, buffer), &buffers); !s.ok()) return s;
    return ParallelFor(tasks, 1, [&](std::int64_t task, std::int64_t end, Pace& paced) {
      for (; task < end; ++task) {
        double* data = buffers + 2 * task * buffer;
        for (std::int64_t g = groups * task / tasks; g < groups * (task + 1) / tasks; ++g) {
          if (!Read(g * lanes, lanes, data, paced)) return;
          const double* result = fourier.Run(data, data + buffer, lanes, paced);
          if (result == nullptr || !Write(g * lanes, lanes, result, paced)) return;
        }
      }
    });
  }

 private:
  // Real lines of even length are transformed as half as many complex numbers.
  bool packs() const { return parts == 1 && !gives_real && length % 2 == 0; }

  // So many lines at once fill vectors, and their numbers stay in the caches. A long line goes by itself.
  static std::int64_t Lanes(std::int64_t lines, std::int64_t length) {
    const std::int64_t most = std::min(BestFourierSteps().lanes, lines);
    std::int64_t lanes = 1;
    while (2 * lanes <= most && Times(2, lanes, length) <= kMostNumbers) lanes *= 2;
    return lanes;
  }
  // Each takes buffers of its own, so long lines have fewer.
  std::int64_t Tasks(std::int64_t groups, std::int64_t lanes) const {
    const std::int64_t by_work = Times(lines, length, 8) / kGrain;
    const std::int64_t by_memory = kMostTasks * kMostNumbers / Times(lanes, length);
    const std::int64_t threads = __rewire_kernel_api->thread_count();
    return std::max<std::int64_t>(1, std::min({groups, threads, kMostTasks, by_work, by_memory}));
  }

  bool Read(std::int64_t first, std::int64_t lanes, double* data, Pace& pace) const {
    const T* from[kMostLanes];
    for (std::int64_t l = 0; l < lanes; ++l) from[l] = first_read(std::min(first + l, lines - 1));
    const bool packed = packs();
    return pace.For(length, 2 * lanes, [&](std::int64_t k, std::int64_t end) {
      for (; k < end; ++k) {
        // The other half of a real line's bins are the conjugates of the first.
        const bool mirrored = gives_real && k > length / 2;
        const std::int64_t sample = mirrored ? length - k : k;
        const double weight = window == nullptr ? 1 : static_cast<double>(window[k]);
        double* real = data + (packed ? k : 2 * k) * lanes;
        if (sample >= given) {
          std::fill_n(real, packed ? lanes : 2 * lanes, 0.0);
          continue;
        }
        const std::int64_t at = sample * step;
        for (std::int64_t l = 0; l < lanes; ++l) real[l] = weight * static_cast<double>(from[l][at]);
        if (packed) continue;
        const double imaginary_weight = parts == 1 ? 0 : mirrored ? -weight : weight;
        for (std::int64_t l = 0; l < lanes; ++l) {
          real[lanes + l] = parts == 1 ? 0 : imaginary_weight * static_cast<double>(from[l][at + 1]);
        }
      }
    });
  }

  bool Write(std::int64_t first, std::int64_t lanes, const double* data, Pace& pace) const {
    T* to[kMostLanes];
    const std::int64_t count = std::min(lanes, lines - first);
    for (std::int64_t l = 0; l < count; ++l) to[l] = first_written(first + l);
    const bool packed = packs();
    const double scale = inverse ? 1 / static_cast<double>(length) : 1;
    return pace.For(kept, 2 * lanes, [&](std::int64_t k, std::int64_t end) {
      for (; k < end; ++k) {
        const bool mirrored = packed && k > length / 2;
        const double* real = data + 2 * (mirrored ? length - k : k) * lanes;
        const std::int64_t at = k * to_step;
        for (std::int64_t l = 0; l < count; ++l) to[l][at] = static_cast<T>(real[l] * scale);
        if (gives_real) continue;
        const double imaginary_scale = mirrored ? -scale : scale;
        for (std::int64_t l = 0; l < count; ++l)
          to[l][at + 1] = static_cast<T>(real[lanes + l] * imaginary_scale);
      }
    });
  }

 public:
  static constexpr std::int64_t kMostLanes = 8, kMostTasks = 8;
  static constexpr std::int64_t kMostNumbers = std::int64_t{1} << 15;  // of all lanes
};

// Declares the workspace of transforms of at most so many lines of at most this length.
inline void DeclareFourierLines(WorkspaceSizes& sizes, std::int64_t lines, std::int64_t length) {
  Fourier::DeclareWorkspace(sizes, length);
  // The longest buffers of all tasks: a convolution's are four times as long as the line.
  using Limits = FourierLines<float, int, int>;
  const std::int64_t at_once = std::min(Limits::kMostTasks * Limits::kMostLanes, Times(2, lines));
  const std::int64_t numbers = Fourier::MostNumbers(length);
  const std::int64_t within = Times(Limits::kMostTasks, 4, Limits::kMostNumbers + Limits::kMostLanes);
  sizes.Take(Times(4, std::max(numbers, std::min(Times(at_once, numbers), within))), sizeof(double));
}

}  // namespace rewire::kernel::cpu
