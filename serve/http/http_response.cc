// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_response.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "rewire/serve/http/http_head.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kMostParts = 64;

void AppendDigits(std::uint64_t number, std::string* text) {
  char digits[24];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

void HttpResponse::Begin(int status, std::string_view type, std::string_view extra, bool keep_alive) {
  body_bytes_ = text.size();
  for (const Span<const std::byte> tensor : tensors) body_bytes_ += tensor.size();
  head_ = "HTTP/1.1 ";
  AppendDigits(static_cast<std::uint64_t>(status), &head_);
  head_ += ' ';
  head_ += HttpReason(status);
  head_ += "\r\nContent-Type: ";
  head_ += type;
  head_ += "\r\n";
  head_ += extra;
  if (status == 401) head_ += "WWW-Authenticate: Bearer\r\n";
  if (!keep_alive) head_ += "Connection: close\r\n";
  head_ += "Content-Length: ";
  AppendDigits(body_bytes_, &head_);
  head_ += "\r\n\r\n";
  parts_.clear();
  part_ = 0;
  const auto add = [&](const void* data, std::size_t bytes) {
    if (bytes > 0) parts_.push_back({const_cast<void*>(data), bytes});
  };
  add(head_.data(), head_.size());
  add(text.data(), text.size());
  for (const Span<const std::byte> tensor : tensors) add(tensor.data(), tensor.size());
}

HttpResponse::Sent HttpResponse::Send(ServedSocket* socket) {
  while (part_ < parts_.size()) {
    const long sent = socket->Send(&parts_[part_], std::min(parts_.size() - part_, kMostParts));
    if (sent <= 0) return sent == 0 ? Sent::kPart : Sent::kGone;
    auto left = static_cast<std::size_t>(sent);
    while (part_ < parts_.size() && left >= parts_[part_].iov_len) left -= parts_[part_++].iov_len;
    if (left > 0) {
      parts_[part_].iov_base = static_cast<char*>(parts_[part_].iov_base) + left;
      parts_[part_].iov_len -= left;
    }
  }
  return Sent::kAll;
}

}  // namespace rewire::serve
