// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/factory.h"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "rewire/base/array.h"
#include "rewire/base/dtype.h"
#include "rewire/vm/value/ffi_object.h"

namespace rewire {
namespace {

// A Shape on the heap: a factory may keep a reference to its argument.
struct ShapeObject {
  RewireFFIShapeObject ffi{};
  Array<std::int64_t> values;
};

void DeleteShape(void* self, int flags) {
  if ((flags & kRewireFFIWeakGone) != 0) delete static_cast<ShapeObject*>(self);
}

RewireFFIObject* NewShape(const Array<std::int64_t>& values) {
  auto* shape = new ShapeObject{{}, values};
  shape->ffi.header = {kNewObjectCount, kRewireFFIShape, 0, &DeleteShape};
  shape->ffi.cell = {shape->values.data(), shape->values.size()};
  return &shape->ffi.header;
}

// A list of floats for the time of the call.
struct FloatList {
  std::int64_t size;
  std::int64_t stride = 1;
  DLTensor tensor{};
};

// The arguments of a factory call and what they refer to.
class FactoryArguments {
 public:
  explicit FactoryArguments(const Array<Attribute>& attributes) {
    args_.reserve(2 * attributes.size());
    lists_.reserve(attributes.size());
    for (const Attribute& attribute : attributes) {
      AddString(attribute.name);
      std::visit([this](const auto& value) { Add(value); }, attribute.value);
    }
  }
  ~FactoryArguments() {
    for (RewireFFIAny& arg : args_) ReleaseAny(&arg);
  }
  FactoryArguments(const FactoryArguments&) = delete;
  FactoryArguments& operator=(const FactoryArguments&) = delete;

  const RewireFFIAny* data() const { return args_.data(); }
  std::int32_t size() const { return static_cast<std::int32_t>(args_.size()); }

 private:
  RewireFFIAny& Next(std::int32_t type_index) {
    RewireFFIAny& any = args_.emplace_back();
    any.type_index = type_index;
    return any;
  }
  void AddString(const std::string& value) { Next(kRewireFFIRawStr).v_c_str = value.c_str(); }
  void Add(std::int64_t value) { Next(kRewireFFIInt).v_int64 = value; }
  void Add(double value) { Next(kRewireFFIFloat).v_float64 = value; }
  void Add(const std::string& value) { AddString(value); }
  void Add(const Array<std::int64_t>& value) { Next(kRewireFFIShape).v_obj = NewShape(value); }
  void Add(const Array<double>& value) {
    FloatList& list = lists_.emplace_back();
    list.size = static_cast<std::int64_t>(value.size());
    list.tensor.data = const_cast<double*>(value.data());  // the ABI has no pointer to const
    list.tensor.device = {kDLCPU, 0};
    list.tensor.ndim = 1;
    list.tensor.dtype = kFloat64;
    list.tensor.shape = &list.size;
    list.tensor.strides = &list.stride;
    Next(kRewireFFIDLTensorPtr).v_ptr = &list.tensor;
  }

  Array<RewireFFIAny> args_;
  Array<FloatList> lists_;  // with room for all: they stay where they are
};

// Keeps a function object and the library of its code.
struct MadeKernel {
  RewireFFIObject* object;
  std::shared_ptr<const void> library;  // goes after the object

  MadeKernel(RewireFFIObject* made, std::shared_ptr<const void> code)
      : object(made), library(std::move(code)) {}
  MadeKernel(const MadeKernel&) = delete;
  MadeKernel& operator=(const MadeKernel&) = delete;
  ~MadeKernel() { ReleaseObject(object); }
};

}  // namespace

Result<PackedFunction> MakeFromFactory(const PackedFunction& factory, const KernelImport& import,
                                       const std::string& source) {
  const Message where{"factory of kernel '{}' ({})", import.name, source};
  const FactoryArguments arguments(import.attributes);
  RewireFFIAny result{};
  if (factory.call(factory.handle, arguments.data(), arguments.size(), &result) != 0) {
    ReleaseAny(&result);
    return Fail(StatusCode::kKernelFailed, "{}: {}", where, TakeErrorText(factory));
  }
  if (result.type_index != kRewireFFIFunction || result.v_obj == nullptr) {
    const std::int32_t given = result.type_index;
    ReleaseAny(&result);
    return Fail(StatusCode::kKernelFailed,
                "{}: it returned a value of type index {}, expected a function (type index {}); an import "
                "with attributes must name a factory",
                where, given, kRewireFFIFunction);
  }
  const auto* made = reinterpret_cast<const RewireFFIFunctionObject*>(result.v_obj);
  PackedFunction function;
  function.call = made->cell.safe_call;
  function.handle = result.v_obj;
  function.take_error = factory.take_error;
  function.workspace = factory.workspace;
  function.row = factory.row;
  function.work = factory.work;
  function.error_context = factory.error_context;
  function.owner = std::make_shared<MadeKernel>(result.v_obj, factory.owner);
  return function;
}

}  // namespace rewire
