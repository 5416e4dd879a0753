// SPDX-License-Identifier: Apache-2.0
//
// Tensors of Python (the buffer protocol and DLPack) as tensors of Rewire, and back, without copying.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string_view>

#include "rewire/vm/tensor.h"
#include "rewire/vm/value.h"

namespace rewire::python {

namespace nb = nanobind;

enum class Access { kRead, kWrite };

// The most dimensions of a tensor that comes from Python or goes there.
inline constexpr int kMostDims = 32;

// Refers to the memory of a Python object: one that has a buffer, else one of DLPack, else whatever
// numpy.asarray makes an array of. The tensor keeps the object alive, and its view is read-only if the object
// is. `what` names the object in errors.
//
// Raises InvalidArgumentError if it is no tensor, lies on another device than the host, or is to be written
// and is read-only.
Tensor Import(nb::handle object, Access access, std::string_view what);

// The memory of a rewire.Capacity, whose array must be contiguous.
Tensor ImportCapacity(nb::handle array, std::string_view what);

// A tensor over memory that must not be written, which `owner` keeps alive.
Tensor WrapReadOnly(const TensorView& view, std::shared_ptr<const void> owner);

// An input of any form: a tensor as above, an integer for a function that wants one, or an Adt.
Value ImportValue(nb::handle object, bool wants_integer, std::string_view what);

// A numpy array over the tensor's memory, which it keeps alive. An element type that numpy lacks needs
// ml_dtypes; without it the result is a rewire.Tensor.
nb::object ToNumpy(const Tensor& tensor);
// The same for a tensor that a run has made in the memory of a capacity, which the array keeps alive.
nb::object ToNumpyIn(const Tensor& made, const Tensor& capacity);
// A tensor as above, an int, or an Adt.
nb::object ToPython(const Value& value);

// Releases Python references from any thread. Does nothing when the interpreter is gone.
void ReleaseWithGil(PyObject* object);

void AddTensor(nb::module_& module);
void AddValues(nb::module_& module);

}  // namespace rewire::python
