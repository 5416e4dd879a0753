// SPDX-License-Identifier: Apache-2.0
//
// ModelInferRequest and ModelInferResponse: the messages of inference, between bytes and Request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/span.h"
#include "rewire/base/status.h"
#include "rewire/serve/core/request.h"
#include "rewire/serve/core/shared_regions.h"

namespace rewire::serve {

// The region of shared memory that the client wants an output in; the response repeats it.
struct OutputRegion {
  std::string_view name;  // empty: the response has the tensor
  std::uint64_t offset = 0;
};

// Fills a request with views into the message. Tensors are where they lie; only elements in the lists of
// InferTensorContents are decoded, into the request's memory. `regions_of` gets an entry for each wanted
// output.
//
// Errors: kInvalidArgument, with the input or output; kUnsupported for extensions and datatypes that are not
// there; those of shared regions.
Status ReadInferRequest(std::string_view message, const SharedRegions& regions, Request* request,
                        std::vector<OutputRegion>* regions_of);

// How many bytes stand in front of the elements of the first of raw_input_contents, if the message begins
// with these bytes. 0 if they do not reach so far. Whoever places the message there by it has aligned
// elements.
std::size_t OffsetOfTensors(std::string_view beginning);

// A response as parts that follow each other: some of `text`, and tensors where they lie.
struct MessagePart {
  std::size_t begin = 0, size = 0;  // in the text, or else:
  Span<const std::byte> tensor;
};
// Appends the response of a request that has succeeded. With `in_stream`, it is wrapped into a
// ModelStreamInferResponse.
void WriteInferResponse(const Request& request, const std::vector<OutputRegion>& regions_of, bool in_stream,
                        std::string* text, std::vector<MessagePart>* parts);

}  // namespace rewire::serve
