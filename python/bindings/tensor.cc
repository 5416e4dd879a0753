// SPDX-License-Identifier: Apache-2.0
//
// The class rewire.Tensor: memory of a program that Python code reads without a copy.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "rewire/base/dtype.h"
#include "rewire/python/bindings/arguments.h"
#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/formats.h"
#include "rewire/vm/kernel/dlpack_versioned.h"

namespace rewire::python {
namespace {

// The shape and strides that a buffer points to besides the data.
struct Dims {
  Py_ssize_t shape[kMostDims];
  Py_ssize_t strides[kMostDims];
};

int GetBuffer(PyObject* self, Py_buffer* buffer, int flags) {
  const auto& tensor = *nb::inst_ptr<Tensor>(self);
  const TensorView view = tensor.view();
  const bool read_only = view.read_only();
  if (read_only && (flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError, "the tensor is read-only: a constant, a parameter or an input");
    return -1;
  }
  if (!view.IsContiguous() || !IsHostDevice(view.device()) || view.shape().size() > kMostDims) {
    PyErr_SetString(PyExc_BufferError, "only contiguous tensors on the host have a buffer; use DLPack");
    return -1;
  }
  const auto size = static_cast<Py_ssize_t>(ElementBytes(view.dtype()));
  const char* format = FormatOfDType(view.dtype());
  auto* dims = new Dims;
  const int rank = static_cast<int>(view.shape().size());
  Py_ssize_t stride = size;
  for (int i = rank - 1; i >= 0; --i) {
    dims->shape[i] = static_cast<Py_ssize_t>(view.shape()[static_cast<std::size_t>(i)]);
    dims->strides[i] = stride;
    stride *= dims->shape[i];
  }
  buffer->buf = view.data();
  buffer->obj = Py_NewRef(self);
  buffer->len = static_cast<Py_ssize_t>(view.bytes());
  buffer->itemsize = size;
  buffer->readonly = read_only ? 1 : 0;
  buffer->ndim = rank;
  // Elements without a format are their bytes to whoever asks for none.
  buffer->format = const_cast<char*>((flags & PyBUF_FORMAT) != 0 ? format : nullptr);
  buffer->shape = (flags & PyBUF_ND) != 0 ? dims->shape : nullptr;
  buffer->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims->strides : nullptr;
  buffer->suboffsets = nullptr;
  buffer->internal = dims;
  return 0;
}

void ReleaseBuffer(PyObject* /*self*/, Py_buffer* buffer) { delete static_cast<Dims*>(buffer->internal); }

PyType_Slot slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&ReleaseBuffer)},
    {0, nullptr},
};

template <typename Managed>
void DropCapsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;  // somebody has taken the tensor over
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

constexpr const char kVersioned[] = "dltensor_versioned";
constexpr const char kUnversioned[] = "dltensor";

[[noreturn]] void RefuseExport(const std::string& why) { throw nb::buffer_error(why.c_str()); }

// Whether a consumer may name this stream. A tensor is complete before Python sees it, so that no stream has
// to wait for anything.
bool IsStreamOf(DLDevice device, nb::handle stream) {
  if (stream.is_none()) return true;
  const int type = DeviceTypeOf(device);
  if (PyLong_Check(stream.ptr()) == 0 || (type != kDLCUDA && type != kDLROCM)) return false;
  // The standard keeps some numbers out: 0 would mean two streams.
  const auto number = nb::cast<std::int64_t>(stream);
  return number >= -1 && number != 0 && (type == kDLCUDA || number < 1 || number > 2);
}

// The number that a pair (type or major, id or minor) has at `place`.
int At(nb::handle pair, int place) { return nb::cast<int>(nb::object(nb::int_(nb::object(pair[place])))); }

// A capsule over an exported tensor, which is deleted with the capsule unless somebody takes it over.
template <typename Managed, const char* kName>
nb::object CapsuleOver(Managed* managed) {
  if (managed == nullptr) throw std::bad_alloc();
  PyObject* capsule =
      PyCapsule_New(managed, kName, [](PyObject* dropped) { DropCapsule<Managed>(dropped, kName); });
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

// As the array API standard says (2023.12, __dlpack__).
nb::object ToDLPack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                    nb::handle copy) {
  const DLDevice device = tensor.dl().device;
  if (!IsStreamOf(device, stream)) {
    RefuseExport("stream: expected None for this device, got " + nb::cast<std::string>(nb::repr(stream)));
  }
  if (!dl_device.is_none() &&
      (At(dl_device, 0) != DeviceTypeOf(device) || At(dl_device, 1) != device.device_id)) {
    RefuseExport("dl_device: the tensor lies on device (" + std::to_string(DeviceTypeOf(device)) + ", " +
                 std::to_string(device.device_id) + "), and " + nb::cast<std::string>(nb::repr(dl_device)) +
                 " is asked for; copy it there first");
  }
  const bool copied = !copy.is_none() && nb::cast<bool>(copy);
  if (copied && !IsHostDevice(device)) RefuseExport("copy: only tensors on the host are copied here");
  const Tensor shared = copied ? Take(Tensor::CopyOf(tensor.view())) : tensor;
  if (!max_version.is_none() && At(max_version, 0) >= 1) {
    DLManagedTensorVersioned* managed = shared.ToDLPackVersioned();
    if (managed != nullptr && copied) managed->flags |= kDLPackIsCopied;
    return CapsuleOver<DLManagedTensorVersioned, kVersioned>(managed);
  }
  if (shared.view().read_only()) {
    RefuseExport(
        "the tensor is read-only, which DLPack before 1.0 cannot say; ask for max_version=(1, 0) or "
        "copy=True");
  }
  return CapsuleOver<DLManagedTensor, kUnversioned>(shared.ToDLPack());
}

// The shape as a tuple of ints.
nb::object ShapeOf(const Tensor& tensor) {
  nb::list dims;
  for (std::int64_t dim : tensor.shape()) dims.append(dim);
  return nb::tuple(dims);
}

// numpy's dtype objects, made once each; they live as long as the process.
nb::object NumpyDType(DLDataType dtype) {
  struct Known {
    DLDataType dtype;
    PyObject* object;
  };
  static Known known[24];
  static int count = 0;
  for (int i = 0; i < count; ++i) {
    if (known[i].dtype == dtype) return nb::borrow(known[i].object);
  }
  nb::object made;
  if (dtype == MakeDType(kBFloat, 16)) {
    try {
      const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
      made = nb::module_::import_("numpy").attr("dtype")(type);
    } catch (nb::python_error& missing) {
      if (!missing.matches(PyExc_ImportError)) throw;
      return nb::object();
    }
  } else {
    const char* format = FormatOfDType(dtype);
    if (format == nullptr) return nb::object();
    const std::string_view text = format;
    made = nb::module_::import_("numpy").attr("dtype")(text == "Zf" ? "F" : text == "Zd" ? "D" : format);
  }
  if (count < 24) known[count++] = {dtype, nb::object(made).release().ptr()};
  return made;
}

}  // namespace

nb::object ToNumpyIn(const Tensor& made, const Tensor& capacity) {
  return ToNumpy(Take(Tensor::Wrap(made.view(), std::make_shared<const Tensor>(capacity))));
}

nb::object ToNumpy(const Tensor& tensor) {
  const nb::object held = nb::cast(tensor);
  const nb::object dtype = NumpyDType(tensor.dtype());
  if (!dtype.is_valid() || !IsHostDevice(tensor.dl().device)) return held;
  static PyObject* const array = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  const nb::object shape = ShapeOf(tensor);
  // An array without elements needs no memory, and numpy asks for some.
  if (tensor.view().bytes() == 0) return nb::handle(array)(shape, dtype);
  PyObject* const args[] = {shape.ptr(), dtype.ptr(), held.ptr()};
  PyObject* made = PyObject_Vectorcall(array, args, 3, nullptr);
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

void AddTensor(nb::module_& module) {
  nb::class_<Tensor> tensor(
      module, "Tensor", nb::type_slots(slots),
      "A tensor in memory of a program or of whoever gave it. It has the buffer protocol and\n"
      "DLPack, so that other libraries read it without a copy, and keeps its memory alive. Any\n"
      "thread may use it.");
  tensor
      .def_prop_ro("shape", &ShapeOf, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "The dimensions, as a tuple of ints.")
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return DTypeName(self.dtype()); },
          "The element type as Rewire spells it: 'f32', 'i64', 'bf16', 'bool'.")
      .def_prop_ro(
          "data_ptr", [](const Tensor& self) { return reinterpret_cast<std::uintptr_t>(self.view().data()); },
          "The address of the first element.")
      .def_prop_ro(
          "nbytes", [](const Tensor& self) { return self.view().bytes(); }, "Bytes of all elements.")
      .def_prop_ro(
          "readonly", [](const Tensor& self) { return self.view().read_only(); },
          "True for what nobody may write: constants, parameters, and what was given as read-only.")
      .def("__repr__", [](const Tensor& self) {
        std::string text = "rewire.Tensor(" + DTypeName(self.dtype()) + "[";
        for (std::int64_t dim : self.shape()) {
          text += (text.back() == '[' ? "" : ", ") + std::to_string(dim);
        }
        return text + "])";
      });
  Method(
      tensor, "def numpy(self) -> numpy.typing.NDArray[typing.Any]",
      [](const Tensor& self, const Arguments&) { return ToNumpy(self); },
      "Returns a numpy array over the same memory.");
  Method(
      tensor,
      "def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None, "
      "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any",
      [](const Tensor& self, const Arguments& given) {
        return ToDLPack(self, given[0], given[1], given[2], given[3]);
      },
      "Returns a DLPack capsule, over the same memory unless copy=True. Raises BufferError for another\n"
      "device, for a stream that the device does not have, and for a read-only tensor if max_version is\n"
      "below (1, 0).");
  Method(
      tensor, "def __dlpack_device__(self) -> tuple[int, int]",
      [](const Tensor& self, const Arguments&) {
        const DLDevice device = self.dl().device;
        return nb::make_tuple(DeviceTypeOf(device), device.device_id);
      },
      "Returns DLPack's type and number of the device.");
  FunctionOf(
      module, "def tensor(array: rewire.types.Array) -> Tensor",
      [](const Arguments& given) { return Import(given[0], Access::kRead, "tensor"); },
      "Returns a Tensor over the memory of an array, which it keeps alive.");
}

}  // namespace rewire::python
