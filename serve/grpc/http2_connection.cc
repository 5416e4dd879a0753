// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/grpc/http2_connection.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rewire::serve {
namespace {

// A stream's window is what a client sends before it must wait for the server to have read it.
constexpr std::int32_t kStreamWindow = 4 << 20;
constexpr std::int32_t kConnectionWindow = 16 << 20;
constexpr std::size_t kMostOutput = std::size_t{1} << 20;  // made into frames before the socket has taken it
constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kUsualHeaders = 4;  // that a stream wants
constexpr std::size_t kUsualParts = 4;    // of a body

std::vector<nghttp2_nv> Pairs(const std::vector<Http2Header>& headers) {
  std::vector<nghttp2_nv> pairs;
  pairs.reserve(headers.size());
  for (const Http2Header& header : headers) {
    pairs.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(header.name.data())),
                     reinterpret_cast<std::uint8_t*>(const_cast<char*>(header.value.data())),
                     header.name.size(), header.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return pairs;
}

Span<const std::byte> Bytes(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

}  // namespace

struct Http2Connection::Stream {
  std::shared_ptr<Http2Stream> above;
  std::vector<Http2Header> headers;  // until all have arrived
  std::size_t header_bytes = 0;
  std::size_t header_count = 0;
  bool headers_complete = true;
  bool has_head = false;
  bool ended = false;  // by the client

  struct Part {
    Span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::vector<Part> body;
  std::size_t sent_parts = 0;  // of the body
  std::size_t body_bytes = 0;
  bool body_ended = false;
  bool waits = false;  // for a body
  std::vector<Http2Header> trailers;
};

// The functions that nghttp2 calls. None of them throws anything but for want of memory.
struct Http2Connection::Callbacks {
  static Http2Connection* Of(void* user) { return static_cast<Http2Connection*>(user); }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Connection* const self = Of(user);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    auto stream = std::make_unique<Stream>();
    stream->above = self->handler_->OnStream(frame->hd.stream_id);
    self->streams_[frame->hd.stream_id] = std::move(stream);
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                      void* user) {
    Http2Connection* const self = Of(user);
    Stream* const stream = self->Find(frame->hd.stream_id);
    if (stream == nullptr || stream->has_head) return 0;  // a client's trailers say nothing here
    // As HTTP/2 counts the size of a list of headers.
    stream->header_bytes += name_size + value_size + 32;
    if (stream->header_bytes > self->limits_->header_bytes ||
        ++stream->header_count > self->limits_->header_count) {
      stream->headers_complete = false;
      return 0;
    }
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    if (!stream->above->Wants(key)) return 0;
    if (stream->headers.empty()) stream->headers.reserve(kUsualHeaders);
    stream->headers.push_back(
        {std::string(key), std::string(reinterpret_cast<const char*>(value), value_size)});
    return 0;
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Connection* const self = Of(user);
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      ++self->resets_;
      if (self->resets_ > self->answers_ + kMostResets)
        nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
      return 0;
    }
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    Stream* stream = self->Find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    if (!std::exchange(stream->has_head, true)) {
      stream->above->OnHead(std::exchange(stream->headers, {}), stream->headers_complete);
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
      stream->ended = true;
      stream->above->OnEnd();
    }
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, StreamId id, const std::uint8_t* data, std::size_t size,
                    void* user) {
    Stream* const stream = Of(user)->Find(id);
    if (stream != nullptr && !stream->body_ended) stream->above->OnData(Bytes(data, size));
    return 0;
  }

  // A response that ends before its request does: the rest is not wanted.
  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    const Stream* const stream = Of(user)->Find(frame->hd.stream_id);
    if (stream == nullptr || stream->ended) return 0;
    return nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR) == 0
               ? 0
               : NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  static int OnClose(nghttp2_session*, StreamId id, std::uint32_t error, void* user) {
    Of(user)->Close(id, error);
    return 0;
  }

  // How many bytes of a body the next frame takes.
  static ssize_t Read(nghttp2_session* session, StreamId id, std::uint8_t*, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    Stream* const stream = Of(user)->Find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (stream->body_bytes == 0 && !stream->body_ended) {
      stream->waits = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    const std::size_t size = std::min(room, stream->body_bytes);
    if (size == stream->body_bytes && stream->body_ended) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::vector<nghttp2_nv> pairs = Pairs(stream->trailers);
      if (nghttp2_submit_trailer(session, id, pairs.data(), pairs.size()) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return static_cast<ssize_t>(size);
  }

  // Puts the frame into the output: its head, and the body from where it lies.
  static int Send(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* head, std::size_t size,
                  nghttp2_data_source*, void* user) {
    Http2Connection* const self = Of(user);
    Stream* const stream = self->Find(frame->hd.stream_id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    self->output_.Add(Bytes(head, kFrameHead));
    self->unsent_ -= size;
    stream->body_bytes -= size;
    while (size > 0) {
      Stream::Part& part = stream->body[stream->sent_parts];
      const std::size_t taken = std::min(size, part.bytes.size());
      self->output_.AddView(part.bytes.subspan(0, taken), part.owner);
      part.bytes = part.bytes.subspan(taken);
      size -= taken;
      if (!part.bytes.empty()) continue;
      part.owner = nullptr;
      ++stream->sent_parts;
    }
    if (stream->sent_parts == stream->body.size()) {
      stream->body.clear();
      stream->sent_parts = 0;
    }
    return 0;
  }
};

Http2Connection::Http2Connection(Handler* handler, const FrontEndLimits* limits)
    : handler_(handler), limits_(limits) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* options = nullptr;
  broken_ = nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&options) != 0;
  if (!broken_) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::OnBeginHeaders);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnData);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnClose);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::OnSent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::Send);
    nghttp2_option_set_no_closed_streams(options, 1);  // nothing is kept of streams that are done
    broken_ = nghttp2_session_server_new2(&session_, callbacks, this, options) != 0;
  }
  nghttp2_option_del(options);
  nghttp2_session_callbacks_del(callbacks);
  if (broken_) return;
  const std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, static_cast<std::uint32_t>(limits_->streams)},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits_->header_bytes)},
  }};
  broken_ = nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) != 0 ||
            nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindow) != 0;
}

Http2Connection::~Http2Connection() {
  nghttp2_session_del(session_);
  // nghttp2 tells nobody of streams that are deleted with their session.
  while (!streams_.empty()) Close(streams_.begin()->first, NGHTTP2_INTERNAL_ERROR);
}

Http2Connection::Stream* Http2Connection::Find(StreamId id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : found->second.get();
}

void Http2Connection::Close(StreamId id, std::uint32_t error) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::unique_ptr<Stream> stream = std::move(found->second);
  streams_.erase(found);
  unsent_ -= stream->body_bytes;
  if (error == NGHTTP2_NO_ERROR) ++answers_;
  stream->above->OnClosed(error);
}

bool Http2Connection::Receive(Span<const std::byte> bytes) {
  if (broken_) return false;
  const ssize_t read =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (read < 0) {
    // Mistakes that the protocol has a code for are answered by nghttp2 itself. These are the others, such as
    // bytes that are no HTTP/2 at all, and floods of frames that must be answered.
    broken_ = true;
    return false;
  }
  return true;
}

void Http2Connection::Respond(StreamId id, const std::vector<Http2Header>& headers, bool end) {
  if (broken_ || Find(id) == nullptr) return;
  const std::vector<nghttp2_nv> pairs = Pairs(headers);
  nghttp2_data_provider body = {};
  body.read_callback = Callbacks::Read;
  // It fails for want of memory alone.
  if (nghttp2_submit_response(session_, id, pairs.data(), pairs.size(), end ? nullptr : &body) != 0)
    broken_ = true;
}

void Http2Connection::Write(StreamId id, Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Stream* const stream = Find(id);
  if (broken_ || stream == nullptr || stream->body_ended || bytes.empty()) return;
  if (stream->body.empty()) stream->body.reserve(kUsualParts);
  stream->body.push_back({bytes, std::move(owner)});
  stream->body_bytes += bytes.size();
  unsent_ += bytes.size();
  if (std::exchange(stream->waits, false)) nghttp2_session_resume_data(session_, id);
}

void Http2Connection::End(StreamId id, std::vector<Http2Header> trailers) {
  Stream* const stream = Find(id);
  if (broken_ || stream == nullptr || stream->body_ended) return;
  stream->body_ended = true;
  stream->trailers = std::move(trailers);
  if (std::exchange(stream->waits, false)) nghttp2_session_resume_data(session_, id);
}

void Http2Connection::Pump() {
  while (session_ != nullptr && output_.bytes() < kMostOutput) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &data);
    if (size <= 0) {
      broken_ |= size < 0;
      return;
    }
    output_.Add(Bytes(data, static_cast<std::size_t>(size)));
  }
}

void Http2Connection::StartDraining() {
  if (broken_ || std::exchange(draining_, true)) return;
  // Streams that are on their way are refused, and clients know that they may try them again elsewhere.
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

bool Http2Connection::waits_for_client() const {
  return unsent_ > 0 || !output_.empty() ||
         std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second->above->receiving(); });
}

bool Http2Connection::finished() const {
  if (!output_.empty()) return false;
  return broken_ || (draining_ && streams_.empty()) ||
         (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
}

}  // namespace rewire::serve
