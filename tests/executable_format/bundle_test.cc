// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/bundle.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "rewire/base/array.h"
#include "rewire/base/hash.h"
#include "rewire/executable_format/layout.h"
#include "rewire/executable_format/writer.h"
#include "rewire/tests/executable_format/mutation_drill.h"
#include "rewire/tests/executable_format/sample_modules.h"

namespace rewire {
namespace {

using Bytes = std::vector<std::byte>;

SharedBytes ShareFile(const Bytes& bytes) {
  auto owner = std::make_shared<const Bytes>(bytes);
  return {{owner->data(), owner->size()}, owner};
}

Result<Array<BundledExecutable>> Open(const Bytes& bytes, bool verify = true) {
  OpenOptions options;
  options.verify_data = verify;
  return BundleFromBytes(ShareFile(bytes), options);
}

std::string OpenError(const Bytes& bytes) {
  const auto bundle = Open(bytes);
  return bundle ? "" : bundle.error().message();
}

TEST_CASE("a bundle gives back every executable, and stores equal constants once") {
  const std::vector<BundledExecutable> models = test::SampleBundle();
  const Bytes file = *SerializeBundle(models);
  CHECK(IsBundle(file));
  for (const bool verify : {false, true}) {
    const auto bundle = Open(file, verify);
    if (!bundle) FAIL(bundle.error().message());
    REQUIRE(bundle->size() == models.size());
    for (std::size_t i = 0; i < models.size(); ++i) {
      CAPTURE(models[i].name);
      CHECK((*bundle)[i].name == models[i].name);
      CHECK(*SerializeModule((*bundle)[i].executable.module()) ==
            *SerializeModule(models[i].executable.module()));
    }
    const Array<Constant>& first = bundle->front().executable.module().constants;
    const Array<Constant>& again = bundle->back().executable.module().constants;
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(first[i].stored.view.data() == again[i].stored.view.data());
    }
  }
  CHECK(*SerializeBundle(models) == file);
}

TEST_CASE("models are found by name, or when there is only one") {
  const auto bundle = *Open(*SerializeBundle(test::SampleBundle()));
  CHECK(*FindExecutable(bundle, "again") == bundle.back().executable);
  CHECK(FindExecutable(bundle, "agian").error().message().substr(0, 67) ==
        "the bundle has no model 'agian'; did you mean 'again'? The models: ");
  CHECK(FindExecutable(bundle, "").error().code() == StatusCode::kNotFound);
  const std::vector<BundledExecutable> one = {bundle.front()};
  CHECK(FindExecutable(one, "").has_value());
}

TEST_CASE("what cannot be a bundle is not written") {
  const BundledExecutable model = test::SampleBundle().front();
  CHECK(SerializeBundle({}).error().message() == "a bundle has at least one executable");
  const std::vector<BundledExecutable> nameless = {{"", model.executable}};
  CHECK(SerializeBundle(nameless).error().message() == "an executable of a bundle has a name");
  const std::vector<BundledExecutable> bytes = {{"a\xFF", model.executable}};
  CHECK(SerializeBundle(bytes).error().message() == "the name of a model is not UTF-8");
  const std::vector<BundledExecutable> twice = {model, model};
  CHECK(SerializeBundle(twice).error().message() ==
        "two models are called '" + model.name + "'; give each a name of its own");
}

TEST_CASE("a bundle is no executable and an executable no bundle") {
  const Bytes bundle = *SerializeBundle(test::SampleBundle());
  const Result<Executable> executable = Executable::FromBytes(ShareFile(bundle));
  REQUIRE_FALSE(executable);
  CHECK(executable.error().message().find(
            "this is a bundle of several models; choose one (OpenBundle, vm-run --model)") !=
        std::string::npos);
  const Bytes plain = *SerializeModule(test::SampleModules().front().module);
  CHECK_FALSE(IsBundle(plain));
  CHECK(OpenError(plain).substr(0, 34) == "this is no bundle: it has section ");
}

TEST_CASE("no mutant of a bundle crashes, and none with its old checksums is accepted") {
  const std::vector<BundledExecutable> models = test::SampleBundle();
  const Bytes good = *SerializeBundle(Span<const BundledExecutable>(models).subspan(0, 2));
  std::size_t past = 0;
  std::size_t mutants = 0;
  const auto look = [&](Bytes mutant, std::size_t at) {
    ++mutants;
    CAPTURE(at);
    mutant.shrink_to_fit();
    CHECK_FALSE(Open(mutant));
    test::RecomputeChecksums(mutant);
    const auto accepted = Open(mutant, false);
    if (!accepted) return;
    ++past;
  };
  for (std::size_t size = 0; size < good.size(); ++size)
    look(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), size);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      Bytes mutant = good;
      mutant[i] ^= static_cast<std::byte>(flip);
      look(std::move(mutant), i);
    }
  }
  WARN("bundle drill: " << mutants << " mutants, " << past << " accepted with checksums recomputed");
  CHECK(past > 0);
}

}  // namespace
}  // namespace rewire
