// SPDX-License-Identifier: Apache-2.0
#include "rewire/python/bindings/arrays.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "rewire/base/dtype.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/formats.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

namespace rewire::python {
namespace {

[[noreturn]] void Refuse(std::string_view what, const std::string& why) {
  Raise(Error(StatusCode::kInvalidArgument, std::string(what) + ": " + why));
}

std::string TypeName(nb::handle object) { return nb::cast<std::string>(nb::str(nb::inst_name(object))); }

std::string ModuleOfType(nb::handle object) {
  const nb::object name = nb::getattr(object.type(), "__module__", nb::str(""));
  return nb::cast<std::string>(nb::str(name));
}

// Holds a buffer of a Python object until the last tensor over it is gone, on whichever thread that is.
struct BufferOwner {
  Py_buffer buffer{};

  BufferOwner() = default;
  BufferOwner(const BufferOwner&) = delete;
  BufferOwner& operator=(const BufferOwner&) = delete;
  ~BufferOwner() {
    if (buffer.obj == nullptr || Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&buffer);
  }
};

TensorView ViewOf(const Py_buffer& buffer, DLDataType dtype, std::string_view what) {
  if (buffer.ndim > kMostDims) Refuse(what, "it has " + std::to_string(buffer.ndim) + " dimensions");
  std::int64_t shape[kMostDims], strides[kMostDims];
  bool contiguous = true;
  std::int64_t expected = buffer.itemsize;
  for (int i = buffer.ndim - 1; i >= 0; --i) {
    shape[i] = buffer.shape[i];
    const std::int64_t stride = buffer.strides == nullptr ? expected : buffer.strides[i];
    if (stride % buffer.itemsize != 0) {
      Refuse(what, "its elements do not lie at multiples of their size; copy it first");
    }
    strides[i] = stride / buffer.itemsize;
    contiguous = contiguous && (stride == expected || shape[i] == 1);
    expected *= shape[i];
  }
  const auto rank = static_cast<std::size_t>(buffer.ndim);
  const Span<const std::int64_t> steps(strides, contiguous ? 0 : rank);
  if (buffer.readonly == 0) return TensorView(buffer.buf, dtype, {shape, rank}, kHost, steps);
  return TensorView(static_cast<const void*>(buffer.buf), dtype, {shape, rank}, kHost, steps);
}

// An empty tensor, and no exception, if the object has no buffer of plain numbers.
Tensor ImportBuffer(nb::handle object, std::string_view what, const DLDataType* dtype) {
  auto owner = std::make_shared<BufferOwner>();
  if (PyObject_GetBuffer(object.ptr(), &owner->buffer, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return {};
  }
  const Py_buffer& buffer = owner->buffer;
  const std::optional<DLDataType> found =
      dtype != nullptr ? *dtype
                       : DTypeOfFormat(buffer.format == nullptr ? "B" : buffer.format, buffer.itemsize);
  if (!found) return {};
  const TensorView view = ViewOf(buffer, *found, what);
  return Take(Tensor::Wrap(view, std::move(owner)));
}

// Takes over the managed tensor of a capsule, which then says that it was used.
template <typename Managed>
Tensor TakeCapsule(nb::handle capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used) != 0) throw nb::python_error();
  return Take(Tensor::FromDLPack(managed));
}

nb::object CapsuleOf(nb::handle object) {
  const nb::object method = object.attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {  // of an exporter that is older than versions
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return method();
}

Tensor ImportDLPack(nb::handle object, std::string_view what) {
  if (nb::hasattr(object, "__dlpack_device__")) {
    const nb::object device = object.attr("__dlpack_device__")();
    const int type = nb::cast<int>(nb::object(nb::int_(nb::object(device[0]))));
    if (type != kDLCPU && type != kDLCUDAHost) {
      Refuse(what, "it lies on a device of DLPack's type " + std::to_string(type) +
                       ", and programs run on the host; copy it there first");
    }
  }
  const nb::object capsule = CapsuleOf(object);
  // Nothing of a capsule is read here: what it has depends on its version, which FromDLPack checks.
  constexpr const char* kVersioned = "dltensor_versioned";
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned) != 0) {
    return TakeCapsule<DLManagedTensorVersioned>(capsule, kVersioned, "used_dltensor_versioned");
  }
  return TakeCapsule<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
}

// Import, whether or not the object may be written. `access` only says what else than an array may stand in.
Tensor ImportAny(nb::handle object, Access access, std::string_view what) {
  if (PyObject_CheckBuffer(object.ptr()) != 0) {
    Tensor found = ImportBuffer(object, what, nullptr);
    if (found) return found;
  }
  // numpy shows no buffer of the types of ml_dtypes; their bits have one.
  if (PyObject_CheckBuffer(object.ptr()) != 0 && ModuleOfType(object) == "numpy" &&
      std::string_view(nb::str(nb::object(object.attr("dtype"))).c_str()) == "bfloat16") {
    constexpr DLDataType kBFloat16 = MakeDType(kBFloat, 16);
    const nb::object bits = object.attr("view")("uint16");
    Tensor found = ImportBuffer(bits, what, &kBFloat16);
    if (found) return found;
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0 && ModuleOfType(object) == "numpy") {
    const std::string dtype = nb::cast<std::string>(nb::str(nb::object(object.attr("dtype"))));
    Refuse(what, "elements of type " + dtype + " are not supported; convert them with astype");
  }
  if (nb::hasattr(object, "__dlpack__")) return ImportDLPack(object, what);
  if (access == Access::kWrite) {
    Refuse(what, "a " + TypeName(object) +
                     " has no memory to write to; give an array of numpy, torch or anything of DLPack");
  }
  const nb::object array = nb::module_::import_("numpy").attr("asarray")(object);
  Tensor found = ImportBuffer(array, what, nullptr);
  if (!found) Refuse(what, "a " + TypeName(object) + " is no array of numbers");
  return found;
}

}  // namespace

void ReleaseWithGil(PyObject* object) {
  if (object == nullptr || Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  Py_DECREF(object);
}

Tensor Import(nb::handle object, Access access, std::string_view what) {
  Tensor found = ImportAny(object, access, what);
  if (access == Access::kWrite && found.view().read_only()) {
    Refuse(what, "the array is read-only, and the output is written there; give a writable one");
  }
  return found;
}

Tensor ImportCapacity(nb::handle array, std::string_view what) {
  Tensor memory = Import(array, Access::kWrite, what);
  if (!memory.view().IsContiguous()) {
    Raise(Error(StatusCode::kInvalidArgument,
                std::string(what) + ": the array of a Capacity must be contiguous"));
  }
  return memory;
}

Tensor WrapReadOnly(const TensorView& view, std::shared_ptr<const void> owner) {
  const void* data = view.data();
  const Span<const std::int64_t> strides(view.dl().strides, view.IsContiguous() ? 0 : view.shape().size());
  return Take(Tensor::Wrap({data, view.dtype(), view.shape(), view.device(), strides}, std::move(owner)));
}

}  // namespace rewire::python
