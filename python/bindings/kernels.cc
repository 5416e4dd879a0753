// SPDX-License-Identifier: Apache-2.0
//
// Python functions as packed functions.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rewire/python/bindings/arrays.h"
#include "rewire/python/bindings/errors.h"
#include "rewire/python/bindings/program.h"
#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/loader/kernel_api.h"
#include "rewire/vm/value/memory_range.h"
#include "rewire/vm/value/shape.h"

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

// The tensors of one call, as the function gets them. They end with the call, because the program uses their
// memory again. Python gets a tensor of its own for each. Whatever it makes of that, such as an array, a view
// or an export, refers to it. So its last reference tells whether any of them is left.
class LentTensors {
 public:
  nb::object Lend(const RewireFFIAny& arg, std::uint32_t position, std::uint32_t count) {
    Tensor tensor = TensorOf(arg);
    const TensorView view = tensor.view();
    const auto owner = std::make_shared<const Tensor>(tensor);
    loans_.push_back({position, std::move(tensor), owner});
    // Arguments that the call only reads are read-only to the function, whatever they are to the host.
    if (WritesArgument(position, count)) return ToNumpy(Take(Tensor::Wrap(view, owner)));
    return ToNumpy(WrapReadOnly(view, owner));
  }

  // Whether a tensor shares memory with one that was lent.
  bool Overlap(const Tensor& tensor) const {
    const MemoryRange range = RangeOf(tensor.dl());
    return std::any_of(loans_.begin(), loans_.end(),
                       [&](const Loan& loan) { return range.Overlaps(RangeOf(loan.tensor.dl())); });
  }

  // Raises BufferError if the function has kept a tensor. The run then ends. So nobody writes the tensor's
  // memory later, unless it is the host's, and what was kept holds a reference to it.
  void CheckReturned() const {
    // Cycles of references hold nothing on purpose, such as that of a caught exception and its frame. Other
    // libraries let go of arrays when a collection begins. The youngest generation takes microseconds.
    for (int generation = 0; generation <= 2 && Kept() != loans_.end(); ++generation) Collect(generation);
    // Their threads may not have come to it yet. On a busy machine that takes some time.
    for (int wait = 1; wait <= kLongestWait && Kept() != loans_.end(); wait *= 2) {
      {
        const nb::gil_scoped_release release;
        std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      }
      Collect(0);
    }
    const auto kept = Kept();
    if (kept == loans_.end()) return;
    const std::string what = "the function keeps its argument " + std::to_string(kept->position) + ", " +
                             TensorText(kept->tensor.dl()) +
                             ", after its return, and the program uses that memory again; keep a copy of it";
    PyErr_SetString(PyExc_BufferError, what.c_str());
    throw nb::python_error();
  }

 private:
  struct Loan {
    std::uint32_t position;
    Tensor tensor;                     // of the program
    std::weak_ptr<const Tensor> lent;  // expires with the last reference that Python has
  };

  static constexpr int kLongestWait = 64;  // ms; the waits before it take as long again

  static void Collect(int generation) { nb::module_::import_("gc").attr("collect")(generation); }

  // With a reference, so that the memory outlives what the function may keep.
  static Tensor TensorOf(const RewireFFIAny& arg) {
    if (arg.type_index != kRewireFFITensor) return Take(Tensor::CopyOf(TensorView(*RewireTensorOf(&arg))));
    __atomic_fetch_add(&arg.v_obj->combined_ref_count, 1, __ATOMIC_RELAXED);
    return Value::Adopt(arg).tensor();
  }
  std::vector<Loan>::const_iterator Kept() const {
    return std::find_if(loans_.begin(), loans_.end(), [](const Loan& loan) { return !loan.lent.expired(); });
  }

  std::vector<Loan> loans_;
};

nb::object Argument(const RewireFFIAny* args, std::uint32_t position, std::uint32_t count,
                    LentTensors* lent) {
  const RewireFFIAny& arg = args[position];
  if (RewireTensorOf(&arg) != nullptr) return lent->Lend(arg, position, count);
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

// Returns false for anything but None and numbers.
bool SetNumber(nb::handle result, RewireFFIAny* out) {
  if (result.is_none()) return true;
  if (PyBool_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<bool>(result));
  } else if (PyLong_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<std::int64_t>(result));
  } else if (PyFloat_Check(result.ptr()) != 0) {
    kernel::internal::SetResult(out, nb::cast<double>(result));
  } else {
    return false;
  }
  return true;
}

// A result that is no number, or several as a tuple. One in an argument's memory is copied, because the
// argument ends with the call.
Value ResultOf(nb::handle result, const LentTensors& lent) {
  if (PyTuple_Check(result.ptr()) != 0) {
    std::vector<Value> fields;
    for (const nb::handle field : nb::borrow<nb::tuple>(result)) {
      // A tuple of tuples is no result of a kernel: what imports the field says so.
      const bool is_tuple = PyTuple_Check(field.ptr()) != 0;
      fields.push_back(is_tuple ? ImportValue(field, false, "the kernel's result") : ResultOf(field, lent));
    }
    return Take(Value::Adt(0, fields));
  }
  Value value = ImportValue(result, false, "the kernel's result");
  if (value.kind() != ValueKind::kTensor || !lent.Overlap(value.tensor())) return value;
  return Take(Tensor::CopyOf(value.tensor().view()));
}

int CallPython(void* handle, const RewireFFIAny* args, std::int32_t num_args, RewireFFIAny* result) {
  const nb::gil_scoped_acquire gil;
  LentTensors lent;
  try {
    RewireFFIAny number{};
    Value value;
    {
      nb::list given;
      const auto count = static_cast<std::uint32_t>(num_args);
      for (std::uint32_t i = 0; i < count; ++i) given.append(Argument(args, i, count, &lent));
      const nb::object function = nb::borrow(static_cast<PyObject*>(handle));
      const nb::object returned = function(*nb::borrow<nb::args>(nb::tuple(given)));
      if (!SetNumber(returned, &number)) value = ResultOf(returned, lent);
    }
    lent.CheckReturned();
    *result = value.kind() == ValueKind::kNone ? number : value.Release();
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
  packed.call = &CallPython;
  packed.handle = owner->object;
  packed.owner = std::move(owner);
  return packed;
}

}  // namespace rewire::python
