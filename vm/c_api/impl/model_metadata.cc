// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/metadata/model_metadata.h"

#include "rewire/base/message.h"
#include "rewire/vm/c_api/executable.h"
#include "rewire/vm/c_api/impl/boundary.h"
#include "rewire/vm/c_api/impl/handles.h"

using rewire::Fail;
using rewire::ModelMetadata;
using rewire::Status;
using rewire::StatusCode;
using rewire::c_api::Boundary;
using rewire::c_api::Given;

namespace {

// Null for a number that names no text.
const std::string* TextOf(const ModelMetadata& metadata, RewireModelText text) {
  switch (text) {
    case kRewireModelProducer:
      return &metadata.producer;
    case kRewireModelProducerVersion:
      return &metadata.producer_version;
    case kRewireModelDomain:
      return &metadata.domain;
    case kRewireModelDescription:
      return &metadata.description;
    case kRewireModelGraph:
      return &metadata.graph;
    case kRewireModelGraphDescription:
      return &metadata.graph_description;
    default:
      return nullptr;
  }
}

RewireStatus WriteProperty(const RewireExecutable* executable, uint32_t index,
                           std::string std::pair<std::string, std::string>::*part, char* buffer,
                           size_t capacity, size_t* length) {
  return Boundary(Given("executable", executable), [&]() -> Status {
    const ModelMetadata metadata = rewire::ReadModelMetadata(executable->executable.module());
    if (index >= metadata.properties.size())
      return rewire::c_api::OutOfRange("property", index, metadata.properties.size());
    return rewire::c_api::WriteText(metadata.properties[index].*part, buffer, capacity, length);
  });
}

}  // namespace

RewireStatus rewire_executable_model(const RewireExecutable* executable, RewireModelInfo* info) {
  return Boundary(Given("executable,info", executable, info), [&]() -> Status {
    const ModelMetadata metadata = rewire::ReadModelMetadata(executable->executable.module());
    RewireModelInfo out{};
    out.property_count = static_cast<uint32_t>(metadata.properties.size());
    out.version = metadata.version;
    return rewire::c_api::WriteStruct("RewireModelInfo", out, info);
  });
}

RewireStatus rewire_executable_model_text(const RewireExecutable* executable, RewireModelText text,
                                          char* buffer, size_t capacity, size_t* length) {
  return Boundary(Given("executable", executable), [&]() -> Status {
    const ModelMetadata metadata = rewire::ReadModelMetadata(executable->executable.module());
    const std::string* const found = TextOf(metadata, text);
    if (found == nullptr) {
      return Fail(StatusCode::kInvalidArgument, "a model has no text {}; kRewireModel... has their numbers",
                  text);
    }
    return rewire::c_api::WriteText(*found, buffer, capacity, length);
  });
}

RewireStatus rewire_executable_model_property_key(const RewireExecutable* executable, uint32_t index,
                                                  char* buffer, size_t capacity, size_t* length) {
  return WriteProperty(executable, index, &std::pair<std::string, std::string>::first, buffer, capacity,
                       length);
}

RewireStatus rewire_executable_model_property_value(const RewireExecutable* executable, uint32_t index,
                                                    char* buffer, size_t capacity, size_t* length) {
  return WriteProperty(executable, index, &std::pair<std::string, std::string>::second, buffer, capacity,
                       length);
}
