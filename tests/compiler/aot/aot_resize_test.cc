// SPDX-License-Identifier: Apache-2.0
// Resizing in C source by scales that are constants, beside the VM with the stock kernel.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/compiler/aot/c_library.h"
#include "rewire/tests/compiler/aot/kernel_cases.h"
#include "rewire/tests/support/paths.h"

namespace rewire::test {
namespace {

std::string ResizeProgram(const std::string& dtype, const Dims& x, const std::vector<float>& scales,
                          const std::string& attributes) {
  Dims out;
  std::string numbers;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.push_back(static_cast<std::int64_t>(std::floor(static_cast<float>(x[i]) * scales[i])));
    numbers += (i == 0 ? "" : ", ") + std::to_string(scales[i]);
  }
  const std::string type = dtype + ShapeOf(out);
  return ".const roi: f32[0] = {}\n.const scales: f32[" + std::to_string(x.size()) + "] = {" + numbers +
         "}\n.kernel k = \"rewire.resize\" {" + attributes + "}\n.func main(x: " + dtype + ShapeOf(x) +
         ") -> y: " + type + "\n  %roi = load_const roi\n  %scales = load_const scales\n" +
         "  %s = alloc_storage _, alignment=64, " + type + ", cpu\n  %y = alloc_tensor %s, _, " + type +
         "\n  invoke_packed k(%x, %roi, %scales, %y), outputs=1\n  ret %y\n.end\n";
}

// Filters of two and four taps, copies, scales that are no ratio of the sizes, one and two passes.
std::vector<std::string> AllAttributes() {
  std::vector<std::string> all;
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string coordinates :
         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}) {
      const std::string both =
          "mode=\"" + mode + "\", coordinate_transformation_mode=\"" + coordinates + "\"";
      all.push_back(both);
      if (mode == "nearest") continue;
      all.push_back(both + ", antialias=1");
      all.push_back(both + ", exclude_outside=1, cubic_coeff_a=-0.5");
    }
  }
  return all;
}

TEST_CASE("resizing by constant scales in C gives the bits that the stock kernel gives") {
  struct Drawn {
    std::string text;
    Executable executable;
    Tensor x;
  };
  const std::vector<std::vector<float>> scales = {{1, 1, 2, 2},      {1, 1, 0.5F, 1.5F}, {1, 2.25F, 1, 0.3F},
                                                  {1, 1, 1, 1.125F}, {1, 2, 0.5F, 1.5F}, {1, 1, 1, 1}};
  std::vector<Drawn> all;
  CLibrary library;
  Random random(36);
  for (const std::string& attributes : AllAttributes()) {
    for (const std::vector<float>& scale : scales) {
      const Dims dims = {1, 3, 4, 7};
      const int kind = random.Int(0, 2);
      Tensor x = kind == 0   ? random.Integers<std::int8_t>(dims, -128, 127)
                 : kind == 1 ? random.Integers<std::uint8_t>(dims, 0, 255)
                             : random.Floats(dims, -99, 99, 0.37F);
      // An element that a filter does not look at does not count, whatever it is.
      if (kind == 2 && random.Bool()) x.data<float>()[random.Int(0, 83)] = random.Bool() ? NAN : INFINITY;
      const std::string text = ResizeProgram(kind == 0   ? "i8"
                                             : kind == 1 ? "u8"
                                                         : "f32",
                                             dims, scale, attributes);
      Executable executable = Assembled(text);
      EmitCOptions options;
      options.prefix = "z" + std::to_string(all.size());
      const Result<CSource> source = EmitC(executable, options, options.prefix + ".h");
      INFO(text);
      if (!source) FAIL(source.error().message());
      CHECK(source->constant_bytes == 0);  // scales are no data of the source
      library.Add(options.prefix, *source);
      all.push_back({text, std::move(executable), x});
    }
  }
  const std::string folder = std::string(SourceDir()) + "/kernels/embedded";
  library.Compile("-ffp-contract=off -DREWIRE_EMBEDDED_FUSED_MULTIPLY_ADD", "'" + folder + "'/vision/*.c");
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].text);
    const Tensor expected = RunInVm(all[i].executable, {all[i].x});
    const CResult given = CallC(*library.Find<RewireAotFunctionInfo>("z" + std::to_string(i) + "_functions"),
                                nullptr, {all[i].x.view().data()});
    REQUIRE(given.code == 0);
    REQUIRE(given.is_within);
    const std::vector<std::byte>& result = given.outputs.at(0);
    const auto* const bytes = static_cast<const std::byte*>(expected.view().data());
    if (std::equal(result.begin(), result.end(), bytes, bytes + expected.view().bytes())) continue;
    // Two NaNs may have other bits.
    REQUIRE((expected.view().dtype() == kFloat32));
    for (std::size_t e = 0; e < result.size() / sizeof(float); ++e) {
      float value;
      std::memcpy(&value, result.data() + e * sizeof(float), sizeof(float));
      const float wanted = expected.data<float>()[e];
      REQUIRE(
          (std::memcmp(&value, &wanted, sizeof(float)) == 0 || (std::isnan(value) && std::isnan(wanted))));
    }
  }
}

TEST_CASE("forms of resizing that have no plain C are refused by name") {
  const auto refusal = [](const std::string& text) {
    const Result<CSource> source = EmitC(Assembled(text), EmitCOptions(), "model.h");
    REQUIRE_FALSE(source);
    CHECK(source.error().code() == StatusCode::kUnsupported);
    return source.error().message();
  };
  const Dims x = {2, 3};
  CHECK_THAT(
      refusal(ResizeProgram("f32", x, {2, 2}, R"(coordinate_transformation_mode="tf_crop_and_resize")")),
      Catch::Contains("rewire.resize has no plain C form here: it resizes a region (tf_crop_and_resize)"));
  std::string tiny = ResizeProgram("f32", x, {2, 2}, R"(mode="linear", antialias=1)");
  tiny.replace(tiny.find("{2.000000"), 9, "{1e-30");
  CHECK_THAT(refusal(tiny), Catch::Contains("its scales do not fit x"));
  CHECK_THAT(refusal(ResizeProgram("f64", x, {2, 2}, R"(mode="linear")")),
             Catch::Contains("it mixes elements of f64"));
  CHECK_THAT(
      refusal(".kernel k = \"rewire.resize\"\n.func main(x: f32[2], roi: f32[0], scales: f32[1]) -> y: "
              "f32[4]\n  %s = alloc_storage _, alignment=64, f32[4], cpu\n  %y = alloc_tensor %s, _, "
              "f32[4]\n  invoke_packed k(%x, %roi, %scales, %y), outputs=1\n  ret %y\n.end\n"),
      Catch::Contains("its scales are known only when the program runs"));
}

}  // namespace
}  // namespace rewire::test
