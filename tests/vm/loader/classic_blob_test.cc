// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/classic_blob.h"

#include <catch2/catch.hpp>

#include "rewire/tests/vm/loader/bytes_builder.h"
#include "rewire/tests/vm/loader/run_kernel.h"

namespace rewire {
namespace {

using test::BytesBuilder;
using test::MessageOf;

std::string ErrorOf(const BytesBuilder& blob) { return MessageOf(CheckClassicBlob(blob.Sized())); }

// A graph with one parameter, f32[2].
BytesBuilder& Graph(BytesBuilder& blob, const std::string& kind) {
  blob.Text(kind).Text("{}").U64(1).U64(1).Text("w");
  blob.U64(0xDD5E40F096B4A13F).U64(0).U32(1).U32(0).U32(1).U32(0x00012002).U64(2).U64(8).U64(0);
  return blob.Text("default");
}

TEST_CASE("libraries with an executable or a graph inside are kernel libraries, too") {
  BytesBuilder plain, executable, graph, old_graph;
  CHECK(ErrorOf(plain.U64(1).Text("_lib")) == "no error");
  executable.U64(3).Text("VMExecutable").Text("bytes of it").Text("_lib");
  CHECK(ErrorOf(executable.Text("_import_tree").U64(2).U64(0).U64(1).U64(1).U64(1)) == "no error");
  CHECK(ErrorOf(Graph(graph.U64(2), "GraphExecutorFactory").Text("_lib")) == "no error");
  CHECK(ErrorOf(Graph(old_graph.U64(2), "GraphRuntimeFactory").Text("_lib")) == "no error");
}

TEST_CASE("modules that there is no loader for are refused by name, wherever they stand") {
  const std::string why =
      "', for which there is no loader; export it for the CPU, without external code generators";
  BytesBuilder first, second;
  CHECK(ErrorOf(first.U64(2).Text("dnnl_json").Text("x").Text("_lib")) ==
        "it carries a module of the kind 'dnnl_json" + why);
  CHECK(ErrorOf(Graph(second.U64(2), "GraphExecutorFactory").Text("cuda")) ==
        "it carries a module of the kind 'cuda" + why);
}

TEST_CASE("a model of the ahead-of-time executor is called by its name") {
  BytesBuilder blob;
  CHECK(ErrorOf(blob.U64(1).Text("AotExecutorFactory").Text("x")) ==
        "it is a model for TVM's ahead-of-time executor (AotExecutorFactory), whose kernels are called by "
        "machine "
        "code of its own; export it with the graph executor or for the Relay VM");
}

TEST_CASE("a blob cut at any byte is refused") {
  BytesBuilder blob;
  Graph(blob.U64(3), "GraphExecutorFactory").Text("_lib").Text("VMExecutable").Text("bytes");
  const std::vector<std::byte> whole = blob.Sized();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(CheckClassicBlob({whole.data(), size}));
    // With a size that agrees.
    if (size < 8) continue;
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    for (int i = 0; i < 8; ++i)
      cut[static_cast<std::size_t>(i)] = static_cast<std::byte>((size - 8) >> (8 * i));
    CHECK(MessageOf(CheckClassicBlob(cut)) == "damaged __tvm_dev_mblob: an entry ends outside it");
  }
  CHECK(CheckClassicBlob(whole));
}

TEST_CASE("counts and sizes that cannot be are refused without being believed") {
  const std::string damaged = "damaged __tvm_dev_mblob: an entry ends outside it";
  BytesBuilder names, rank, data, entries;
  CHECK(ErrorOf(names.U64(1).Text("GraphExecutorFactory").Text("{}").U64(1).U64(~std::uint64_t{0})) ==
        damaged);
  rank.U64(1)
      .Text("GraphExecutorFactory")
      .Text("{}")
      .U64(1)
      .U64(0)
      .U64(0)
      .U64(0)
      .U32(1)
      .U32(0)
      .U32(0x80000000);
  CHECK(ErrorOf(rank.U32(0).U64(0).U64(0)) == damaged);
  data.U64(1).Text("GraphExecutorFactory").Text("{}").U64(~std::uint64_t{0}).U64(0);
  CHECK(ErrorOf(data) == damaged);
  CHECK(ErrorOf(entries.U64(~std::uint64_t{0}).Text("_lib")) == damaged);
}

}  // namespace
}  // namespace rewire
