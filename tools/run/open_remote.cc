// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/open_remote.h"

#include <algorithm>
#include <array>
#include <chrono>

#if REWIRE_TOOLS_CONNECT
#include "rewire/serve/client/remote_model.h"
#endif

namespace rewire::tools {
namespace {

bool IsUrl(const std::string& path) {
  constexpr std::array kSchemes = {"grpc://", "grpcs://", "http://", "https://"};
  return std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&](const char* scheme) { return path.rfind(scheme, 0) == 0; });
}

constexpr auto kConnectTime = std::chrono::seconds(10);

}  // namespace

#if REWIRE_TOOLS_CONNECT
Result<OpenedModel> OpenRemoteModel(const std::string& url, std::chrono::nanoseconds time) {
  serve::Patience patience;
  patience.until = std::chrono::steady_clock::now() + time;
  Result<serve::RemoteModel> remote = serve::ConnectRemoteModel(url, patience);
  if (!remote) return Forward(remote);
  OpenedModel model{FileKind::kExecutable, remote->executable, false, {}};
  model.host_kernels = remote->kernels;
  if (remote->regions != nullptr) model.allocator = remote->regions->allocator();
  return model;
}
#else
Result<OpenedModel> OpenRemoteModel(const std::string& url, std::chrono::nanoseconds /*time*/) {
  return Fail(StatusCode::kUnsupported, url + ": this build has neither the server nor its clients");
}
#endif

Result<OpenedModel> OpenModelOrRemote(const std::string& path, const std::vector<std::string>& parameters,
                                      const OpenOptions& options, const std::string& model,
                                      const std::vector<std::string>& kernels) {
  if (!IsUrl(path)) return OpenModel(path, parameters, options, model, kernels);
  if (!model.empty() || !parameters.empty() || !kernels.empty()) {
    return Fail(StatusCode::kInvalidArgument,
                path + ": --model, --params and --kernels are for files; the server has the model");
  }
  return OpenRemoteModel(path, kConnectTime);
}

}  // namespace rewire::tools
