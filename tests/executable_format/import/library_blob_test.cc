// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>

#include "rewire/executable_format/import/tvm.h"
#include "rewire/tests/executable_format/import/foreign_files.h"

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

std::string GraphEntry(const std::string& json = "{}") {
  StreamWriter out;
  out.String(json);
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

  const SharedBytes graph = Share(Blob({GraphEntry(), Entry("_lib"), Tree()}));
  blob = ReadLibraryBlob(graph.view);
  REQUIRE(blob);
  CHECK(blob->graph_json == "{}");
  REQUIRE(blob->parameters.size() == 1);
  CHECK(blob->parameters[0].first == "p0");
  CHECK(blob->parameters[0].second.bytes[1] == std::byte{'b'});
}

TEST_CASE("a blob cut anywhere is refused") {
  std::set<std::string> errors;
  const auto refused = [&errors](const std::string& bytes) {
    const Result<LibraryBlob> blob = ReadLibraryBlob(Share(bytes).view);
    REQUIRE_FALSE(blob);
    errors.insert(blob.error().message());
  };
  for (const std::string& good :
       {Blob({GraphEntry(), Entry("_lib"), Tree()}), Blob({Relay("content"), Tree()})}) {
    for (std::size_t size = 0; size < good.size(); ++size) refused(good.substr(0, size));
    // Cut, with the length in front made right.
    for (std::size_t size = 8; size < good.size(); ++size) {
      StreamWriter cut;
      cut.Count(size - 8);
      cut.Raw(good.substr(8, size - 8));
      refused(cut.bytes());
    }
  }
  // Each says which part is cut.
  for (const char* part : {"the library's table of modules", "the library's import tree",
                           "the graph in the library", "the Relay VM executable in the library"}) {
    INFO(part);
    CHECK(errors.count("the file ends inside " + std::string(part)) == 1);
  }
  CHECK(errors.count("the library's data claims 100 bytes, there are 0") == 0);
  StreamWriter empty;
  empty.Count(100);
  refused(empty.bytes());
  CHECK(errors.count("the library's data claims 100 bytes, there are 0") == 1);
}

TEST_CASE("device code is passed over, and refused where it is cut") {
  StreamWriter code;
  code.String("cl");
  code.Count(0);
  code.String("code");
  const SharedBytes whole = Share(Blob({Entry("_lib"), Entry("opencl", code.bytes())}));
  CHECK(ReadLibraryBlob(whole.view));
  CHECK(ReadLibraryBlob(Share(Blob({Entry("_lib"), Entry("cuda", code.bytes().substr(0, 12))})).view)
            .error()
            .message() == "the module of kind 'cuda' ends outside the library's data");
}

TEST_CASE("what cannot be run is refused by its kind") {
  CHECK_THAT(ReadLibraryBlob(Share(Blob({Entry("dnnl_json", "payload")})).view).error().message(),
             Contains("module of kind 'dnnl_json'"));
  CHECK(ReadLibraryBlob(Share(Blob({Entry("AotExecutorFactory", "payload")})).view).error().message() ==
        "the library has a model of TVM's ahead-of-time executor inside (AotExecutorFactory), which is "
        "machine code and no program that could be read; export the model with the graph executor or "
        "for the Relay VM");
}

TEST_CASE("of several models inside the root is given, and none when none is the root") {
  const SharedBytes nested =
      Share(Blob({GraphEntry("{\"outer\": 1}"), GraphEntry("{\"inner\": 1}"), Entry("_lib"), Tree()}));
  Result<LibraryBlob> blob = ReadLibraryBlob(nested.view);
  REQUIRE(blob);
  CHECK(blob->graph_json == "{\"outer\": 1}");
  CHECK(blob->parameters.size() == 1);

  const SharedBytes mixed = Share(Blob({Relay("content"), GraphEntry()}));
  blob = ReadLibraryBlob(mixed.view);
  REQUIRE(blob);
  CHECK(blob->relay_executable.size() == 7);
  CHECK(blob->graph_json.empty());

  // One model may stand anywhere.
  CHECK(ReadLibraryBlob(Share(Blob({Entry("_lib"), Tree(), GraphEntry()})).view)->graph_json == "{}");
  CHECK(ReadLibraryBlob(Share(Blob({Tree(), Entry("_lib"), GraphEntry(), GraphEntry()})).view)
            .error()
            .message() ==
        "the library has 2 models inside, and none of them is its root module; export each into a library of "
        "its own");
}

}  // namespace
}  // namespace rewire::tvm
