// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/against/onnx_runtime.h"

#include <fmt/format.h>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "rewire/executable_format/tensor_files/npy.h"

namespace rewire::tools {
namespace {

using Json = nlohmann::ordered_json;

Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Returns false if the other side has gone.
bool WriteAll(int socket, Span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool ReadAll(int socket, std::byte* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t got = read(socket, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::vector<std::string> Strings(const Json& list) { return list.get<std::vector<std::string>>(); }

}  // namespace

Status OnnxRuntime::Spawn() {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return Fail(StatusCode::kIo,
                fmt::format("cannot make a socket for {}: {}", python_, std::strerror(errno)));
  }
  socket_ = sockets[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  // Signals that this tool ignores are the Python's own again.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::array<std::string, 4> words = {python_, "-c", kOnnxRuntimeScript, model_};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                                    nullptr};
  const int failed = posix_spawnp(&child_, python_.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(sockets[1]);
  if (failed == 0) return {};
  child_ = -1;
  return Fail(StatusCode::kNotFound,
              fmt::format("--against needs a Python with ONNX Runtime, and '{}' cannot be started: {}; "
                          "--python names another one",
                          python_, std::strerror(failed)));
}

OnnxRuntime::~OnnxRuntime() {
  if (socket_ >= 0) close(socket_);  // it ends when it reads that
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

Status OnnxRuntime::Ended() {
  int how = 0;
  if (child_ > 0) waitpid(std::exchange(child_, -1), &how, 0);
  const std::string text = WIFSIGNALED(how) ? fmt::format("signal {}", WTERMSIG(how))
                                            : fmt::format("exit status {}", WEXITSTATUS(how));
  return Fail(StatusCode::kRuntimeFailed,
              fmt::format("{} ended with {} before it had computed values of {}", python_, text, model_));
}

void OnnxRuntime::SendBytes(Span<const std::byte> bytes) {
  std::array<std::byte, 8> size{};
  for (std::size_t i = 0; i < size.size(); ++i) size[i] = static_cast<std::byte>(bytes.size() >> (8 * i));
  if (WriteAll(socket_, {size.data(), size.size()})) WriteAll(socket_, bytes);
}

void OnnxRuntime::Send(const Json& message) { SendBytes(BytesOf(message.dump())); }

Status OnnxRuntime::ReceiveBytes(SharedBytes* bytes) {
  std::array<std::byte, 8> size{};
  if (!ReadAll(socket_, size.data(), size.size())) return Ended();
  std::size_t count = 0;
  for (std::size_t i = size.size(); i-- > 0;) count = count << 8 | static_cast<std::size_t>(size[i]);
  std::byte* data = nullptr;
  *bytes = AllocateBytes(count, &data);
  if (!ReadAll(socket_, data, count)) return Ended();
  return {};
}

Result<Json> OnnxRuntime::Receive() {
  SharedBytes bytes;
  if (Status received = ReceiveBytes(&bytes); !received) return Forward(received);
  const auto* text = reinterpret_cast<const char*>(bytes.view.data());
  Json message = Json::parse(text, text + bytes.view.size(), nullptr, false);
  if (!message.is_object()) return Fail(StatusCode::kInternal, python_ + " answers what is no JSON");
  if (message.contains("missing")) {
    return Fail(
        StatusCode::kNotFound,
        fmt::format("--against needs the packages onnx and onnxruntime, and {} does not have '{}': install "
                    "them with `{} -m pip install onnx onnxruntime`, or name another Python with --python",
                    python_, message["missing"].get<std::string>(), python_));
  }
  if (message.contains("error")) {
    return Fail(StatusCode::kRuntimeFailed,
                fmt::format("{}: ONNX Runtime: {}", model_, message["error"].get<std::string>()));
  }
  return message;
}

Result<std::unique_ptr<OnnxRuntime>> OnnxRuntime::Start(const std::string& python, const std::string& model,
                                                        Span<const NamedTensor> inputs) {
  std::unique_ptr<OnnxRuntime> runtime(new OnnxRuntime(python, model));
  if (Status spawned = runtime->Spawn(); !spawned) return Forward(spawned);
  std::vector<std::string> names;
  for (const NamedTensor& input : inputs) names.push_back(input.name);
  runtime->Send({{"names", names}});
  for (const NamedTensor& input : inputs) {
    const Result<std::vector<std::byte>> bytes = SerializeNpy(input.tensor);
    if (!bytes) return Forward(bytes, input.name);
    runtime->SendBytes({bytes->data(), bytes->size()});
  }
  const Result<Json> answer = runtime->Receive();
  if (!answer) return Forward(answer);
  for (const Json& node : answer->at("nodes")) {
    runtime->graph_.nodes.push_back(
        {node.at("name"), node.at("op"), Strings(node.at("inputs")), Strings(node.at("outputs"))});
  }
  runtime->graph_.inputs = Strings(answer->at("inputs"));
  runtime->graph_.constants = Strings(answer->at("constants"));
  runtime->graph_.outputs = Strings(answer->at("outputs"));
  return runtime;
}

Result<std::map<std::string, HostTensor>> OnnxRuntime::Values(const std::vector<std::string>& names) {
  Send({{"values", names}});
  const Result<Json> answer = Receive();
  if (!answer) return Forward(answer);
  std::map<std::string, HostTensor> values;
  for (const std::string& name : Strings(answer->at("names"))) {
    SharedBytes bytes;
    if (Status received = ReceiveBytes(&bytes); !received) return Forward(received);
    Result<HostTensor> tensor = ParseNpy(bytes);
    if (!tensor) return Forward(tensor, name);
    values.emplace(name, *std::move(tensor));
  }
  return values;
}

}  // namespace rewire::tools
