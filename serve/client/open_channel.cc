// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/client/channel.h"
#include "rewire/serve/client/grpc_channel.h"
#include "rewire/serve/client/http_channel.h"

namespace rewire::serve {

Result<std::unique_ptr<Channel>> OpenChannel(const RemoteUrl& url, const Patience& patience) {
  switch (url.protocol) {
    case RemoteUrl::Protocol::kHttp:
      return OpenHttpChannel(url, patience);
    case RemoteUrl::Protocol::kGrpc:
      return OpenGrpcChannel(url, patience);
  }
  return Fail(StatusCode::kInternal, "not a protocol");
}

}  // namespace rewire::serve
