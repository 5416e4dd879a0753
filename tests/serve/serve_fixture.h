// SPDX-License-Identifier: Apache-2.0
// Models, services and clients for the tests of the server.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/serve/core/request.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/models/settings.h"
#include "rewire/serve/server.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::serve::test {

// y = x + x, for any number of rows of 4 floats. `kernel` computes it: "rewire.add", or one of a test, with
// x, x and y.
std::string DoubleProgram(const std::string& kernel = "rewire.add");
// Assembles a program and writes it as an executable.
std::string WriteModel(const rewire::test::TempFolder& folder, const std::string& name,
                       const std::string& program);

// A kernel for DoubleProgram that counts its runs and the rows of each, waits while it is shut, and fails for
// a negative first element.
class Gate {
 public:
  KernelSet Kernels();
  void Shut();
  void Open();
  // Waits until so many runs have begun.
  void WaitForRuns(std::size_t count);
  std::vector<std::int64_t> rows() const;
  const void* last_input() const;
  const void* last_output() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool shut_ = false;
  std::vector<std::int64_t> rows_;
  const void* last_input_ = nullptr;
  const void* last_output_ = nullptr;
};

// A request for DoubleProgram, whose elements are `first`, first + 1 and so on.
class TestRequest : public Request {
 public:
  TestRequest(std::int64_t rows, float first);
  void Finish() override;
  // Waits until it is finished.
  void Wait();
  bool is_finished() const;
  std::vector<float> Floats(std::size_t output = 0) const;
  // The answer that is right.
  std::vector<float> Doubled() const;
  std::string message() const { return status ? std::string() : status.error().message(); }

 private:
  std::vector<float> elements_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int finishes_ = 0;  // counted, not checked, where it happens: Catch checks on one thread alone
};

std::unique_ptr<Service> ServiceOf(ServeSettings settings, KernelSet kernels = {});
ServeSettings SettingsOf(const std::string& path);

// A server with HTTP at a free port, and one client.
class TestServer {
 public:
  explicit TestServer(ServeSettings settings, const FrontEndLimits& limits = {}, KernelSet kernels = {});
  Service* service() { return server_.service(); }
  Server* server() { return &server_; }
  int port() const { return port_; }
  std::size_t open_connections() const { return front_end_->open_connections(); }

 private:
  Server server_;
  FrontEnd* front_end_ = nullptr;  // the server's
  int port_ = 0;
};

// One connection. Reads time out after 20 seconds.
class TestClient {
 public:
  // `buffer`: bytes that wait for a client that does not read; 0: the usual number.
  explicit TestClient(int port, int buffer = 0);
  ~TestClient();
  void Send(std::string_view bytes);
  struct Response {
    int status = 0;  // 0: the connection was closed before
    std::string head;
    std::string body;
    std::vector<std::string> chunks;  // if the body came in chunks
  };
  Response Read();
  // The same, for a request of the method HEAD.
  Response ReadHead();
  // Returns the bytes up to `until`, or all if the server closes the connection before.
  std::string ReadUntil(std::string_view until);
  // True if the server has closed the connection and nothing more has come.
  bool IsClosed();
  Response Get(const std::string& path);
  Response Post(const std::string& path, std::string_view body, const std::string& headers = "");
  void Close();

 private:
  // False if the connection was closed before so many bytes were there.
  bool ReceiveUpTo(std::size_t bytes);

  int file_ = -1;
  std::string received_;
};

}  // namespace rewire::serve::test
