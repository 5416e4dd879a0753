// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "executable_format/import/tvm.h"
#include "tests/executable_format/import/foreign_files.h"

namespace rewire::tvm {
namespace {

using Catch::Matchers::Contains;

std::string Blob(const std::vector<std::string>& entries) {
  StreamWriter body;
  body.Count(entries.size());
  for (const std::string& entry : entries) body.Raw(entry);
  StreamWriter out;
  out.Count(body.bytes().size());
  out.Raw(body.bytes());
  return out.bytes();
}

std::string Entry(const std::string& key, const std::string& payload = "") {
  StreamWriter out;
  out.String(key);
  out.Raw(payload);
  return out.bytes();
}

std::string Tree() {
  StreamWriter out;
  out.Ints({0, 1, 1});
  out.Ints({1});
  return Entry("_import_tree", out.bytes());
}

std::string Graph() {
  StreamWriter out;
  out.String("{}");
  out.Count(1);
  out.Strings({"p0"});
  out.Tensor(kInt8, {2}, "ab");
  out.String("default");
  return Entry("GraphExecutorFactory", out.bytes());
}

std::string Relay(const std::string& content) {
  StreamWriter out;
  out.String(content);
  return Entry("VMExecutable", out.bytes());
}

TEST_CASE("a library's blob gives the executable or the graph inside") {
  const SharedBytes relay = Share(Blob({Relay("content"), Entry("_lib"), Tree()}));
  Result<LibraryBlob> blob = ReadLibraryBlob(relay.view);
  REQUIRE(blob);
  CHECK(blob->relay_executable.size() == 7);

  const SharedBytes graph = Share(Blob({Graph(), Entry("_lib"), Tree()}));
  blob = ReadLibraryBlob(graph.view);
  REQUIRE(blob);
  CHECK(blob->graph_json == "{}");
  REQUIRE(blob->parameters.size() == 1);
  CHECK(blob->parameters[0].first == "p0");
  CHECK(blob->parameters[0].second.bytes[1] == std::byte{'b'});
}

TEST_CASE("a blob cut anywhere is refused") {
  for (const std::string& good : {Blob({Graph(), Entry("_lib"), Tree()}), Blob({Relay("content"), Tree()})}) {
    for (std::size_t size = 0; size < good.size(); ++size)
      CHECK_FALSE(ReadLibraryBlob(Share(good.substr(0, size)).view));
    // Cut, with the length in front made right.
    for (std::size_t size = 8; size < good.size(); ++size) {
      StreamWriter cut;
      cut.Count(size - 8);
      cut.Raw(good.substr(8, size - 8));
      CHECK_FALSE(ReadLibraryBlob(Share(cut.bytes()).view));
    }
  }
}

TEST_CASE("what cannot be run is refused by its kind") {
  CHECK_THAT(ReadLibraryBlob(Share(Blob({Entry("dnnl_json", "payload")})).view).error().message(),
             Contains("module of kind 'dnnl_json'"));
  CHECK_THAT(ReadLibraryBlob(Share(Blob({Graph(), Relay("content")})).view).error().message(),
             Contains("both"));
}

}  // namespace
}  // namespace rewire::tvm
