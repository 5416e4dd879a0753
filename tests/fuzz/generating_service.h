// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "rewire/base/status.h"
#include "rewire/serve/core/service.h"
#include "rewire/serve/generate/generator.h"
#include "rewire/tests/serve/grpc/fake_service.h"

namespace rewire::fuzz {

// GeneratingService: a FakeService whose model "double" makes tokens as well, for texts and conversations. A
// token is a byte, also one that is no whole character. Which one comes depends on all before it. Some steps
// fail, and some give no logits that a token can be drawn from.
class GeneratingService final : public test::FakeService {
 public:
  GeneratingService();
  Result<std::shared_ptr<serve::HeldModel>> HoldGenerator(std::string_view model) override;

 private:
  void Answer(serve::Request* request) override;

  serve::Generator generator_;
};

}  // namespace rewire::fuzz
