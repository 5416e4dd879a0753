// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/c_api/parameters.h"

#include <string>
#include <utility>

#include "rewire/base/array.h"
#include "rewire/base/near_names.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Fail;
using rewire::Forward;
using rewire::ParameterSet;
using rewire::Result;
using rewire::Status;
using rewire::StatusCode;
using rewire::c_api::Boundary;
using rewire::c_api::Give;
using rewire::c_api::Given;
using rewire::c_api::OutOfRange;

namespace rewire::c_api {

Result<ConstantCodec> CodecOf(const RewireCodec& codec) {
  RewireCodec read;
  if (Status ok = ReadStruct("RewireCodec", &codec, &read); !ok) return Forward(ok);
  if (read.id >= kFirstHostCodec && read.decode != nullptr)
    return ConstantCodec{read.id, read.context, read.decode};
  return Fail(StatusCode::kInvalidArgument, "RewireCodec: an id from {} and decode are needed",
              kFirstHostCodec);
}

}  // namespace rewire::c_api

RewireStatus rewire_parameter_set_make(RewireParameterSet** out) {
  return Boundary(Given("out", out), [&]() -> Status {
    Give(ParameterSet(), out);
    return {};
  });
}

void rewire_parameter_set_destroy(RewireParameterSet* set) { delete set; }

RewireStatus rewire_parameter_set_add(RewireParameterSet* set, const char* name, const RewireValue* tensor) {
  return Boundary(Given("set,name,tensor", set, name, tensor), [&]() -> Status {
    if (tensor->value.kind() != rewire::ValueKind::kTensor) {
      return Fail(StatusCode::kInvalidArgument, "parameter {}: a tensor expected, {} given", name,
                  ValueKindName(tensor->value.kind()));
    }
    set->set.Set(name, tensor->value.tensor());
    return {};
  });
}

RewireStatus rewire_parameter_set_count(const RewireParameterSet* set, uint32_t* count) {
  return Boundary(Given("set,count", set, count), [&]() -> Status {
    *count = static_cast<uint32_t>(set->set.size());
    return {};
  });
}

RewireStatus rewire_parameter_set_name(const RewireParameterSet* set, uint32_t index, const char** name) {
  return Boundary(Given("set,name", set, name), [&]() -> Status {
    if (index >= set->set.size()) return OutOfRange("parameter", index, set->set.size());
    *name = set->set.name(index).data();  // of a std::string
    return {};
  });
}

RewireStatus rewire_parameter_set_get(const RewireParameterSet* set, const char* name, RewireValue** out) {
  return Boundary(Given("set,name,out", set, name, out), [&]() -> Status {
    const std::size_t index = set->set.Find(name);
    if (index == set->set.size()) {
      rewire::Array<std::string> names;
      for (std::size_t i = 0; i < set->set.size(); ++i) names.emplace_back(set->set.name(i));
      return Fail(StatusCode::kNotFound, "the set has no parameter named \"{}\"{}", name,
                  rewire::KnownNames("parameters", name, names));
    }
    const Result<rewire::Tensor> tensor = set->set.TryGet(index);
    if (!tensor) return Forward(tensor);
    Give(rewire::Value(*tensor), out);
    return {};
  });
}
