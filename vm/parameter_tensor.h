// SPDX-License-Identifier: Apache-2.0
// A tensor of a ParameterSet around bytes that lie somewhere else: in a mapped file, or decompressed.
#pragma once

#include <cstddef>
#include <string>

#include "base/message.h"
#include "base/shared_bytes.h"
#include "base/span.h"
#include "base/status.h"
#include "vm/tensor.h"

namespace rewire {

// Refers to `bytes` and keeps their owner. Programs only read parameters, so that sharing a mapped file is
// sound. Errors as Tensor::Wrap, with the parameter's name. In the header for librewire and
// librewire_prepare.
inline Result<Tensor> ParameterTensor(const std::string& name, DLDataType dtype,
                                      Span<const std::int64_t> shape, const SharedBytes& bytes) {
  const TensorView view(const_cast<std::byte*>(bytes.view.data()), dtype, shape);
  Result<Tensor> tensor = Tensor::Wrap(view, bytes.owner);
  if (!tensor) return Forward(tensor, {"parameter {}", name});
  return tensor;
}

}  // namespace rewire
