// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/http/exchange.h"

#include "rewire/serve/http/generate.h"
#include "rewire/serve/http/openai.h"

namespace rewire::serve {

std::unique_ptr<Exchange> MakeExchange(const Route& route, Service* service) {
  if (route.kind == Route::kGenerate) return MakeGenerate(route, false, service);
  if (route.kind == Route::kGenerateStream) return MakeGenerate(route, true, service);
  if (route.kind == Route::kOpenAiCompletion) return MakeCompletion(false, service);
  if (route.kind == Route::kOpenAiChat) return MakeCompletion(true, service);
  return nullptr;
}

}  // namespace rewire::serve
