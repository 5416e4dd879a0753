// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/http_exchange.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "rewire/serve/core/text_bytes.h"
#include "rewire/serve/http/http_text.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kMostResponseHead = std::size_t{64} << 10;
constexpr std::size_t kResponseRoom = std::size_t{16} << 10;  // for what arrives together with a head

Status NoResponse(const char* what) {
  return Fail(StatusCode::kUnsupported, "the server's response is no HTTP/1.1 that is understood: {}", what);
}

// The lines of a head without the empty one behind them.
Status ParseHead(std::string_view head, HttpResponse* response, bool* keeps) {
  if (head.substr(0, 9) != "HTTP/1.1 " || head.size() < 12) return NoResponse("another version");
  const std::optional<std::uint64_t> status = DecimalNumber(head.substr(9, 3));
  if (!status) return NoResponse("it has no status");
  response->status = static_cast<int>(*status);
  *keeps = true;
  bool has_length = false;
  while (true) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) break;
    head.remove_prefix(end + 2);
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return NoResponse("a header without a colon");
    const auto is = [name = line.substr(0, colon)](std::string_view other) {
      return EqualsIgnoringCase(name, other);
    };
    const std::string_view value = Trimmed(line.substr(colon + 1));
    if (is("content-length")) {
      const std::optional<std::uint64_t> bytes = DecimalNumber(value);
      if (!bytes || (has_length && *bytes != response->bytes)) return NoResponse("Content-Length");
      response->bytes = *bytes;
      has_length = true;
    } else if (is("inference-header-content-length")) {
      response->json_bytes = DecimalNumber(value);
      if (!response->json_bytes) return NoResponse("Inference-Header-Content-Length");
    } else if (is("transfer-encoding")) {
      return NoResponse("Transfer-Encoding");
    } else if (is("content-encoding") && !EqualsIgnoringCase(value, "identity")) {
      return NoResponse("Content-Encoding");
    } else if (is("connection")) {
      *keeps = !EqualsIgnoringCase(value, "close");
    }
  }
  if (response->json_bytes && *response->json_bytes > response->bytes)
    return NoResponse("Inference-Header-Content-Length is more than Content-Length");
  if (!has_length) *keeps = false;
  return {};
}

}  // namespace

Status HttpExchange::SendAll(OutputQueue* queue, const Patience& patience) {
  while (true) {
    if (Status sent = socket_.Send(queue); !sent) return sent;
    if (queue->empty()) return {};
    if (Status waited = socket_.Wait(true, patience); !waited) return waited;
    // A response to a request that is not sent to its end is an error, and the server closes behind it.
    received_.resize(kResponseRoom);
    const iovec part = {received_.data(), received_.size()};
    const Result<std::size_t> got = socket_.Receive(&part, 1);
    received_.resize(got ? *got : 0);
    if (!got) return Forward(got);
    if (*got > 0) {
      keeps_ = false;
      return {};
    }
  }
}

Status HttpExchange::ReadHead(HttpResponse* response, const Patience& patience) {
  while (true) {
    if (const std::size_t end = received_.find("\r\n\r\n"); end != std::string::npos) {
      bool keeps = true;
      if (Status read = ParseHead({received_.data(), end}, response, &keeps); !read) return read;
      received_.erase(0, end + 4);
      keeps_ = keeps_ && keeps;
      left_ = response->bytes;
      return {};
    }
    const std::size_t before = received_.size();
    if (before > kMostResponseHead) return NoResponse("its head is too long");
    if (Status waited = socket_.Wait(false, patience); !waited) return waited;
    received_.resize(before + kResponseRoom);
    const iovec part = {received_.data() + before, kResponseRoom};
    const Result<std::size_t> got = socket_.Receive(&part, 1);
    received_.resize(before + (got ? *got : 0));
    if (!got) return Forward(got);
    if (*got > 0) nothing_arrived_ = false;
  }
}

Result<HttpResponse> HttpExchange::Send(std::string_view method, std::string_view path, std::string_view json,
                                        const std::vector<Span<const std::byte>>& tensors,
                                        const Patience& patience) {
  usable_ = false;
  keeps_ = nothing_arrived_ = true;
  std::uint64_t bytes = json.size();
  for (const Span<const std::byte> tensor : tensors) bytes += tensor.size();
  std::string head;
  head.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: ").append(authority_);
  if (!token_.empty()) head.append("\r\nAuthorization: Bearer ").append(token_);
  if (method != "GET") head.append("\r\nContent-Length: ").append(std::to_string(bytes));
  if (!tensors.empty())
    head.append("\r\nInference-Header-Content-Length: ").append(std::to_string(json.size()));
  head.append("\r\n\r\n");
  OutputQueue queue;
  queue.Add(AsBytes(head));
  queue.Add(AsBytes(json));
  // The caller keeps the tensors until this function returns.
  const auto kept = std::make_shared<int>();
  for (const Span<const std::byte> tensor : tensors) queue.AddView(tensor, kept);
  if (Status sent = SendAll(&queue, patience); !sent) return Forward(sent);
  HttpResponse response;
  if (Status read = ReadHead(&response, patience); !read) return Forward(read);
  usable_ = keeps_;
  return response;
}

Status HttpExchange::Read(Span<std::byte> to, const Patience& patience) {
  if (to.size() > left_) return NoResponse("its body is too short");
  left_ -= to.size();
  const std::size_t known = std::min(to.size(), received_.size());
  if (known > 0) std::memcpy(to.data(), received_.data(), known);
  received_.erase(0, known);
  to = to.subspan(known);
  while (!to.empty()) {
    const iovec part = {to.data(), to.size()};
    Result<std::size_t> got = socket_.Receive(&part, 1);
    if (got && *got == 0) {
      if (Status waited = socket_.Wait(false, patience); !waited) {
        usable_ = false;
        return waited;
      }
    }
    if (!got) {
      usable_ = false;
      return Forward(got);
    }
    to = to.subspan(*got);
  }
  return {};
}

}  // namespace rewire::serve
