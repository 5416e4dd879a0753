// SPDX-License-Identifier: Apache-2.0
// A service without models, for tests of front ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/serve/core/service.h"

namespace rewire::test {

// It has the model "double", of one input x and one output y of FP32. Requests for it wait until Lane::Run,
// which gives y = 2 x, or until they are cancelled. "hold" keeps its requests until Release. "fail" fails.
// Steps of what is held wait like requests for "double"; who derives from it holds generators and answers
// them.
class FakeService : public serve::Service {
 public:
  void Submit(serve::Request* request, serve::Lane*) override;
  void Cancel(serve::Request* request) override;
  std::unique_ptr<serve::Lane> MakeLane() override;
  Result<std::shared_ptr<serve::HeldModel>> HoldGenerator(std::string_view) override {
    return Fail(StatusCode::kUnsupported, "this service makes no tokens");
  }
  serve::ServerDescription Describe() const override { return {"rewire", "1", {"binary_tensor_data"}}; }
  bool Ready() const override { return true; }
  Status CheckReady(std::string_view model, std::string_view version) const override;
  Result<serve::ModelDescription> Describe(std::string_view model, std::string_view version) const override;
  Result<std::vector<serve::ModelStatistics>> Statistics(std::string_view model,
                                                         std::string_view) const override;
  std::vector<serve::ModelIndexEntry> Index(bool) const override;
  Status Load(std::string_view model) override { return CheckReady(model, {}); }
  Status Unload(std::string_view model) override { return CheckReady(model, {}); }
  serve::SharedRegions& regions() override { return regions_; }
  serve::Traces& traces() override { return traces_; }
  serve::ServerLog* log() override { return nullptr; }
  void WriteMetrics(std::string*) const override {}
  void StartDraining() override {}
  std::size_t in_flight() const override { return waiting_.size() + held_.size(); }

  // Finishes the requests that "hold" has.
  void Release();
  std::size_t held() const { return held_.size(); }
  // The first input of the last request, as it was given.
  Span<const std::byte> last_input() const { return last_input_; }
  std::uint64_t cancelled = 0, answered = 0;

 protected:
  virtual void Answer(serve::Request* request);

 private:
  class FakeLane;

  std::vector<serve::Request*> waiting_, held_;
  Span<const std::byte> last_input_;
  serve::SharedRegions regions_;
  serve::Traces traces_{""};
};

}  // namespace rewire::test
