// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/remote_model.h"

#include <utility>

#include "rewire/serve/client/remote_call.h"
#include "rewire/serve/client/remote_module.h"

namespace rewire::serve {
namespace {

// How long the server is asked to let go of memory that was shared with it.
constexpr auto kLastWait = std::chrono::seconds(1);

// Lets the server unmap what was shared with it, when no program uses the model any more.
std::shared_ptr<const RemoteCall> WithFarewell(RemoteCall call) {
  return {new RemoteCall(std::move(call)), [](const RemoteCall* last) {
            const std::unique_ptr<const RemoteCall> owner(last);
            if (owner->regions == nullptr || !owner->regions->has_registered()) return;
            Patience patience;
            patience.until = std::chrono::steady_clock::now() + kLastWait;
            if (const auto channel = owner->open(patience))
              owner->regions->UnregisterAll(channel->get(), patience);
          }};
}

}  // namespace

Result<RemoteModel> ConnectRemoteModel(std::string_view text, const Patience& patience) {
  RemoteCall call;
  call.text = text;
  const Result<RemoteUrl> url = ParseRemoteUrl(text);
  if (!url) return Forward(url);
  call.open = [of = *url](const Patience& how_long) { return OpenChannel(of, how_long); };
  const Result<std::unique_ptr<Channel>> channel = call.open(patience);
  if (!channel) return Forward(channel, call.text);
  Result<RemoteSignature> signature = (*channel)->Describe(patience);
  if (!signature) return Forward(signature, call.text);
  call.signature = *std::move(signature);
  Result<RemoteModule> made = MakeRemoteModule(call.signature);
  if (!made) return Forward(made, call.text);
  call.derived = made->derived;
  if (url->shared_memory) call.regions = ClientRegions::Make();
  Result<Executable> executable = Executable::FromModule(std::move(made->module));
  if (!executable) return Forward(executable, call.text);
  RemoteModel model{*std::move(executable), {}, call.regions};
  model.kernels.AddFunction(kRemoteKernel, MakeRemoteFunction(WithFarewell(std::move(call))));
  return model;
}

}  // namespace rewire::serve
