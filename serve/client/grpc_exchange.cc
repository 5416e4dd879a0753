// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/grpc_exchange.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "rewire/serve/core/percent_code.h"
#include "rewire/serve/core/wire_types.h"

namespace rewire::serve {
namespace {

constexpr std::size_t kFrameHead = 9;
constexpr std::size_t kFrameRoom = std::size_t{16} << 10;
// Fewer bytes are copied: a call of the system more takes longer.
constexpr std::size_t kFewBytes = 2048;
constexpr std::int32_t kWindow = 0x7fffffff;
constexpr std::size_t kMostSpare = std::size_t{16} << 20;

Status NoMemory() { return Fail(StatusCode::kOutOfMemory, "there is no memory for a connection of HTTP/2"); }

}  // namespace

struct GrpcExchange::Callbacks {
  static GrpcExchange* Of(void* user) { return static_cast<GrpcExchange*>(user); }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                      void* user) {
    GrpcExchange* const self = Of(user);
    if (frame->hd.stream_id != self->stream_) return 0;
    const std::string_view key(reinterpret_cast<const char*>(name), name_size);
    const std::string_view text(reinterpret_cast<const char*>(value), value_size);
    self->nothing_arrived_ = false;
    if (key == ":status") std::from_chars(text.data(), text.data() + text.size(), self->http_status_);
    if (key == "grpc-status") std::from_chars(text.data(), text.data() + text.size(), self->grpc_status_);
    if (key == "grpc-message") self->grpc_message_ = PercentDecoded(text).value_or(std::string(text));
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
    GrpcExchange* const self = Of(user);
    if (id != self->stream_) return 0;
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    const std::size_t taken = std::min(size, self->wanted_.size());
    // Bytes that were received in place are there already.
    if (taken > 0 && bytes != self->wanted_.data()) std::memcpy(self->wanted_.data(), bytes, taken);
    self->wanted_ = self->wanted_.subspan(taken);
    if (self->spare_.size() + size - taken > kMostSpare) return NGHTTP2_ERR_CALLBACK_FAILURE;
    self->spare_.append(reinterpret_cast<const char*>(data) + taken, size - taken);
    return 0;
  }

  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    GrpcExchange* const self = Of(user);
    if (id != self->stream_) return 0;
    self->stream_ = -1;
    self->reset_ = error;
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_GOAWAY) Of(user)->usable_ = false;
    return 0;
  }

  // How many bytes of the message the next frame takes.
  static ssize_t Read(nghttp2_session*, std::int32_t, std::uint8_t*, std::size_t room, std::uint32_t* flags,
                      nghttp2_data_source*, void* user) {
    GrpcExchange* const self = Of(user);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    std::size_t size = 0, sent = self->part_sent_;
    std::size_t part = self->part_;
    for (; part < self->message_.size() && size < room; ++part) {
      size += self->message_[part].size() - std::exchange(sent, 0);
    }
    if (size <= room && part == self->message_.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(std::min(size, room));
  }

  static int Send(nghttp2_session*, nghttp2_frame*, const std::uint8_t* head, std::size_t size,
                  nghttp2_data_source*, void* user) {
    GrpcExchange* const self = Of(user);
    self->output_.Add({reinterpret_cast<const std::byte*>(head), kFrameHead});
    // The caller of Begin keeps the message.
    static const auto kept = std::make_shared<int>();
    while (size > 0) {
      const Span<const std::byte> part = self->message_[self->part_];
      const std::size_t taken = std::min(size, part.size() - self->part_sent_);
      self->output_.AddView(part.subspan(self->part_sent_, taken), kept);
      size -= taken;
      self->part_sent_ += taken;
      if (self->part_sent_ == part.size()) {
        ++self->part_;
        self->part_sent_ = 0;
      }
    }
    return 0;
  }
};

GrpcExchange::GrpcExchange(ClientSocket socket, std::string authority, const std::string& token)
    : socket_(std::move(socket)),
      authority_(std::move(authority)),
      authorization_(token.empty() ? std::string() : "Bearer " + token),
      room_(kFrameRoom) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0) return;
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnClose);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrame);
  nghttp2_session_callbacks_set_send_data_callback(callbacks, Callbacks::Send);
  nghttp2_session_client_new(&session_, callbacks, this);
  nghttp2_session_callbacks_del(callbacks);
  if (session_ == nullptr) return;
  const std::array<nghttp2_settings_entry, 2> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(kWindow)},
  }};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kWindow);
}

GrpcExchange::~GrpcExchange() { nghttp2_session_del(session_); }

// Follows the frames, so that the bytes of a body can be received where they belong.
void GrpcExchange::Track(Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (frame_left_ > 0) {
      const std::size_t taken = std::min(frame_left_, bytes.size());
      frame_left_ -= taken;
      bytes = bytes.subspan(taken);
      continue;
    }
    const std::size_t taken = std::min(kFrameHead - frame_head_.size(), bytes.size());
    frame_head_.append(reinterpret_cast<const char*>(bytes.data()), taken);
    bytes = bytes.subspan(taken);
    if (frame_head_.size() < kFrameHead) return;
    const auto byte = [this](std::size_t i) { return static_cast<std::uint8_t>(frame_head_[i]); };
    frame_left_ = std::size_t{byte(0)} << 16 | std::size_t{byte(1)} << 8 | byte(2);
    const std::uint32_t stream = (std::uint32_t{byte(5)} << 24 | std::uint32_t{byte(6)} << 16 |
                                  std::uint32_t{byte(7)} << 8 | byte(8)) &
                                 0x7fffffff;
    frame_is_body_ = byte(3) == NGHTTP2_DATA && (byte(4) & NGHTTP2_FLAG_PADDED) == 0 && stream_ >= 0 &&
                     stream == static_cast<std::uint32_t>(stream_);
    frame_head_.clear();
  }
}

// How many of the next bytes of the connection are those that are wanted next.
std::size_t GrpcExchange::ReceivesInPlace() const {
  if (!frame_is_body_ || !frame_head_.empty() || !spare_.empty()) return 0;
  const std::size_t size = std::min(frame_left_, wanted_.size());
  return size > kFewBytes ? size : 0;
}

// Gives bytes that have arrived to nghttp2.
Status GrpcExchange::Take(Span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  Track(bytes);
  const ssize_t read =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (read >= 0) return {};
  return Fail(StatusCode::kUnsupported, "the server's answer is no HTTP/2 that is understood: {}",
              nghttp2_strerror(static_cast<int>(read)));
}

// Sends what is to be sent, and receives once. With `to_read`, it waits until something has arrived.
Status GrpcExchange::Turn(bool to_read, const Patience& patience) {
  const std::uint8_t* frames = nullptr;
  while (sends_) {
    const ssize_t size = nghttp2_session_mem_send(session_, &frames);
    if (size < 0) return NoMemory();
    if (size == 0) break;
    output_.Add({reinterpret_cast<const std::byte*>(frames), static_cast<std::size_t>(size)});
  }
  if (sends_) {
    if (Status sent = socket_.Send(&output_); !sent) return sent;
  }
  if (!to_read && output_.empty() && part_ == message_.size()) return {};
  const std::size_t in_place = ReceivesInPlace();
  if (in_place == 0) {
    if (Status waited = socket_.Wait(!output_.empty(), patience); !waited) return waited;
  }
  // Behind bytes that are received in place, the head of the next frame.
  const iovec parts[] = {{wanted_.data(), in_place}, {room_.data(), in_place == 0 ? kFrameRoom : kFrameHead}};
  const int first = in_place == 0 ? 1 : 0;
  const Result<std::size_t> got = socket_.Receive(parts + first, 2 - first);
  if (!got) return Forward(got);
  if (*got == 0) return in_place == 0 ? Status() : socket_.Wait(!output_.empty(), patience);
  const std::size_t placed = std::min(in_place, *got);
  if (Status taken = Take({wanted_.data(), placed}); !taken) return taken;
  return Take({room_.data(), *got - placed});
}

Status GrpcExchange::Begin(std::string_view method, const std::vector<Span<const std::byte>>& message,
                           const Patience& patience) {
  if (session_ == nullptr) return NoMemory();
  nothing_arrived_ = true;
  http_status_ = 0;
  grpc_status_ = -1;
  grpc_message_.clear();
  spare_.clear();
  spare_read_ = 0;
  part_ = part_sent_ = 0;
  std::uint64_t bytes = 0;
  for (const Span<const std::byte> part : message) bytes += part.size();
  if (bytes > 0xffffffff)
    return Fail(StatusCode::kInvalidArgument, "a message of gRPC has at most 4 GiB, and {} bytes are given",
                bytes);
  std::array<std::byte, 5> prefix = {};
  for (std::size_t i = 0; i < 4; ++i) prefix[1 + i] = static_cast<std::byte>(bytes >> (24 - 8 * i));
  message_ = {Span<const std::byte>(prefix.data(), prefix.size())};
  message_.insert(message_.end(), message.begin(), message.end());
  message_.erase(std::remove_if(message_.begin(), message_.end(), [](auto part) { return part.empty(); }),
                 message_.end());

  const std::string path = "/inference.GRPCInferenceService/" + std::string(method);
  const auto pair = [](std::string_view name, std::string_view value) {
    return nghttp2_nv{reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                      reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
                      value.size(), NGHTTP2_NV_FLAG_NONE};
  };
  const std::array<nghttp2_nv, 7> headers = {
      pair(":method", "POST"),
      pair(":scheme", "http"),
      pair(":path", path),
      pair(":authority", authority_),
      pair("te", "trailers"),
      pair("content-type", "application/grpc"),
      pair("authorization", authorization_),
  };
  const std::size_t header_count = headers.size() - (authorization_.empty() ? 1 : 0);
  nghttp2_data_provider body = {};
  body.read_callback = Callbacks::Read;
  stream_ = nghttp2_submit_request(session_, nullptr, headers.data(), header_count, &body, nullptr);
  Status sent = stream_ < 0 ? NoMemory() : Status();
  while (sent && stream_ >= 0 && spare_.empty() && (part_ < message_.size() || !output_.empty()))
    sent = Turn(false, patience);
  // A server that answers before it has the message has found a fault in it. Nobody keeps the rest for long
  // enough to send it.
  sends_ = sent && part_ == message_.size() && output_.empty();
  output_ = OutputQueue();
  usable_ = usable_ && sends_;
  message_.clear();
  part_ = part_sent_ = 0;
  return sent;
}

Status GrpcExchange::EndedBefore() const {
  if (grpc_status_ > 0) {
    return Fail(CodeOfGrpc(grpc_status_), "the server answers with gRPC status {}: {}", grpc_status_,
                grpc_message_.empty() ? "no reason is given" : grpc_message_);
  }
  if (http_status_ != 0 && http_status_ != 200)
    return Fail(CodeOfHttp(http_status_), "the server answers with HTTP status {}", http_status_);
  if (reset_ != 0)
    return Fail(StatusCode::kIo, "the server has ended the call: {}", nghttp2_http2_strerror(reset_));
  return Fail(StatusCode::kUnsupported, "the server's message is shorter than it says");
}

Status GrpcExchange::Read(Span<std::byte> to, const Patience& patience) {
  const std::size_t known = std::min(to.size(), spare_.size() - spare_read_);
  if (known > 0) std::memcpy(to.data(), spare_.data() + spare_read_, known);
  spare_read_ += known;
  if (spare_read_ == spare_.size()) {
    spare_.clear();
    spare_read_ = 0;
  }
  wanted_ = to.subspan(known);
  Status turned;
  while (turned && !wanted_.empty() && stream_ >= 0) turned = Turn(true, patience);
  const bool complete = std::exchange(wanted_, {}).empty();
  if (!turned) {
    usable_ = false;
    return turned;
  }
  return complete ? Status() : EndedBefore();
}

Status GrpcExchange::End(const Patience& patience) {
  Status turned;
  while (turned && stream_ >= 0) turned = Turn(true, patience);
  if (!turned) {
    usable_ = false;
    return turned;
  }
  if (grpc_status_ != 0) return EndedBefore();
  return spare_.empty() ? Status()
                        : Fail(StatusCode::kUnsupported, "the server's message is longer than it says");
}

}  // namespace rewire::serve
