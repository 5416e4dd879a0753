// SPDX-License-Identifier: Apache-2.0
// vm-inspect on whole and damaged executables and on kernel libraries.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"

namespace rewire::tools {
namespace {

using nlohmann::json;
using test::Finished;

constexpr const char kInspectedProgram[] = R"(
.metadata producer "hand"
.const weight: f32[1000] = fill 2.5
.kernel relu = "rewire.relu"
.func main(x: f32[N]) -> y: f32[1000]
  %y = load_const weight
  ret %y
.end
)";

class InspectSession {
 public:
  InspectSession() {
    folder_.Write("model.asm", kInspectedProgram);
    const Finished assembled = test::RunProgram("vm-as", {"model.asm"}, folder_.path());
    INFO(assembled.err);
    REQUIRE(assembled.exit_code == 0);
  }
  Finished Run(const std::vector<std::string>& arguments) const {
    return test::RunProgram("vm-inspect", arguments, folder_.path());
  }
  const test::TempFolder& folder() const { return folder_; }

  // model.rwx with one byte of a section changed.
  std::string Damage(const std::string& section) const {
    std::string bytes = test::ReadWholeFile(folder_.path() / "model.rwx");
    const json report = json::parse(Run({"model.rwx", "--json"}).out);
    for (const json& entry : report["sections"]) {
      if (entry["name"] == section) bytes[entry["offset"].get<std::size_t>() + 8] ^= 1;
    }
    folder_.Write("damaged.rwx", bytes);
    return "damaged.rwx";
  }

 private:
  test::TempFolder folder_;
};

TEST_CASE("the interface is shown, and what is inside on request") {
  const InspectSession session;
  session.folder().Write("inside.asm",
                         ".const w: f32[2] = {1, 2}\n"
                         ".computed twice: f32[2]\n"
                         ".kernel add = \"rewire.add\"\n"
                         ".func __init() -> (f32[2])\n"
                         "  %w = load_const w\n"
                         "  %s = alloc_storage _, alignment=64, f32[2], cpu\n"
                         "  %t = alloc_tensor %s, _, f32[2]\n"
                         "  invoke_packed add(%w, %w, %t), outputs=1\n"
                         "  %r = alloc_adt tag=0 (%t)\n"
                         "  ret %r\n.end\n"
                         ".func main(x: f32[N]) -> y: f32[2]\n  %y = load_const twice\n  ret %y\n.end\n");
  const Finished assembled = test::RunProgram("vm-as", {"inside.asm"}, session.folder().path());
  INFO(assembled.err);
  REQUIRE(assembled.exit_code == 0);
  for (const char* file : {"inside.rwx", "inside.asm"}) {
    INFO(file);
    const std::string interface = session.Run({file}).out;
    CHECK(test::Has(interface, "\nfunctions: 1\n  main\n    inputs   x  f32[N]\n    outputs  y  f32[2]\n"));
    CHECK(test::Has(interface, "\ninside: 1 kernel, 1 constant of 8 B; vm-inspect --all lists them\n"));
    for (const char* internal : {"__init", "rewire.add", "registers", "sections:", "what takes room:"})
      CHECK_FALSE(test::Has(interface, internal));
    const std::string all = session.Run({file, "--all"}).out;
    CHECK(test::Has(all, "\nfunctions: 2\n  __init ("));
    CHECK(test::Has(all, "\nkernels: 1\n  add  rewire.add\n"));
    CHECK(test::Has(all, "\ncomputed by __init: 1\n"));
    CHECK_FALSE(test::Has(all, "inside: "));
  }
}

TEST_CASE("sections, signatures and what takes room") {
  const InspectSession session;
  const Finished text = session.Run({"model.rwx", "--all"});
  CHECK(text.exit_code == 0);
  CHECK(text.err.empty());
  CHECK(test::Has(text.out, "model.rwx: Rewire executable, format 1.0, "));
  CHECK(test::Has(text.out, "  producer: hand\n"));
  CHECK(test::Has(text.out, "    inputs   x  f32[N]\n"));
  CHECK(test::Has(text.out, "\nwhat takes room:\n  constant weight "));

  const json report = json::parse(session.Run({"model.rwx", "--json"}).out);
  CHECK(report["whole"] == true);
  CHECK(report["metadata"]["producer"] == "hand");
  std::uint64_t total = 0;
  for (const json& item : report["sizes"]) total += item["bytes"].get<std::uint64_t>();
  CHECK(total == report["bytes"]);
  CHECK(total == test::ReadWholeFile(session.folder().path() / "model.rwx").size());
  CHECK(report["sizes"][0]["what"] == "constant weight");
  CHECK(report["sizes"][0]["bytes"] == 4000);
}

TEST_CASE("a compressed file is listed with the sections inside, and its sizes add up") {
  const InspectSession session;
  const std::filesystem::path folder = session.folder().path();
  std::string program = ".compressed\n.kernel rewire.relu\n";
  for (int i = 0; i < 20; ++i) {
    program += ".func f" + std::to_string(i) + "(x: f32[4]) -> y: f32[4]\n  ret %x\n.end\n";
  }
  session.folder().Write("small.asm", program);
  REQUIRE(test::RunProgram("vm-as", {"small.asm"}, folder).exit_code == 0);
  const Finished text = session.Run({"small.rwx", "--check", "--all"});
  CHECK(text.exit_code == 0);
  CHECK(test::Has(text.out, "\nin section compressed:\n"));
  const json report = json::parse(session.Run({"small.rwx", "--json"}).out);
  CHECK(report["sections"].size() == 1);
  CHECK(report["sections"][0]["name"] == "compressed");
  std::uint64_t inside = 0, total = 0;
  for (const json& section : report["compressed"]) inside += section["bytes"].get<std::uint64_t>();
  for (const json& item : report["sizes"]) total += item["bytes"].get<std::uint64_t>();
  CHECK(total == report["bytes"]);
  CHECK(inside > 2 * total);
  // As a text again it says that it is compressed.
  const Finished again = test::RunProgram("vm-dis", {"small.rwx"}, folder);
  CHECK(again.out.rfind(".compressed\n", 0) == 0);
}

constexpr const char kDeviceProgram[] = R"(
.device gpu = opencl:0
.code source codec=zstd = @scale.cl
.device_code scaling opencl_c = source
.device_kernel my.scale(x: f32[n] on gpu) -> (y: f32[n] on gpu) = scaling scale groups(ceildiv(n, 64)) threads(64) args(x, y, f32 2.5, i32 n)
.kernel my.scale
.func main(x: f32[4] on gpu) -> y: f32[4] on gpu
  %s = alloc_storage _, alignment=64, f32[4], gpu
  %y = alloc_tensor %s, _, f32[4]
  invoke_packed my.scale(%x, %y), outputs=1
  ret %y
.end
)";

TEST_CASE("device code of a file is listed, and the tools do not run it unless they are told to") {
  const InspectSession session;
  std::string source =
      "__kernel void scale(__global const float* x, __global float* y, float factor, int n) {\n"
      "  int i = get_global_id(0);\n  if (i < n) y[i] = x[i] * factor;\n}\n";
  for (int i = 0; i < 10; ++i) source += "// compresses well\n";
  session.folder().Write("scale.cl", source);
  session.folder().Write("device.asm", kDeviceProgram);
  REQUIRE(test::RunProgram("vm-as", {"device.asm"}, session.folder().path()).exit_code == 0);
  const Finished text = session.Run({"device.rwx"});
  CHECK(test::Has(text.out, "\ndevice code (runs only with --trust-device-code): 1\n  scaling  opencl_c"));
  CHECK(test::Has(text.out, "my.scale(x: f32[n]@1) -> (y: f32[n]@1)  in scaling"));
  const json report = json::parse(session.Run({"device.rwx", "--json"}).out)["device_code"];
  CHECK(report["blobs"][0]["bytes"] == source.size());
  CHECK(report["kernels"][0]["symbol"] == "scale");
  // As a text again it has the source's lines.
  const Finished again = test::RunProgram("vm-dis", {"device.rwx"}, session.folder().path());
  CHECK(test::Has(again.out, "  \"// compresses well\\n\"\n"));

  const Finished refused = test::RunProgram("vm-run", {"device.rwx", "--random"}, session.folder().path());
  CHECK(refused.exit_code != 0);
  // A machine without OpenCL says that this is missing.
  CHECK((test::Has(refused.err, "set --trust-device-code")));
  const Finished run = test::RunProgram(
      "vm-run", {"device.rwx", "-i", "x=4xf32=1,2,3,4", "--trust-device-code"}, session.folder().path());
  INFO(run.err);
  CHECK((test::Has(run.out, "2.5") || test::Has(run.err, "the executable uses devices that are not there")));
  const Finished debug = test::RunProgram("vm-debug", {"device.rwx", "--random"}, session.folder().path());
  CHECK(test::Has(debug.err, "--trust-device-code"));
}

TEST_CASE("a check finds damaged sections and constants") {
  const InspectSession session;
  const Finished whole = session.Run({"model.rwx", "--check"});
  CHECK(whole.exit_code == 0);
  CHECK(test::Has(whole.out, "constants are whole, and the verifier accepts the program\n"));

  const Finished section = session.Run({session.Damage("functions")});
  CHECK(section.exit_code == 1);
  CHECK(test::Has(section.out, "section functions is damaged\n"));
  CHECK(test::Has(section.out, "  DAMAGED\n"));

  session.Damage("data");
  CHECK(session.Run({"damaged.rwx"}).exit_code == 0);  // a constant is checked when it is asked for
  const Finished constant = session.Run({"damaged.rwx", "--check"});
  CHECK(constant.exit_code == 1);
  CHECK(test::Has(constant.out, "  constant weight: "));
  CHECK(json::parse(session.Run({"damaged.rwx", "--check", "--json"}).out)["damaged_constants"].size() == 1);
}

TEST_CASE("cut off anywhere, a file gives a report or one error") {
  const InspectSession session;
  const std::string bytes = test::ReadWholeFile(session.folder().path() / "model.rwx");
  for (std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{20}, std::size_t{60}, bytes.size() / 2}) {
    INFO(size);
    session.folder().Write("cut.rwx", bytes.substr(0, size));
    const Finished finished = session.Run({"cut.rwx", "--check"});
    const bool reported = finished.exit_code == 1 && finished.err.empty();
    const bool refused = finished.exit_code == 14 && finished.out.empty();
    CHECK((reported || refused));
  }
}

TEST_CASE("kernel libraries and what they export") {
  const InspectSession session;
  const std::string library = std::string(test::BuildDir()) + "/lib/rewire/librewire_kernels_cpu.so";
  const Finished text = session.Run({library});
  INFO(text.err);
  CHECK(text.exit_code == 0);
  CHECK(test::Has(text.out, "\n  rewire.add"));
  const json report = json::parse(session.Run({library, "--json"}).out);
  CHECK(report["kind"] == "kernel library");
  CHECK(report["kernels"].size() > 10);
  std::map<std::string, json> works;
  for (const json& kernel : report["kernels"]) works[kernel["name"]] = kernel.value("work", json());
  CHECK(works["rewire.matmul"] == "products: out * a[-1]");
  CHECK(works["rewire.max_pool"] == "operations: 1 * kernel_shape");
  CHECK(works["rewire.einsum"].is_null());
}

TEST_CASE("what is neither is refused") {
  const InspectSession session;
  session.folder().Write("text", "neither");
  const Finished other = session.Run({"text"});
  CHECK(other.exit_code == 14);
  CHECK(test::Has(other.err, "vm-inspect: error: text: "));
  session.folder().Write("broken.so",
                         "\x7f"
                         "ELF and no more");
  const Finished broken = session.Run({"broken.so"});
  CHECK(broken.exit_code == 14);
  CHECK(session.Run({"missing.rwx"}).exit_code == 12);
}

// A loop of additions, in memory whose size a kernel computes, and a second function without branches.
constexpr const char kFunctions[] = R"(
.param weight: f32[2]
.kernel add = "rewire.add"
.kernel bytes = "rewire.shape.bytes" {element_bytes=4}
.func main(x: f32[2], n: i64[]) -> y: f32[2]
  %w = load_const weight
  %zero = load_consti 0
  %shape = shape_of %x
  %size = alloc_storage _, alignment=64, i64[], cpu
  %count = alloc_tensor %size, _, i64[]
  invoke_packed bytes(%shape, %count), outputs=1
again:
  %s = alloc_storage %count, alignment=64, f32, cpu
  %y = alloc_tensor %s, _, f32[2]
  invoke_packed add(%x, %w, %y), outputs=1  @ "Add 'loop'"
  %x = move %y
  if %n == %zero goto again else done
done:
  ret %y
.end
.func plain(x: f32[4, 4]) -> z: f32[4, 4]
  %s = alloc_storage _, alignment=64, f32[32], cpu
  %half = load_consti 64
  %y = alloc_tensor %s, _, f32[4, 4]
  invoke_packed add(%x, %x, %y), outputs=1
  %z = alloc_tensor %s, %half, f32[4, 4]
  invoke_packed add(%y, %y, %z), outputs=1
  kill %y
  ret %z
.end
)";

// Pairs of titles, by the lines "f0_1 [label="title\n..." and "f0_1 -> f0_2 [label=..., style=...".
std::multimap<std::string, std::string> DrawnEdges(const std::string& dot, const std::string& style) {
  std::map<std::string, std::string> titles;
  std::multimap<std::string, std::string> edges;
  std::istringstream lines(dot);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string from, arrow, to;
    words >> from >> arrow >> to;
    if (arrow == "->") {
      if (test::Has(line, "style=" + style)) edges.emplace(titles[from], titles[to]);
    } else if (const std::size_t label = line.find("[label=\""); label != std::string::npos) {
      titles[from] = line.substr(label + 8, line.find_first_of("\\\"", label + 8) - label - 8);
    }
  }
  return edges;
}

TEST_CASE("the graph of a function has its inputs, parameters, kernels, and the values of a loop") {
  const InspectSession session;
  session.folder().Write("functions.asm", kFunctions);
  const Finished drawn = session.Run({"functions.asm", "--dot"});
  INFO(drawn.out << drawn.err);
  REQUIRE(drawn.exit_code == 0);
  CHECK(drawn.out.rfind("digraph model {", 0) == 0);
  CHECK(test::Has(drawn.out, "[label=\"x\\nf32[2]\", shape=ellipse]"));
  CHECK(test::Has(drawn.out, "[label=\"weight\\nf32[2]\", shape=house]"));
  CHECK(test::Has(drawn.out, "Add 'loop'\", shape=box, style=filled"));
  using Edges = std::multimap<std::string, std::string>;
  // The output of a round is what the next one reads: the kernel feeds itself.
  CHECK(DrawnEdges(drawn.out, "solid") == Edges{{"x", "shape_of"},
                                                {"shape_of", "rewire.shape.bytes"},
                                                {"x", "rewire.add"},
                                                {"weight", "rewire.add"},
                                                {"rewire.add", "rewire.add"},
                                                {"rewire.add", "ret"},
                                                {"n", "if"},
                                                {"x", "rewire.add"},
                                                {"rewire.add", "rewire.add"},
                                                {"rewire.add", "ret"}});
  CHECK(DrawnEdges(drawn.out, "dotted") == Edges{{"rewire.shape.bytes", "rewire.add"}});
  CHECK(DrawnEdges(drawn.out, "dashed") == Edges{{"if", "rewire.add"}, {"if", "ret"}});
  CHECK(session.Run({"functions.asm", "--dot", "--json"}).exit_code != 0);
}

TEST_CASE("the picture of the memory has each storage and tensor at its place") {
  const InspectSession session;
  session.folder().Write("functions.asm", kFunctions);
  const Finished drawn = session.Run({"functions.asm", "--memory", "--svg"});
  INFO(drawn.out << drawn.err);
  REQUIRE(drawn.exit_code == 0);
  CHECK(drawn.out.rfind("<svg xmlns", 0) == 0);
  CHECK(test::Has(drawn.out, "no picture: main@"));
  CHECK(test::Has(drawn.out, "storage %1\n128 B at offset 0 B\ninstructions 3 to 8</title>"));
  CHECK(test::Has(drawn.out, "tensor %3 f32[4, 4]\n64 B at offset 0 B\ninstructions 3 to 7</title>"));
  CHECK(test::Has(drawn.out, "tensor %4 f32[4, 4]\n64 B at offset 64 B\ninstructions 5 to 8</title>"));
  CHECK(test::Has(drawn.out, "tensors in storages of 128 B; a run of a new VM holds at most"));
  CHECK(session.Run({"functions.asm", "--svg"}).exit_code != 0);
  CHECK(session.Run({"functions.asm", "--memory", "--svg", "--json"}).exit_code != 0);
}

TEST_CASE("the memory of runs is shown for each device") {
  const InspectSession session;
  session.folder().Write("devices.asm", R"(
.func main(x: f32[4]) -> y: f32[4]
  %a = alloc_storage _, alignment=64, f32[256], cuda:0
  %t = alloc_tensor %a, _, f32[256]
  %b = alloc_storage _, alignment=64, f32[1024], cuda:1
  %u = alloc_tensor %b, _, f32[1024]
  ret %x
.end
)");
  const Finished text = session.Run({"devices.asm", "--memory"});
  INFO(text.out << text.err);
  CHECK(test::Has(text.out, "blocks on cuda:0"));
  CHECK(test::Has(text.out, "blocks on cuda:1"));
  const Finished run = session.Run({"devices.asm", "--memory", "--json"});
  REQUIRE(run.exit_code == 0);
  const json bound = json::parse(run.out)["memory"][0]["outputs_unbound"];
  CHECK(bound["device"] == 5120);
  CHECK(bound["devices"] ==
        json::array({{{"device", "cuda:0"}, {"bytes", 1024}}, {{"device", "cuda:1"}, {"bytes", 4096}}}));
}

TEST_CASE("the memory of runs, of the digits model by the number of images, and why some have no bound") {
  const InspectSession session;
  const std::string digits = std::string(test::SourceDir()) + "/examples/digits/digits.asm";
  const json report =
      json::parse(session.Run({digits, "--memory", "--function", "main", "--max-dim", "N=64", "--json"}).out);
  const json& bound = report["memory"][0]["outputs_bound"];
  const json& unbound = report["memory"][0]["outputs_unbound"];
  INFO(report.dump(2));
  CHECK(unbound["undeclared_workspace"].empty());
  // The bytes that conv1 writes and pools for 64 images, at least.
  CHECK(unbound["storage"] >= 64 * 16 * (64 + 16) * 4);
  CHECK(unbound["bytes"] > unbound["storage"]);
  CHECK(unbound["static_bytes"] > unbound["bytes"]);
  CHECK(unbound["workspace"] > 0);
  CHECK(bound["bytes"] <= unbound["bytes"].get<std::uint64_t>() + 4096);

  const Finished open = session.Run({digits, "--memory", "--function", "main"});
  CHECK(open.exit_code == 0);
  CHECK(test::Has(open.out, "memory of main:\n  unbounded because new_tensor@"));
  CHECK(test::Has(open.out, "the size of the storage is not known before the run"));
  CHECK(test::Has(open.out, "\n  give the largest sizes: --max-dim N=SIZE\n"));
  CHECK_FALSE(
      test::Has(session.Run({digits, "--memory", "--max-dim", "N=64"}).out, "give the largest sizes"));
  const Finished text = session.Run({"model.rwx", "--memory"});
  CHECK(test::Has(text.out, "outputs unbound"));
  CHECK(test::Has(session.Run({"model.rwx", "--memory", "--max-dim", "N"}).err,
                  "--max-dim: 'N' is no size of a dimension: expected NAME=SIZE"));
  CHECK(test::Has(session.Run({"model.rwx", "--memory", "--max-dim", "Q=2"}).err,
                  "no signature has a dimension"));
  CHECK(session.Run({"model.rwx", "--function", "main"}).exit_code != 0);
}

}  // namespace
}  // namespace rewire::tools
