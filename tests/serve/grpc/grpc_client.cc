// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/serve/grpc/grpc_client.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>

#include "rewire/serve/grpc/grpc_front_end.h"
#include "rewire/serve/grpc/protobuf_wire.h"
#include "rewire/serve/net/listen.h"

namespace rewire::test {

int GrpcAnswer::status() const {
  const auto found = headers.find("grpc-status");
  return found == headers.end() ? -1 : std::stoi(found->second);
}

std::vector<std::string> GrpcAnswer::messages() const {
  std::vector<std::string> found;
  std::string_view rest = body;
  while (rest.size() >= 5) {
    std::size_t size = 0;
    for (int i = 1; i < 5; ++i) size = size << 8 | static_cast<std::uint8_t>(rest[i]);
    if (rest.size() < 5 + size) break;
    found.emplace_back(rest.substr(5, size));
    rest.remove_prefix(5 + size);
  }
  return found;
}

GrpcServer::GrpcServer(const serve::FrontEndLimits& limits) {
  loop_ = *serve::EventLoop::Make();
  lane_ = service_.MakeLane();
  loop_->OnTurn([this] {
    lane_->Run();
    return false;
  });
  front_end_ = serve::MakeGrpcFrontEnd(&service_, limits);
  Descriptor listener = *serve::Listen("127.0.0.1:0");
  port_ = serve::PortOf(listener.get());
  acceptor_ = std::make_unique<serve::Acceptor>(
      loop_.get(), std::move(listener),
      [taker = front_end_->Open(loop_.get(), lane_.get())](Descriptor client) {
        taker(serve::ServedSocket(std::move(client)));
      });
  REQUIRE(acceptor_->Start());
  thread_ = std::thread([this] { loop_->Run(); });
}

GrpcServer::~GrpcServer() {
  loop_->Stop();
  thread_.join();
  acceptor_.reset();
  front_end_.reset();
}

void GrpcServer::On(const std::function<void()>& task) {
  std::promise<void> done;
  loop_->Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void GrpcServer::Drain() {
  On([this] {
    acceptor_->Stop();
    front_end_->StartDraining(loop_.get());
  });
}

struct ClientCallbacks {
  static GrpcClient* Of(void* user) { return static_cast<GrpcClient*>(user); }
  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                      void* user) {
    Of(user)
        ->answers_[frame->hd.stream_id]
        .headers[std::string(reinterpret_cast<const char*>(name), name_size)] =
        std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }
  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type != NGHTTP2_GOAWAY) return 0;
    Of(user)->going_away_ = true;
    Of(user)->goaway_error_ = frame->goaway.error_code;
    return 0;
  }
  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* data,
                    std::size_t size, void* user) {
    Of(user)->answers_[id].body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }
  static int OnClose(nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
    Of(user)->answers_[id].closed = true;
    Of(user)->answers_[id].error = error;
    return 0;
  }
  static ssize_t Read(nghttp2_session*, std::int32_t id, std::uint8_t* room, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source*, void* user) {
    GrpcClient::Body& body = Of(user)->bodies_[id];
    const std::size_t taken = std::min(size, body.bytes.size() - body.sent);
    if (taken == 0 && !body.end) {
      body.waits = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    std::memcpy(room, body.bytes.data() + body.sent, taken);
    body.sent += taken;
    if (body.end && body.sent == body.bytes.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(taken);
  }
};

namespace {

int ConnectTo(int port) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return file;
}

}  // namespace

GrpcClient::GrpcClient(int port) : port_(port), file_(ConnectTo(port)) {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_session_callbacks_new(&callbacks);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, ClientCallbacks::OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, ClientCallbacks::OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, ClientCallbacks::OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, ClientCallbacks::OnClose);
  REQUIRE(nghttp2_session_client_new(&session_, callbacks, this) == 0);
  nghttp2_session_callbacks_del(callbacks);
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  Flush();
}

GrpcClient::~GrpcClient() {
  nghttp2_session_del(session_);
  close(file_);
}

void GrpcClient::SendRaw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      open_ = false;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void GrpcClient::SendAlone(std::string_view bytes) {
  close(std::exchange(file_, ConnectTo(port_)));
  SendRaw(bytes);
  shutdown(file_, SHUT_WR);
  char rest[4096];
  while (recv(file_, rest, sizeof rest, 0) > 0) {
  }
}

void GrpcClient::Flush() {
  const std::uint8_t* data = nullptr;
  for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;)
    SendRaw({reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)});
}

bool GrpcClient::Receive() {
  std::uint8_t bytes[16384];
  const ssize_t got = open_ ? recv(file_, bytes, sizeof bytes, 0) : 0;
  if (got <= 0) return open_ = false;
  if (nghttp2_session_mem_recv(session_, bytes, static_cast<std::size_t>(got)) < 0) return open_ = false;
  Flush();
  return true;
}

std::int32_t GrpcClient::Call(const std::string& method, const std::string& body, bool end,
                              const Headers& headers) {
  Headers all = {
      {":method", "POST"},    {":scheme", "http"}, {":path", "/inference.GRPCInferenceService/" + method},
      {":authority", "test"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  for (const auto& given : headers) {
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const auto& header) { return header.first == given.first; });
    if (same == all.end()) {
      all.push_back(given);
    } else {
      same->second = given.second;
    }
  }
  std::vector<nghttp2_nv> pairs;
  for (auto& [name, value] : all) {
    pairs.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                     reinterpret_cast<std::uint8_t*>(value.data()), name.size(), value.size(),
                     NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider provider = {};
  provider.read_callback = ClientCallbacks::Read;
  const std::int32_t id =
      nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(), &provider, nullptr);
  bodies_[id] = {body, 0, end, false};
  Flush();
  return id;
}

void GrpcClient::Send(std::int32_t id, const std::string& body, bool end) {
  bodies_[id].bytes += body;
  bodies_[id].end = end;
  if (std::exchange(bodies_[id].waits, false)) nghttp2_session_resume_data(session_, id);
  Flush();
}

void GrpcClient::Reset(std::int32_t id) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  Flush();
}

const GrpcAnswer& GrpcClient::Wait(std::int32_t id) {
  while (!answers_[id].closed && Receive()) {
  }
  return answers_[id];
}

const GrpcAnswer& GrpcClient::WaitForMessages(std::int32_t id, std::size_t count) {
  while (!answers_[id].closed && answers_[id].messages().size() < count && Receive()) {
  }
  return answers_[id];
}

void GrpcClient::WaitForEnd() {
  while (Receive()) {
  }
}

std::string Framed(std::string_view message) {
  std::string framed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) framed.push_back(static_cast<char>(message.size() >> shift));
  return framed.append(message);
}

std::string InferMessage(const std::string& model, const std::vector<float>& x, const std::string& id) {
  std::string message;
  serve::WireWriter writer(&message);
  writer.Text(1, model).Text(3, id).Message(5, [&](serve::WireWriter* input) {
    input->Text(1, "x").Text(2, "FP32").Packed(3, std::vector<std::size_t>{x.size()});
  });
  writer.AlwaysText(7, {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)});
  return message;
}

std::vector<float> OutputOf(std::string_view response) {
  serve::WireReader reader(response);
  std::vector<float> elements;
  while (reader.Next()) {
    if (!reader.Is(6, serve::WireType::kBytes)) continue;
    elements.resize(reader.bytes().size() / sizeof(float));
    std::memcpy(elements.data(), reader.bytes().data(), elements.size() * sizeof(float));
  }
  return elements;
}

}  // namespace rewire::test
