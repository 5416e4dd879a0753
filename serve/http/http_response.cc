// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/http_response.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "rewire/serve/http/http_head.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kMostParts = 64;
// Copying so few bytes behind the head takes less than parts of their own in a call of the kernel.
constexpr std::size_t kFewBytes = 2048;

void AppendDigits(std::uint64_t number, std::string* text) {
  char digits[24];
  text->append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

std::string_view TextOf(Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void HttpResponse::WriteHead(int status, std::string_view type, std::string_view extra, bool keep_alive) {
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
  parts_.clear();
  part_ = 0;
}

void HttpResponse::Add(std::string_view bytes) {
  if (!bytes.empty()) parts_.push_back({const_cast<char*>(bytes.data()), bytes.size()});
}

void HttpResponse::Begin(int status, std::string_view type, std::string_view extra, bool keep_alive,
                         bool is_head) {
  body_bytes_ = text.size();
  for (const Span<const std::byte> tensor : tensors) body_bytes_ += tensor.size();
  WriteHead(status, type, extra, keep_alive);
  head_ += "Content-Length: ";
  AppendDigits(body_bytes_, &head_);
  head_ += "\r\n\r\n";
  const bool is_one = !is_head && body_bytes_ <= kFewBytes;
  if (is_one) {
    head_ += text;
    for (const Span<const std::byte> tensor : tensors) head_ += TextOf(tensor);
  }
  Add(head_);
  if (is_head || is_one) return;
  Add(text);
  for (const Span<const std::byte> tensor : tensors) Add(TextOf(tensor));
}

void HttpResponse::BeginPieces(int status, std::string_view type, Framing framing, bool keep_alive) {
  framing_ = framing;
  // Without it, proxies keep pieces back until they have many.
  WriteHead(status, type, "Cache-Control: no-cache\r\n", keep_alive);
  if (framing == Framing::kChunks) head_ += "Transfer-Encoding: chunked\r\n";
  head_ += "\r\n";
}

void HttpResponse::AddPiece(bool is_last) {
  body_bytes_ = text.size();
  end_.clear();
  if (part_ > 0) head_.clear();  // it is sent together with the first piece
  if (framing_ == Framing::kChunks) {
    if (!text.empty()) {
      char digits[20];
      head_.append(digits, std::to_chars(digits, digits + sizeof digits, text.size(), 16).ptr);
      head_ += "\r\n";
      end_ = "\r\n";
    }
    if (is_last) end_ += "0\r\n\r\n";
  }
  parts_.clear();
  part_ = 0;
  Add(head_);
  Add(text);
  Add(end_);
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
