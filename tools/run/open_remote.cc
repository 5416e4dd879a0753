// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/open_remote.h"

#include <chrono>

#if REWIRE_TOOLS_CONNECT
#include "rewire/serve/client/remote_model.h"
#endif

namespace rewire::tools {
namespace {

bool IsUrl(const std::string& path) { return path.rfind("grpc://", 0) == 0 || path.rfind("http://", 0) == 0; }

#if REWIRE_TOOLS_CONNECT
constexpr auto kConnectTime = std::chrono::seconds(10);

Result<OpenedModel> Connect(const std::string& url) {
  serve::Patience patience;
  patience.until = std::chrono::steady_clock::now() + kConnectTime;
  Result<serve::RemoteModel> remote = serve::ConnectRemoteModel(url, patience);
  if (!remote) return Forward(remote);
  OpenedModel model{FileKind::kExecutable, remote->executable, false, {}};
  model.host_kernels = remote->kernels;
  if (remote->regions != nullptr) model.allocator = remote->regions->allocator();
  return model;
}
#else
Result<OpenedModel> Connect(const std::string& url) {
  return Fail(StatusCode::kUnsupported, url + ": these tools were built without the server and its clients");
}
#endif

}  // namespace

Result<OpenedModel> OpenModelOrRemote(const std::string& path, const std::vector<std::string>& parameters,
                                      const OpenOptions& options, const std::string& model,
                                      const std::vector<std::string>& kernels) {
  if (!IsUrl(path)) return OpenModel(path, parameters, options, model, kernels);
  if (!model.empty() || !parameters.empty() || !kernels.empty()) {
    return Fail(StatusCode::kInvalidArgument,
                path + ": --model, --params and --kernels are for files; the server has the model");
  }
  return Connect(path);
}

}  // namespace rewire::tools
