// SPDX-License-Identifier: Apache-2.0
#include "rewire/vm/loader/classic_blob.h"

#include <catch2/catch.hpp>

#include "rewire/tests/vm/loader/bytes_builder.h"
#include "rewire/tests/vm/loader/run_kernel.h"

namespace rewire {
namespace {

using test::BytesBuilder;
using test::MessageOf;

std::string BlobErrorOf(const BytesBuilder& blob) { return MessageOf(ReadClassicBlob(blob.Sized())); }

// A graph with one parameter, f32[2].
BytesBuilder& Graph(BytesBuilder& blob, const std::string& kind) {
  blob.Text(kind).Text("{}").U64(1).U64(1).Text("w");
  blob.U64(0xDD5E40F096B4A13F).U64(0).U32(1).U32(0).U32(1).U32(0x00012002).U64(2).U64(8).U64(0);
  return blob.Text("default");
}

// A module with a kernel of two addresses and an integer.
BytesBuilder& DeviceCodeEntry(BytesBuilder& blob, const std::string& kind) {
  blob.Text(kind).Text("cl").U64(1).Text("scale").Text("").U64(3);
  blob.U32(0x00014003).U32(0x00014003).U32(0x00012000);
  return blob.U64(2).Text("blockIdx.x").Text("threadIdx.x").Text("code");
}

TEST_CASE("libraries with an executable or a graph inside are kernel libraries, too") {
  BytesBuilder plain, executable, graph, old_graph;
  CHECK(BlobErrorOf(plain.U64(1).Text("_lib")) == "no error");
  executable.U64(3).Text("VMExecutable").Text("bytes of it").Text("_lib");
  CHECK(BlobErrorOf(executable.Text("_import_tree").U64(2).U64(0).U64(1).U64(1).U64(1)) == "no error");
  CHECK(BlobErrorOf(Graph(graph.U64(2), "GraphExecutorFactory").Text("_lib")) == "no error");
  CHECK(BlobErrorOf(Graph(old_graph.U64(2), "GraphRuntimeFactory").Text("_lib")) == "no error");
}

TEST_CASE("modules that there is no loader for are refused by name, wherever they stand") {
  const std::string why =
      "', for which there is no loader; build it for the CPU, OpenCL or CUDA, without external code "
      "generators";
  BytesBuilder first, second;
  CHECK(BlobErrorOf(first.U64(2).Text("dnnl_json").Text("x").Text("_lib")) ==
        "it carries modules of the kind 'dnnl_json" + why);
  CHECK(BlobErrorOf(Graph(second.U64(2), "GraphExecutorFactory").Text("metal")) ==
        "it carries modules of the kind 'metal" + why);
}

TEST_CASE("device code is read, of every module in order") {
  BytesBuilder blob;
  blob.U64(3).Text("_lib");
  DeviceCodeEntry(DeviceCodeEntry(blob, "opencl"), "cuda");
  const Result<Array<tvm::DeviceModule>> modules = ReadClassicBlob(blob.Sized());
  REQUIRE(modules);
  REQUIRE(modules->size() == 2);
  const tvm::DeviceModule& module = (*modules)[1];
  CHECK(module.kind == "cuda");
  CHECK(module.format == "cl");
  REQUIRE(module.kernels.size() == 1);
  CHECK(module.kernels[0].name == "scale");
  REQUIRE(module.kernels[0].arguments.size() == 3);
  CHECK(module.kernels[0].arguments[1].code == kDLOpaqueHandle);
  CHECK((module.kernels[0].arguments[2] == kInt32));
  CHECK(module.kernels[0].launch_tags == Array<std::string>{"blockIdx.x", "threadIdx.x"});
  CHECK(module.code.size() == 4);
}

TEST_CASE("a model of the ahead-of-time executor is called by its name") {
  BytesBuilder blob;
  CHECK(BlobErrorOf(blob.U64(1).Text("AotExecutorFactory").Text("x")) ==
        "it is a model for TVM's ahead-of-time executor (AotExecutorFactory); export it with the graph "
        "executor "
        "or for the Relay VM");
}

TEST_CASE("a blob cut at any byte is refused") {
  BytesBuilder blob;
  Graph(blob.U64(4), "GraphExecutorFactory").Text("_lib");
  DeviceCodeEntry(blob, "opencl").Text("VMExecutable").Text("bytes");
  const std::vector<std::byte> whole = blob.Sized();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(ReadClassicBlob({whole.data(), size}));
    // With a size that agrees.
    if (size < 8) continue;
    std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    for (int i = 0; i < 8; ++i)
      cut[static_cast<std::size_t>(i)] = static_cast<std::byte>((size - 8) >> (8 * i));
    CHECK(MessageOf(ReadClassicBlob(cut)).find("damaged __tvm_dev_mblob: ") == 0);
  }
  const Result<Array<tvm::DeviceModule>> modules = ReadClassicBlob(whole);
  REQUIRE(modules);
  CHECK(modules->size() == 1);
}

TEST_CASE("counts and sizes that cannot be are refused without being believed") {
  const std::string damaged = "damaged __tvm_dev_mblob: an entry ends outside it";
  BytesBuilder names, rank, data, entries;
  CHECK(BlobErrorOf(names.U64(1).Text("GraphExecutorFactory").Text("{}").U64(1).U64(~std::uint64_t{0})) ==
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
  CHECK(BlobErrorOf(rank.U32(0).U64(0).U64(0)) == damaged);
  data.U64(1).Text("GraphExecutorFactory").Text("{}").U64(~std::uint64_t{0}).U64(0);
  CHECK(BlobErrorOf(data) == damaged);
  CHECK(BlobErrorOf(entries.U64(~std::uint64_t{0}).Text("_lib")) == damaged);
}

}  // namespace
}  // namespace rewire
