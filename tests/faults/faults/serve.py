# SPDX-License-Identifier: Apache-2.0
"""The faults of the server and of its clients."""

from .fault import Fault

SERVE = ("serve_test",)
GRPC = ("serve_grpc_test",)
REMOTE = ("serve_remote_test",)

FAULTS = [
    Fault("serve", "an input of another datatype is refused before it waits", "request_check.cc",
          "if («given.dtype != expected.dtype») {", "false", SERVE),
    Fault("serve", "an input has as many bytes as its shape", "request_check.cc",
          "if («*bytes != given.data.size()») {", "false", SERVE),
    Fault("serve", "a dimension's name has one size in all inputs of a request", "request_check.cc",
          "if («known >= 0 && size != known») {", "false", SERVE),
    Fault("serve", "a part of a region lies inside it", "shared_regions.cc",
          "if («offset > size || bytes > size - offset») {", "false", SERVE),
    Fault("serve", "a region whose object has been made shorter is not touched", "shared_regions.cc",
          "  if («!region->IsWhole()») {\n    return Fail(StatusCode::kInvalidArgument, "
          "\"shared memory region '{}': its object", "false", SERVE),
    Fault("serve", "two lengths of one body are refused", "http_head.cc",
          "if (!number || «head->has_length») return Bad", "false", SERVE),
    Fault("serve", "the head of a request has a limit", "http_head.cc",
          "if (end == std::string_view::npos || «end + 1 > limits.header_bytes») {", "false", SERVE),
    Fault("serve", "the bytes of a tensor behind the JSON have arrived", "infer_json.cc",
          "if («*parameters.binary_size > tensors->size()») {", "false", SERVE),
    Fault("serve", "a full queue refuses", "model_queue.cc",
          "if (request->status && «room != 0 && waiting_.size() >= room») {", "false", SERVE),
    Fault("serve", "a request whose time is over leaves the queue", "model_queue.cc",
          "if («request->deadline > now») {", "true", SERVE),
    Fault("serve", "each request of a batch gets its own rows", "instance.cc",
          "result.data = all.data + row_bytes * «static_cast<std::uint64_t>(first)»;", "0", SERVE),
    Fault("serve", "requests of other shapes are not in one batch", "batch_rule.cc",
          "if («!FitTogether(first, *waiting[i])») continue;", "false", SERVE),
    Fault("serve", "an output does not leave its place in shared memory", "instance.cc",
          "if («place->place.size() < result.bytes»)", "false", SERVE),
    Fault("serve", "the messages of a connection have a limit", "grpc_call.cc",
          "if («size > home_->limits->body_bytes») {", "false", GRPC),
    Fault("serve", "a client that ends its calls over and over is sent away", "http2_connection.cc",
          "if («self->resets_ > self->answers_ + kMostResets»)", "false", GRPC),
    Fault("serve", "elements in lists fit their datatype", "tensor_contents.cc",
          "if (type == WireType::kVarint && «!Fits(number, input->dtype)») {", "false", GRPC),
    Fault("serve", "an answer in a region that was not given is refused", "remote_call.cc",
          "if («answer.in_region && !placed_[number]»)", "false", REMOTE),
]
