// SPDX-License-Identifier: Apache-2.0
// vm-run --report: what the page is told, on programs whose graph, work and memory are known. How a browser
// shows it is tested by tests/report.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rewire/kernels/contract/libraries.h"
#include "rewire/tests/support/paths.h"
#include "rewire/tests/support/run_program.h"
#include "rewire/tools/measure/operation_count.h"
#include "rewire/tools/report/advice.h"
#include "rewire/tools/report/graph_layout.h"
#include "rewire/vm/kernel_set.h"

namespace rewire::tools {
namespace {

using nlohmann::json;
using test::Finished;

// x is doubled; then y = x * w, added to itself in place. 2 x 3 x 4 products.
constexpr const char kModel[] = R"(
.const w: f32[3, 4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
.kernel add = "rewire.add"
.kernel matmul = "rewire.matmul"
.func main(x: f32[2, 3]) -> (y: f32[2, 4], same: f32[2, 3])
  %s = alloc_storage _, alignment=64, f32[2, 3], cpu
  %double = alloc_tensor %s, _, f32[2, 3]
  invoke_packed add(%x, %x, %double), outputs=1  @ "Add 'double'"
  %w = load_const w
  %t = alloc_storage _, alignment=64, f32[2, 4], cpu
  %y = alloc_tensor %t, _, f32[2, 4]
  invoke_packed matmul(%double, %w, %y), outputs=1
  kill %double
  kill %s
  invoke_packed add(%y, %y, %y), outputs=1
  %result = alloc_adt tag=0 (%y, %x)
  ret %result
.end
)";

class ReportSession {
 public:
  ReportSession() { folder_.Write("model.asm", kModel); }
  Finished Run(const std::vector<std::string>& arguments) const {
    return test::RunProgram("vm-run", arguments, folder_.path());
  }
  std::string Page() const {
    std::ifstream in(folder_.path() / "run.html");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The data that the page shows.
  json Data() const {
    const std::string page = Page();
    const std::string mark = "<script type=\"application/json\" id=\"data\">";
    const std::size_t from = page.find(mark) + mark.size();
    return json::parse(page.substr(from, page.find("</script>", from) - from));
  }
  const test::TempFolder& folder() const { return folder_; }

 private:
  test::TempFolder folder_;
};

// The ends of the edges, by the titles of nodes.
std::vector<std::string> EdgesOf(const json& graph) {
  std::vector<std::string> edges;
  for (const json& edge : graph["edges"]) {
    const auto title = [&](const char* end) {
      return graph["nodes"][edge[end].get<std::size_t>()]["title"].get<std::string>();
    };
    edges.push_back(title("f") + " -> " + title("t"));
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

TEST_CASE("the page has the graph, the calls, the memory, the outputs and the work of a run") {
  const ReportSession session;
  const Finished run =
      session.Run({"model.asm", "--random", "--repeat", "3", "--threads", "1", "--report", "run.html"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const json data = session.Data();

  CHECK(data["runs"]["count"] == 3);
  REQUIRE(data["graph"].size() == 1);
  CHECK(EdgesOf(data["graph"][0]) == std::vector<std::string>{"Add -> matmul", "add -> alloc_adt",
                                                              "alloc_adt -> ret", "matmul -> add", "x -> Add",
                                                              "x -> alloc_adt"});

  REQUIRE(data["sites"].size() == 3);
  for (const json& site : data["sites"]) {
    CHECK(site["calls"] == 3);
    if (site["kernel"] != "rewire.matmul") continue;
    CHECK(site["operations"] == 2 * 2 * 3 * 4);
    CHECK(site["bytes"] == 4 * (2 * 3 + 3 * 4 + 2 * 4));
    CHECK(site["arguments"] == "f32[2, 3], f32[3, 4], f32[2, 4]");
  }
  CHECK(data["timeline"]["calls"].size() == 3);
  CHECK(data["cpu"]["operations"] > 0);
  CHECK(data["cpu"]["bytes"] > 0);

  // Two storages and a tensor in each. The first is gone before the last kernel.
  const json& blocks = data["memory"]["blocks"];
  REQUIRE(blocks.size() == 4);
  std::vector<std::uint64_t> sizes;
  for (const json& block : blocks) sizes.push_back(block[1]);
  CHECK(sizes == std::vector<std::uint64_t>{32, 24, 32, 24});
  CHECK(blocks[3][3] == 8);  // the kill of the tensor is instruction 7, that of its storage the next
  CHECK(blocks[1][3] == 9);
  CHECK(blocks[0][3] == 12);
  CHECK(data["memory"]["steps"] == 12);
  CHECK(data["memory"]["peak"] <= data["memory"]["bound"]);

  REQUIRE(data["outputs"].size() == 2);
  CHECK(data["outputs"][0]["rewired"] == true);
  CHECK(data["outputs"][1]["rewired"] == false);
  const std::string advice = data["advice"].dump();
  INFO(advice);
  CHECK(advice.find("Output 'same' is copied into the caller's memory") != std::string::npos);
}

TEST_CASE("a page loads nothing, and a name in it is no markup") {
  const ReportSession session;
  std::string model = kModel;
  model.replace(model.find("'double'"), 8, "</script><b>");
  session.folder().Write("<b>.asm", model);
  const Finished run = session.Run({"<b>.asm", "--random", "--report", "run.html", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(json::parse(run.out)["written"] == json::array({"run.html"}));
  CHECK(session.Data()["file"] == "<b>.asm");
  CHECK(session.Data().dump().find("Add </script><b>") != std::string::npos);
  const std::string page = session.Page();
  CHECK(page.find("<title>&lt;b>.asm") != std::string::npos);
  CHECK(page.find("<b>") == std::string::npos);
  for (const char* loads : {"src=", "href=", "@import", "url(", "fetch(", "https://"})
    CHECK(page.find(loads) == std::string::npos);
}

TEST_CASE("no page is written for a run that fails, and none where it cannot be") {
  const ReportSession session;
  CHECK(session.Run({"model.asm", "--random", "--max-steps", "3", "--report", "run.html"}).exit_code != 0);
  CHECK(session.Page().empty());
  const Finished nowhere = session.Run({"model.asm", "--random", "--report", "none/run.html"});
  CHECK(nowhere.exit_code != 0);
  CHECK(nowhere.err.find("none/run.html") != std::string::npos);
  CHECK(session.Run({"model.asm", "--random", "--report", "run.html", "--against", "m.onnx"}).exit_code ==
        11);
}

TEST_CASE("the boxes of a plain layout do not overlap, and lines lead downwards") {
  GraphPicture picture;
  for (int i = 0; i < 6; ++i) picture.boxes.push_back({80, 30, {}});
  for (const auto& [from, to] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 3}, {4, 5}, {5, 4}})
    picture.lines.push_back({static_cast<std::size_t>(from), static_cast<std::size_t>(to), {}});
  PlaceGraph(&picture, std::chrono::milliseconds(0));
  CHECK(!picture.note.empty());
  for (std::size_t a = 0; a < picture.boxes.size(); ++a) {
    const GraphPoint at = picture.boxes[a].center;
    CHECK(at.x >= 40);
    CHECK(at.x <= picture.width - 40);
    CHECK(at.y <= picture.height);
    for (std::size_t b = 0; b < a; ++b) {
      const GraphPoint other = picture.boxes[b].center;
      CHECK((std::abs(at.x - other.x) >= 80 || std::abs(at.y - other.y) >= 30));
    }
  }
  for (const GraphLine& line : picture.lines) {
    if (line.from < line.to) CHECK(picture.boxes[line.from].center.y < picture.boxes[line.to].center.y);
  }
}

SiteFacts SiteOf(const Profiler::Site& site, double share, const std::string& after) {
  SiteFacts facts;
  facts.site = &site;
  facts.share = share;
  facts.after = after;
  return facts;
}

TEST_CASE("advice names what takes time and what stands beside it") {
  Profiler::Site transpose{0, 0, "t", "rewire.transpose", "Transpose 'back'", {}, {}};
  Profiler::Site shape{0, 4, "s", "rewire.shape.transpose", "", {}, {}};
  Profiler::Site product{0, 8, "m", "rewire.matmul", "MatMul 'fc'", {}, {}};
  RunFacts facts;
  facts.run_times = {100, 100};
  facts.times.total = 200;
  facts.sites = {SiteOf(product, 0.3, ""), SiteOf(transpose, 0.24, "Resize"), SiteOf(shape, 0.2, "Conv")};
  facts.sites[0].work = {1000, 10};
  facts.sites[0].attainable = 10;
  facts.sites[0].times.median = 100;
  facts.outside = 0.05;
  const Profiler profiler(true);
  std::vector<Advice> advice = AdviceOn(facts, profiler);
  REQUIRE(advice.size() == 2);
  CHECK(advice[0].text.find("MatMul 'fc' takes 30 % of the time, 10.0 times what this CPU needs") == 0);
  CHECK(advice[0].action.find("not packed") != std::string::npos);
  CHECK(advice[1].text == "Transposes around Resize take 24 % of the time: Transpose 'back'.");
  CHECK(advice[1].action.find("Export the model") == 0);

  facts.outside = 0.4;
  facts.bound.unbounded = "main@3 is a loop";
  advice = AdviceOn(facts, profiler);
  REQUIRE(advice.size() == 4);
  CHECK(advice[0].text.find("40 % of the time is spent outside of kernels") == 0);
  CHECK(advice[3].text == "The memory of a run has no bound, because main@3 is a loop.");
  CHECK(AdviceOn(RunFacts(), profiler).empty());
}

TEST_CASE("one slow product is said once, and a kernel of one place is not in several") {
  Profiler::Site product{0, 8, "m", "rewire.matmul", "", {}, {}};
  Profiler::Site pool{0, 4, "p", "rewire.max_pool", "MaxPool 'pool'", {}, {}};
  RunFacts facts;
  facts.run_times = {100, 100};
  facts.times.total = 200;
  facts.sites = {SiteOf(product, 0.5, ""), SiteOf(pool, 0.45, "")};
  facts.sites[0].work = {1000, 10};
  facts.sites[0].attainable = 10;
  facts.sites[0].times.median = 100;
  const std::vector<Advice> advice = AdviceOn(facts, Profiler(true));
  REQUIRE(advice.size() == 2);
  CHECK(advice[0].text.find("'m' takes 50 % of the time, 10.0 times what") == 0);
  CHECK(advice[1].text == "The kernel rewire.max_pool takes 45 % of the time, in one place: MaxPool 'pool'.");
}

TEST_CASE("no call is faster than what the CPU can do") {
  RunFacts facts;
  facts.cpu.operations = 2e9;
  facts.cpu.bytes = 5e9;
  // The sites run at the pace of the CPU, at 10 times and at a quarter of it. The last is too short to be
  // measured.
  facts.sites.resize(4);
  const double operations[] = {20000, 200000, 5000, 200000}, median[] = {10000, 10000, 10000, 500};
  for (std::size_t i = 0; i < 4; ++i) {
    facts.sites[i].work = {operations[i], 100};
    facts.sites[i].times.median = median[i];
  }
  AddAttainable(&facts);
  CHECK(facts.cpu.operations == 2e10);
  CHECK(facts.cpu.bytes == 5e9);
  CHECK(facts.sites[0].attainable == Approx(1000));
  CHECK(facts.sites[1].attainable == Approx(10000));
  CHECK(facts.sites[2].attainable == Approx(250));
  CHECK(facts.sites[3].attainable == 0);
}

// A kernel's name, its attributes, the shapes of its arguments, and the operations that these are.
struct Counted {
  const char* kernel;
  Array<Attribute> attributes;
  std::vector<std::vector<std::int64_t>> shapes;
  double operations;
};

// With what its library declares; empty if there is no such kernel.
PackedFunction KernelOf(const std::string& name) {
  const std::size_t library = names::StockLibraryOf(name);
  KernelSet set;
  if (library == names::kNoLibrary || !set.AddLibrary(names::kStockLibraries[library].file)) return {};
  return set.sources().back()->Find(name).function;
}

TEST_CASE("operations are those of the plain convolution or product") {
  const auto list = [](std::vector<std::int64_t> values) {
    Array<std::int64_t> numbers;
    for (const std::int64_t value : values) numbers.push_back(value);
    return AttributeValue(std::move(numbers));
  };
  std::vector<Counted> cases;
  cases.push_back({"rewire.matmul", {}, {{5, 2, 3}, {3, 4}, {5, 2, 4}}, 2.0 * 5 * 2 * 3 * 4});
  cases.push_back({"rewire.gemm", {}, {{2, 3}, {3, 4}, {4}, {2, 4}}, 2.0 * 2 * 3 * 4});
  cases.push_back({"rewire.gemm", {{"transA", std::int64_t{1}}}, {{3, 2}, {3, 4}, {2, 4}}, 2.0 * 2 * 3 * 4});
  cases.push_back({"rewire.dense", {}, {{2, 3}, {4, 3}, {4}, {2, 4}}, 2.0 * 2 * 3 * 4});
  // 1 x 8 x 5 x 5 from 4 channels in two groups, by windows of 3 x 3.
  cases.push_back({"rewire.conv", {}, {{1, 4, 5, 5}, {8, 2, 3, 3}, {1, 8, 5, 5}}, 2.0 * 8 * 25 * 2 * 9});
  cases.push_back({"rewire.packed.conv",
                   {{"kernel_shape", list({3, 3})}},
                   {{1, 5, 5, 4}, {16, 36}, {1, 5, 5, 8}},
                   2.0 * 8 * 25 * 4 * 9});
  cases.push_back({"rewire.packed.depthwise",
                   {{"kernel_shape", list({3, 3})}},
                   {{1, 5, 5, 8}, {9, 16}, {1, 5, 5, 8}},
                   2.0 * 8 * 25 * 9});
  cases.push_back({"rewire.packed.depthwise_integer",
                   {{"kernel_shape", list({3, 3})}},
                   {{1, 5, 5, 8}, {16, 12}, {8}, {1, 5, 5, 8}},
                   2.0 * 8 * 25 * 9});
  cases.push_back({"rewire.onednn.conv",
                   {{"weights", list({8, 4, 3, 3})}},
                   {{1, 4, 5, 5}, {999}, {8}, {1, 8, 5, 5}},
                   2.0 * 8 * 25 * 4 * 9});
  cases.push_back(
      {"rewire.conv_transpose", {}, {{1, 4, 5, 5}, {4, 8, 2, 2}, {1, 8, 10, 10}}, 2.0 * 4 * 25 * 8 * 4});
  cases.push_back({"rewire.packed.conv_transpose",
                   {{"kernel_shape", list({2, 2})}},
                   {{1, 5, 5, 4}, {32, 4}, {1, 10, 10, 8}},
                   2.0 * 4 * 25 * 8 * 4});
  // In its plain form, though the kernel does fewer products.
  cases.push_back({"rewire.packed.winograd",
                   {{"kernel_shape", list({3, 3})}},
                   {{1, 8, 8, 4}, {36, 16, 4}, {1, 8, 8, 8}},
                   2.0 * 8 * 64 * 4 * 9});
  // 9 taps of 4 channels, then a product by 4 x 8.
  cases.push_back({"rewire.packed.separable",
                   {},
                   {{1, 5, 5, 4}, {9, 4}, {16, 4}, {1, 5, 5, 8}},
                   2.0 * 25 * (9 * 4 + 4 * 8)});
  cases.push_back({"rewire.device.matmul", {}, {{2, 3}, {3, 4}, {2, 4}}, 2.0 * 2 * 3 * 4});
  cases.push_back(
      {"rewire.device.conv", {}, {{1, 4, 5, 5}, {8, 2, 3, 3}, {1, 8, 5, 5}}, 2.0 * 8 * 25 * 2 * 9});
  cases.push_back(
      {"rewire.lstm", {}, {{7, 2, 3}, {1, 16, 3}, {1, 16, 4}, {7, 1, 2, 4}, {1, 2, 4}, {1, 2, 4}}, 0});
  cases.push_back({"mine.matmul", {}, {{2, 3}, {3, 4}, {2, 4}}, 0});
  cases.push_back({"matmul", {}, {{2, 3}, {3, 4}, {2, 4}}, 0});
  cases.push_back({"rewire.add", {}, {{2, 3}, {2, 3}, {2, 3}}, 0});
  cases.push_back({"rewire.shape.matmul", {}, {{2}, {2}, {2}}, 0});
  for (Counted& each : cases) {
    KernelImport import;
    import.name = each.kernel;
    import.attributes = each.attributes;
    std::vector<DLTensor> tensors;
    double bytes = 0;
    for (std::vector<std::int64_t>& shape : each.shapes) {
      double size = 4;
      for (const std::int64_t dim : shape) size *= static_cast<double>(dim);
      bytes += size;
      tensors.push_back({reinterpret_cast<void*>(tensors.size() + 1),
                         {kDLCPU, 0},
                         static_cast<int>(shape.size()),
                         {kDLFloat, 32, 1},
                         shape.data(),
                         nullptr,
                         0});
    }
    std::vector<RewireFFIAny> args;
    for (DLTensor& tensor : tensors) {
      RewireFFIAny any{};
      any.type_index = kRewireFFIDLTensorPtr;
      any.v_ptr = &tensor;
      args.push_back(any);
    }
    INFO(each.kernel);
    const OperationCount count = CountOperations(KernelOf(each.kernel), import, {args.data(), args.size()});
    CHECK(count.operations == each.operations);
    CHECK(count.bytes == bytes);
  }
}

}  // namespace
}  // namespace rewire::tools
