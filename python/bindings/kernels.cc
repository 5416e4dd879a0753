// SPDX-License-Identifier: Apache-2.0
//
// Python functions as packed functions.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/vm/kernel/packed.h"

namespace rewire::python {
namespace {

// Released under the GIL, on whichever thread lets go of the program.
struct PythonFunction {
  PyObject* object;

  explicit PythonFunction(nb::object function) : object(function.release().ptr()) {}
  ~PythonFunction() { ReleaseWithGil(object); }
  PythonFunction(const PythonFunction&) = delete;
  PythonFunction& operator=(const PythonFunction&) = delete;
};

// A reference to the tensor, so that an array that the function keeps stays valid.
Tensor TensorOf(const RewireFFIAny& arg) {
  if (arg.type_index == kRewireFFITensor) {
    __atomic_fetch_add(&arg.v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
    return Value::Adopt(arg).tensor();
  }
  return Take(Tensor::Wrap(TensorView(*RewireTensorOf(&arg)), nullptr));
}

nb::object Argument(const RewireFFIAny& arg) {
  if (RewireTensorOf(&arg) != nullptr) return ToNumpy(TensorOf(arg));
  if (const auto text = kernel::StringOf(arg)) return nb::str(text->data(), text->size());
  switch (arg.type_index) {
    case kRewireFFINone:
      return nb::none();
    case kRewireFFIInt:
      return nb::int_(arg.v_int64);
    case kRewireFFIBool:
      return nb::bool_(arg.v_int64 != 0);
    case kRewireFFIFloat:
      return nb::float_(arg.v_float64);
    default:
      break;
  }
  const std::string kind = kernel::TypeIndexName(arg.type_index);
  throw nb::type_error(("a Python kernel cannot take an argument that is a " + kind).c_str());
}

void SetResult(nb::handle result, RewireFFIAny* out) {
  if (result.is_none()) return;
  if (PyBool_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<bool>(result));
  } else if (PyLong_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<std::int64_t>(result));
  } else if (PyFloat_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<double>(result));
  } else {
    *out = ImportValue(result, false, "the kernel's result").Release();
  }
}

int Call(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  const nb::gil_scoped_acquire gil;
  try {
    nb::list given;
    for (std::int32_t i = 0; i < num_args; ++i) given.append(Argument(args[i]));
    const nb::object function = nb::borrow(static_cast<PyObject*>(handle));
    SetResult(function(*nb::borrow<nb::args>(nb::tuple(given))), result);
    return 0;
  } catch (nb::python_error& raised) {
    const std::string kind = nb::cast<std::string>(nb::str(nb::object(raised.type().attr("__name__"))));
    const std::string text = nb::cast<std::string>(nb::str(raised.value()));
    SetKernelError(kind.c_str(), text.c_str());
    KeepCause(raised);
  } catch (const std::exception& thrown) {
    SetKernelError("TypeError", thrown.what());
  }
  return -1;
}

}  // namespace

PackedFunction MakePythonKernel(nb::object function) {
  auto owner = std::make_shared<PythonFunction>(std::move(function));
  PackedFunction packed;
  packed.call = &Call;
  packed.handle = owner->object;
  packed.owner = std::move(owner);
  return packed;
}

}  // namespace rewire::python
