// SPDX-License-Identifier: Apache-2.0
//
// The scale and zero of an element of a quantized tensor. Kernels of the CPU and of devices share it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/vm/kernel/attributes.h"

namespace rewire::kernel::cpu {

// The scale (and zero) of an element. There is one for the whole tensor or one for each position along an
// axis. With blocks there is one for each block of positions, at each place of the other axes.
struct ScaleChannels {
  std::int64_t count = 1;   // positions along the axis
  std::int64_t inner = 1;   // elements from one position to the next
  std::int64_t block = 0;   // positions of a block; 0: the scales are no blocks'
  std::int64_t blocks = 1;  // along the axis

  // Resolves the channels of a contiguous scale.
  Status Resolve(const char* name, TensorView scale, TensorView x, std::int64_t axis,
                 std::int64_t block_size = 0) {
    if (block_size == 0 && scale.size() == 1 && scale.ndim() <= 1) return Status();
    int along = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &along); !s.ok()) return s;
    count = x.dim(along);
    inner = Product(x.dims(), along + 1, x.ndim());
    if (block_size != 0) return ResolveBlocks(name, scale, x, along, block_size);
    if (scale.dims() == ShapeView(&count, 1)) return Status();
    return ValueError(name, " has shape ", scale.dims(), ", expected one element or [", count, "] as axis ",
                      along, " of x with shape ", x.dims());
  }
  std::int64_t of(std::int64_t i) const {
    if (block == 0) return count == 1 ? 0 : i / inner % count;
    const std::int64_t at = i / inner;
    return (at / count * blocks + at % count / block) * inner + i % inner;
  }
  // Elements that follow each other, and how far their scales are apart: 0 if they have one in common.
  struct Run {
    std::int64_t count;
    std::int64_t step;
  };
  // The elements from i on, short of `end`, whose scales follow each other or are one.
  Run RunAt(std::int64_t i, std::int64_t end) const {
    if (block == 0) {
      if (count == 1) return {end - i, 0};
      if (inner == 1) return {std::min(end - i, count - i % count), 1};
      return {std::min(end - i, inner - i % inner), 0};
    }
    if (block == 1) return {end - i, 1};
    if (inner > 1) return {std::min(end - i, inner - i % inner), 1};
    const std::int64_t at = i % count;
    return {std::min({end - i, block - at % block, count - at}), 0};
  }

 private:
  Status ResolveBlocks(const char* name, TensorView scale, TensorView x, int along, std::int64_t block_size) {
    block = block_size;
    blocks = count / block + (count % block != 0 ? 1 : 0);
    bool fits = scale.ndim() == x.ndim();
    for (int i = 0; fits && i < x.ndim(); ++i) fits = scale.dim(i) == (i == along ? blocks : x.dim(i));
    if (fits) return Status();
    return ValueError(name, " has shape ", scale.dims(), ", expected that of x, ", x.dims(), ", with ",
                      blocks, " blocks of ", block, " on axis ", along);
  }
};

}  // namespace rewire::kernel::cpu
