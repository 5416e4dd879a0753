// SPDX-License-Identifier: Apache-2.0
// A tensor of a ParameterSet around bytes that lie somewhere else: in a mapped file, or decompressed.
#pragma once

#include <cstddef>
#include <string>

#include "rewire/base/message.h"
#include "rewire/base/shared_bytes.h"
#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/vm/tensor.h"

namespace rewire {

// Makes a tensor that refers to `bytes` and keeps their owner. Programs only read parameters, so sharing a
// mapped file is safe. Errors are those of Tensor::Wrap, with the parameter's name. Defined in the header,
// because librewire and librewire_prepare both use it.
inline Result<Tensor> ParameterTensor(const std::string& name, DLDataType dtype,
                                      Span<const std::int64_t> shape, const SharedBytes& bytes) {
  const TensorView view(const_cast<std::byte*>(bytes.view.data()), dtype, shape);
  Result<Tensor> tensor = Tensor::Wrap(view, bytes.owner);
  if (!tensor) return Forward(tensor, {"parameter {}", name});
  return tensor;
}

}  // namespace rewire
