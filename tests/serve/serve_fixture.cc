// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/serve/serve_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "rewire/executable_format/text/assembler.h"
#include "rewire/executable_format/writer.h"
#include "rewire/serve/http/http_front_end.h"
#include "rewire/serve/run/model_service.h"
#include "rewire/vm/host_function.h"

namespace rewire::serve::test {

std::string DoubleProgram(const std::string& kernel) {
  return ".kernel double = \"" + kernel + R"("
.func main(x: f32[N, 4]) -> y: f32[N, 4]
  %shape = shape_of %x
  %bytes = load_consti 65536
  %storage = alloc_storage %bytes, alignment=64, f32, cpu
  %y = alloc_tensor_reg %storage, _, %shape, f32
  invoke_packed double(%x, %x, %y), outputs=1
  ret %y
.end
)";
}

std::string WriteModel(const rewire::test::TempFolder& folder, const std::string& name,
                       const std::string& program) {
  const Result<Module> module = Assemble(program);
  REQUIRE(module);
  const Result<std::vector<std::byte>> bytes = SerializeModule(*module);
  REQUIRE(bytes);
  return folder.Write(name, std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
}

KernelSet Gate::Kernels() {
  KernelSet kernels;
  kernels.AddFunction("test.gate", MakePackedFunction([this](kernel::TensorView x, kernel::TensorView,
                                                             kernel::TensorView y) -> kernel::Status {
                        const auto* const from = x.data<const float>();
                        auto* const to = y.data<float>();
                        const std::int64_t rows = x.dim(0);
                        {
                          std::unique_lock<std::mutex> lock(mutex_);
                          rows_.push_back(rows);
                          last_input_ = from;
                          last_output_ = to;
                          changed_.notify_all();
                          changed_.wait(lock, [this] { return !shut_; });
                        }
                        for (std::int64_t i = 0; i < rows * 4; ++i) {
                          if (from[i] < 0) return kernel::RuntimeError("an element is negative");
                          to[i] = from[i] + from[i];
                        }
                        return {};
                      }));
  return kernels;
}

void Gate::Shut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shut_ = true;
}

void Gate::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  shut_ = false;
  changed_.notify_all();
}

void Gate::WaitForRuns(std::size_t count) {
  std::unique_lock<std::mutex> lock(mutex_);
  REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return rows_.size() >= count; }));
}

std::vector<std::int64_t> Gate::rows() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rows_;
}

const void* Gate::last_input() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_input_;
}

const void* Gate::last_output() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_output_;
}

TestRequest::TestRequest(std::int64_t rows, float first) {
  this->rows = rows;  // where no service sets it
  elements_.resize(static_cast<std::size_t>(rows) * 4);
  for (std::size_t i = 0; i < elements_.size(); ++i) elements_[i] = first + static_cast<float>(i);
  model = "double";
  InputTensor& input = inputs.emplace_back();
  input.name = "x";
  input.dtype = kFloat32;
  input.shape = {rows, 4};
  input.data = {reinterpret_cast<const std::byte*>(elements_.data()), elements_.size() * sizeof(float)};
}

void TestRequest::Finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++finishes_;
  changed_.notify_all();
}

void TestRequest::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  REQUIRE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return finishes_ > 0; }));
  CHECK(finishes_ == 1);
}

bool TestRequest::is_finished() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return finishes_ > 0;
}

std::vector<float> TestRequest::Floats(std::size_t output) const {
  REQUIRE(results.size() > output);
  std::vector<float> floats(results[output].bytes / sizeof(float));
  if (!floats.empty()) std::memcpy(floats.data(), results[output].data, results[output].bytes);
  return floats;
}

std::vector<float> TestRequest::Doubled() const {
  std::vector<float> doubled = elements_;
  for (float& element : doubled) element += element;
  return doubled;
}

std::unique_ptr<Service> ServiceOf(ServeSettings settings, KernelSet kernels) {
  Result<std::unique_ptr<Service>> service = MakeService(std::move(settings), {{}, std::move(kernels)});
  if (!service) FAIL(service.error().message());
  return *std::move(service);
}

ServeSettings SettingsOf(const std::string& path) {
  ServeSettings settings;
  settings.paths = {path};
  return settings;
}

TestServer::TestServer(ServeSettings settings, const FrontEndLimits& limits, KernelSet kernels)
    : server_(ServiceOf(std::move(settings), std::move(kernels)), 2) {
  std::unique_ptr<FrontEnd> front_end = MakeHttpFrontEnd(server_.service(), limits);
  front_end_ = front_end.get();
  const Result<int> port = server_.Add(std::move(front_end), "127.0.0.1:0");
  if (!port) FAIL(port.error().message());
  port_ = *port;
  const Status started = server_.Start();
  REQUIRE(started);
}

TestClient::TestClient(int port, int buffer) : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval time{20, 0};
  setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  if (buffer > 0) setsockopt(file_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  // Clients run on threads, where Catch must not check. Without a connection there is no response, which
  // tests do.
  if (connect(file_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) Close();
}

TestClient::~TestClient() { Close(); }

void TestClient::Close() {
  if (file_ >= 0) close(std::exchange(file_, -1));
}

void TestClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the response, or its lack, says why
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool TestClient::ReceiveUpTo(std::size_t bytes) {
  while (received_.size() < bytes) {
    char some[4096];
    const ssize_t got = recv(file_, some, sizeof some, 0);
    if (got < 0 && errno == EINTR) continue;  // a process of a sandbox has ended
    if (got <= 0) return false;
    received_.append(some, static_cast<std::size_t>(got));
  }
  return true;
}

std::string TestClient::ReadUntil(std::string_view until) {
  std::size_t end = 0;
  while ((end = received_.find(until)) == std::string::npos) {
    if (!ReceiveUpTo(received_.size() + 1)) return std::exchange(received_, {});
  }
  end += until.size();
  std::string bytes = received_.substr(0, end);
  received_.erase(0, end);
  return bytes;
}

TestClient::Response TestClient::ReadHead() {
  Response response;
  response.head = ReadUntil("\r\n\r\n");
  if (response.head.size() < 12) return {};
  response.status = std::stoi(response.head.substr(9, 3));
  return response;
}

TestClient::Response TestClient::Read() {
  Response response = ReadHead();
  if (response.status == 0 || response.status == 100) return response;
  if (response.head.find("\r\nTransfer-Encoding: chunked\r\n") != std::string::npos) {
    while (true) {
      const std::string line = ReadUntil("\r\n");
      if (line.size() < 3) return {};
      const std::size_t bytes = std::stoul(line, nullptr, 16);
      if (!ReceiveUpTo(bytes + 2) || received_.substr(bytes, 2) != "\r\n") return {};
      if (bytes > 0) response.chunks.push_back(received_.substr(0, bytes));
      response.body += received_.substr(0, bytes);
      received_.erase(0, bytes + 2);
      if (bytes == 0) return response;
    }
  }
  const std::size_t at = response.head.find("\r\nContent-Length: ");
  if (at == std::string::npos) {
    while (ReceiveUpTo(received_.size() + 1)) {
    }
    response.body = std::exchange(received_, {});
    return response;
  }
  const std::size_t length = std::stoul(response.head.substr(at + 18));
  if (!ReceiveUpTo(length)) return {};
  response.body = received_.substr(0, length);
  received_.erase(0, length);
  return response;
}

bool TestClient::IsClosed() {
  char byte = 0;
  const ssize_t got = received_.empty() ? recv(file_, &byte, 1, 0) : 1;
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

TestClient::Response TestClient::Get(const std::string& path) {
  Send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return Read();
}

TestClient::Response TestClient::Post(const std::string& path, std::string_view body,
                                      const std::string& headers) {
  Send("POST " + path + " HTTP/1.1\r\nHost: test\r\n" + headers +
       "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  return Read();
}

}  // namespace rewire::serve::test
