// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/value.h"

#include <memory>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Fail;
using rewire::Forward;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::Tensor;
using rewire::Value;
using rewire::ValueKind;
using rewire::c_api::Boundary;
using rewire::c_api::Give;
using rewire::c_api::GiveManaged;
using rewire::c_api::Given;
using rewire::c_api::Require;

namespace rewire::c_api {

template <typename Managed>
Result<Value> TakeDLPack(Managed* managed) {
  if (Status ok = Require("managed", managed); !ok) return Forward(ok);
  Result<Tensor> tensor = Tensor::FromDLPack(managed);
  if (!tensor) return Forward(tensor);
  return Value(*std::move(tensor));
}
template Result<Value> TakeDLPack(DLManagedTensor* managed);
template Result<Value> TakeDLPack(DLManagedTensorVersioned* managed);

Result<rewire::Array<Value>> ValuesOf(const char* name, const RewireValue* const* handles,
                                      std::uint32_t count) {
  if (count > 0) {
    if (Status ok = Require(name, handles); !ok) return Forward(ok);
  }
  rewire::Array<Value> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (handles[i] == nullptr) {
      return Fail(StatusCode::kInvalidArgument, "{}[{}] is NULL", name, i);
    }
    values.push_back(handles[i]->value);
  }
  return values;
}

}  // namespace rewire::c_api

namespace {

Status CheckKind(const RewireValue* value, ValueKind expected) {
  if (Status ok = Require("value", value); !ok) return ok;
  const ValueKind given = value->value.kind();
  if (given == expected) return {};
  return Fail(StatusCode::kInvalidArgument, "the value is of kind {}, {} expected", ValueKindName(given),
              ValueKindName(expected));
}

}  // namespace

RewireStatus rewire_value_copy_tensor(const DLTensor* tensor, RewireValue** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    const auto view = rewire::c_api::ViewOf(tensor, "tensor");
    if (!view) return Forward(view);
    Result<Tensor> copy = Tensor::CopyOf(*view);
    if (!copy) return Forward(copy);
    Give(Value(*std::move(copy)), out);
    return {};
  });
}

RewireStatus rewire_value_wrap_tensor(const DLTensor* tensor, void (*release)(void* context), void* context,
                                      RewireValue** out) {
  return Boundary([&]() -> Status {
    std::shared_ptr<const void> owner;
    if (release != nullptr) owner.reset(tensor, [release, context](const void*) { release(context); });
    if (Status ok = Require("out", out); !ok) return ok;
    const auto view = rewire::c_api::ViewOf(tensor, "tensor");
    if (!view) return Forward(view);
    Result<Tensor> wrapped = Tensor::Wrap(*view, std::move(owner));
    if (!wrapped) return Forward(wrapped);
    Give(Value(*std::move(wrapped)), out);
    return {};
  });
}

RewireStatus rewire_value_from_dlpack(DLManagedTensor* managed, RewireValue** out) {
  return Boundary([&]() -> Status {
    Result<Value> value = rewire::c_api::TakeDLPack(managed);
    if (!value) return Forward(value);
    if (Status ok = Require("out", out); !ok) return ok;
    Give(*std::move(value), out);
    return {};
  });
}

RewireStatus rewire_value_from_dlpack_versioned(DLManagedTensorVersioned* managed, RewireValue** out) {
  return Boundary([&]() -> Status {
    Result<Value> value = rewire::c_api::TakeDLPack(managed);
    if (!value) return Forward(value);
    if (Status ok = Require("out", out); !ok) return ok;
    Give(*std::move(value), out);
    return {};
  });
}

RewireStatus rewire_value_from_integer(int64_t integer, RewireValue** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    Give(Value(integer), out);
    return {};
  });
}

RewireStatus rewire_value_make_adt(uint32_t tag, const RewireValue* const* fields, uint32_t count,
                                   RewireValue** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    const Result<rewire::Array<Value>> values = rewire::c_api::ValuesOf("fields", fields, count);
    if (!values) return Forward(values);
    return rewire::c_api::GiveMade(Value::Adt(tag, *values), out);
  });
}

RewireStatus rewire_value_share(const RewireValue* value, RewireValue** out) {
  return Boundary(Given("value,out", value, out), [&]() -> Status {
    Give(value->value, out);
    return {};
  });
}

void rewire_value_destroy(RewireValue* value) { delete value; }

RewireStatus rewire_value_kind(const RewireValue* value, RewireValueKind* kind) {
  return Boundary(Given("value,kind", value, kind), [&]() -> Status {
    *kind = static_cast<RewireValueKind>(value->value.kind());
    return {};
  });
}

RewireStatus rewire_value_tensor(const RewireValue* value, DLTensor* tensor) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kTensor); !ok) return ok;
    if (Status ok = Require("tensor", tensor); !ok) return ok;
    *tensor = value->value.tensor().dl();
    return {};
  });
}

RewireStatus rewire_value_to_dlpack(const RewireValue* value, DLManagedTensor** out) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kTensor); !ok) return ok;
    if (Status ok = Require("out", out); !ok) return ok;
    return GiveManaged(value->value.tensor().ToDLPack(), out);
  });
}

RewireStatus rewire_value_to_dlpack_versioned(const RewireValue* value, DLManagedTensorVersioned** out) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kTensor); !ok) return ok;
    if (Status ok = Require("out", out); !ok) return ok;
    return GiveManaged(value->value.tensor().ToDLPackVersioned(), out);
  });
}

RewireStatus rewire_value_integer(const RewireValue* value, int64_t* integer) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kInteger); !ok) return ok;
    if (Status ok = Require("integer", integer); !ok) return ok;
    *integer = value->value.integer();
    return {};
  });
}

RewireStatus rewire_value_adt(const RewireValue* value, uint32_t* tag, uint32_t* field_count) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kAdt); !ok) return ok;
    if (tag != nullptr) *tag = value->value.tag();
    if (field_count != nullptr) *field_count = value->value.field_count();
    return {};
  });
}

RewireStatus rewire_value_field(const RewireValue* value, uint32_t index, RewireValue** out) {
  return Boundary([&]() -> Status {
    if (Status ok = CheckKind(value, ValueKind::kAdt); !ok) return ok;
    if (Status ok = Require("out", out); !ok) return ok;
    const std::uint32_t count = value->value.field_count();
    if (index >= count) return rewire::c_api::OutOfRange("field", index, count);
    Give(value->value.field(index), out);
    return {};
  });
}

static_assert(kRewireValueTensor == static_cast<int>(ValueKind::kTensor) &&
              kRewireValueInteger == static_cast<int>(ValueKind::kInteger) &&
              kRewireValueAdt == static_cast<int>(ValueKind::kAdt) &&
              kRewireValueClosure == static_cast<int>(ValueKind::kClosure) &&
              kRewireValueStorage == static_cast<int>(ValueKind::kStorage));
