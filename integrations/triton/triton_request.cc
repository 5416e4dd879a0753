// SPDX-License-Identifier: Apache-2.0
#include "rewire/integrations/triton/triton_request.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rewire/integrations/triton/data_type.h"
#include "rewire/integrations/triton/status.h"
#include "rewire/serve/core/shape_product.h"
#include "rewire/serve/run/request_check.h"
#include "rewire/serve/run/text_inputs.h"

namespace rewire::triton {
namespace {

// Memory that Triton has lent, in the form of an owner that counts nothing: the request or the response keeps
// it.
std::shared_ptr<const void> Lent(const void* memory) {
  return std::shared_ptr<const void>(std::shared_ptr<const void>(), memory);
}

// Triton has no scalars.
const std::vector<std::int64_t> kScalarShape = {1};

bool IsHostMemory(int memory) { return memory == kTritonCpu || memory == kTritonPinned; }

Status NoMemory(std::string_view name, std::uint64_t bytes) {
  return Fail(StatusCode::kOutOfMemory, "tensor '{}': there is no memory for {} bytes", name, bytes);
}

}  // namespace

Status TritonRequest::Read(const serve::ModelVersion& model, TRITONBACKEND_Request* request) {
  Reset();
  handle_ = request;
  response_ = nullptr;
  this->model = model.name;
  version = model.version;
  bool is_cancelled = false;
  if (Status asked = Taken(TRITONBACKEND_RequestIsCancelled(handle_, &is_cancelled)); !asked) return asked;
  if (is_cancelled) return Fail(StatusCode::kCancelled, "the client has cancelled the request");
  std::uint32_t count = 0;
  if (Status got = Taken(TRITONBACKEND_RequestInputCount(handle_, &count)); !got) return got;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Status read = ReadInput(i); !read) return read;
    serve::InputTensor& input = inputs.back();
    const auto of_model = std::find_if(model.signature.inputs.begin(), model.signature.inputs.end(),
                                       [&](const serve::ModelInput& one) { return one.name == input.name; });
    const bool is_scalar = of_model != model.signature.inputs.end() && of_model->dims.empty();
    if (is_scalar && input.shape == kScalarShape) input.shape.clear();
  }
  if (Status got = Taken(TRITONBACKEND_RequestOutputCount(handle_, &count)); !got) return got;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    if (Status got = Taken(TRITONBACKEND_RequestOutputName(handle_, i, &name)); !got) return got;
    wanted.emplace_back().name = name;
  }
  if (!model.state.empty()) {
    if (Status read = ReadStep(); !read) return read;
  }
  return serve::ReplaceTexts(model.signature, this);
}

Status TritonRequest::ReadInput(std::uint32_t index) {
  TRITONBACKEND_Input* input = nullptr;
  if (Status got = Taken(TRITONBACKEND_RequestInputByIndex(handle_, index, &input)); !got) return got;
  const char* name = nullptr;
  int type = 0;
  const std::int64_t* shape = nullptr;
  std::uint32_t rank = 0, parts = 0;
  std::uint64_t bytes = 0;
  if (Status got = Taken(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &rank, &bytes, &parts));
      !got) {
    return got;
  }
  serve::InputTensor& tensor = inputs.emplace_back();
  tensor.name = name;
  tensor.dtype = DTypeOf(type);
  tensor.shape.assign(shape, shape + rank);
  const auto size = static_cast<std::size_t>(bytes);
  std::byte* joined = nullptr;
  if (parts != 1) {
    joined = memory.Allocate(std::max<std::size_t>(size, 1));
    if (joined == nullptr) return NoMemory(tensor.name, bytes);
    tensor.data = {joined, size};
  }
  std::size_t used = 0;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const void* data = nullptr;
    std::uint64_t part_bytes = 0;
    int kind = kTritonCpu;
    std::int64_t device = 0;
    if (Status got = Taken(TRITONBACKEND_InputBuffer(input, part, &data, &part_bytes, &kind, &device)); !got)
      return got;
    if (!IsHostMemory(kind)) {
      return Fail(StatusCode::kUnsupported,
                  "input '{}' is in memory of GPU {}, and the backend reads the host's", tensor.name, device);
    }
    const auto given = static_cast<std::size_t>(part_bytes);
    if (joined == nullptr) {
      tensor.data = {static_cast<const std::byte*>(data), given};
      tensor.owner = Lent(data);
    } else if (given > size - used) {
      return Fail(StatusCode::kInvalidArgument, "input '{}': its parts have more than its {} bytes",
                  tensor.name, bytes);
    } else if (given > 0) {
      std::memcpy(joined + used, data, given);
    }
    used += given;
  }
  if (used == size) return {};
  return Fail(StatusCode::kInvalidArgument, "input '{}': {} bytes expected, {} given", tensor.name, bytes,
              used);
}

Status TritonRequest::ReadStep() {
  std::uint64_t number = 0;
  // An id is a number or a text, and asking for the other one is an error.
  if (Taken(TRITONBACKEND_RequestCorrelationId(handle_, &number))) {
    step.id = static_cast<std::int64_t>(number);
  } else {
    const char* text = nullptr;
    if (Status got = Taken(TRITONBACKEND_RequestCorrelationIdString(handle_, &text)); !got) return got;
    step.id = std::string_view(text);
  }
  std::uint32_t flags = 0;
  if (Status got = Taken(TRITONBACKEND_RequestFlags(handle_, &flags)); !got) return got;
  step.start = (flags & kTritonSequenceStart) != 0;
  step.end = (flags & kTritonSequenceEnd) != 0;
  return {};
}

Status TritonRequest::TakeMemory(const serve::OutputTensor& output, std::byte** data) {
  TRITONBACKEND_Output* made = nullptr;
  const std::string name(output.name);
  const std::vector<std::int64_t>& shape = output.shape.empty() ? kScalarShape : output.shape;
  if (Status got =
          Taken(TRITONBACKEND_ResponseOutput(response_, &made, name.c_str(), NumberOf(output.dtype),
                                             shape.data(), static_cast<std::uint32_t>(shape.size())));
      !got) {
    return got;
  }
  void* lent = nullptr;
  int kind = kTritonCpu;
  std::int64_t device = 0;
  if (Status got = Taken(TRITONBACKEND_OutputBuffer(made, &lent, output.bytes, &kind, &device)); !got)
    return got;
  if (!IsHostMemory(kind)) {
    return Fail(StatusCode::kUnsupported,
                "output '{}' is to be in memory of GPU {}, and the backend writes the host's", name, device);
  }
  // An output without bytes has no memory, and is bound all the same.
  static std::byte nothing;
  *data = output.bytes == 0 ? &nothing : static_cast<std::byte*>(lent);
  return {};
}

Status TritonRequest::MakeResponse(const serve::ModelVersion& model, const std::vector<std::int64_t>& sizes) {
  if (Status made = Taken(TRITONBACKEND_ResponseNew(&response_, handle_)); !made) return made;
  serve::OutputTensor output;
  for (serve::WantedOutput& one : wanted) {
    const auto& outputs = model.signature.outputs;
    const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const serve::ModelOutput& of_model) {
      return of_model.name == one.name;
    });
    const bool is_state =
        std::any_of(model.state.begin(), model.state.end(),
                    [&](const serve::StatePair& pair) { return &outputs[pair.output] == &*found; });
    if (!found->derived || is_state) continue;
    output.name = one.name;
    output.dtype = found->dtype;
    output.shape.clear();
    for (const Dim dim : found->dims) output.shape.push_back(serve::SizeOf(dim, sizes));
    const auto bytes = serve::ShapeProduct(output.shape, ElementBytes(output.dtype));
    if (!bytes) return NoMemory(one.name, ~std::uint64_t{0});
    output.bytes = *bytes;
    std::byte* data = nullptr;
    if (Status taken = TakeMemory(output, &data); !taken) return taken;
    one.place = {data, static_cast<std::size_t>(output.bytes)};
    one.owner = Lent(data);
  }
  return {};
}

Status TritonRequest::TryPlaceResults() {
  for (const serve::OutputTensor& result : results) {
    if (result.wanted >= wanted.size() || wanted[result.wanted].owner != nullptr) continue;
    std::byte* data = nullptr;
    if (Status taken = TakeMemory(result, &data); !taken) return taken;
    if (result.bytes > 0) std::memcpy(data, result.data, static_cast<std::size_t>(result.bytes));
  }
  return {};
}

Result<std::optional<std::uint64_t>> TritonRequest::Steps() const {
  std::uint32_t count = 0;
  if (Status got = Taken(TRITONBACKEND_RequestParameterCount(handle_, &count)); !got) return Forward(got);
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    int type = 0;
    const void* value = nullptr;
    if (Status got = Taken(TRITONBACKEND_RequestParameter(handle_, i, &name, &type, &value)); !got)
      return Forward(got);
    if (std::string_view(name) != "steps") continue;
    std::int64_t steps = 0;
    if (type == kTritonInteger) steps = *static_cast<const std::int64_t*>(value);
    if (steps > 0) return std::optional(static_cast<std::uint64_t>(steps));
    return Fail(StatusCode::kInvalidArgument, "parameter 'steps': a whole number from 1 on is expected");
  }
  return std::optional<std::uint64_t>();
}

void TritonRequest::PlaceResults() {
  if (status) status = TryPlaceResults();
}

void TritonRequest::Send(bool is_last) {
  if (response_ == nullptr) {
    if (TRITONSERVER_Error* const error = TRITONBACKEND_ResponseNew(&response_, handle_); error != nullptr) {
      LogError(error);
      return;
    }
  }
  TRITONSERVER_Error* const error = ErrorOf(status);
  const std::uint32_t flags = is_last || error != nullptr ? std::uint32_t{kTritonResponseFinal} : 0;
  LogError(TRITONBACKEND_ResponseSend(std::exchange(response_, nullptr), flags, error));
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
}

void TritonRequest::Release() {
  LogError(TRITONBACKEND_RequestRelease(std::exchange(handle_, nullptr), kTritonReleaseAll));
}

}  // namespace rewire::triton
