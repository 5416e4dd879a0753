// SPDX-License-Identifier: Apache-2.0
//
// Stock kernels of the device that REWIRE_TEST_DEVICE names give what those of the CPU give.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

// A tensor of a call, as text assembly writes its type. Inputs get numbers between low and high.
struct Operand {
  std::string dtype;
  std::vector<std::int64_t> shape;
  double low = -4;
  double high = 4;

  std::string Type() const {
    std::string text = dtype + "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
  }
};

struct StockCall {
  std::string kernel;  // without "rewire."
  std::string attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
};

// main calls the kernel. On a device it copies the inputs there and the results back.
std::string TextOf(const StockCall& call, const std::string& device) {
  const bool copies = !device.empty();
  const std::string where = copies ? ", gpu" : ", cpu";
  const std::string name = std::string(copies ? "rewire.device." : "rewire.") + call.kernel;
  const std::string attributes = call.attributes.empty() ? "" : " {" + call.attributes + "}";
  std::string inputs, arguments, results, before, behind;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    inputs += (i == 0 ? "" : ", ") + x + ": " + call.inputs[i].Type();
    arguments += (copies ? "%d" : "%") + x + ", ";
    if (copies) before += "%d" + x + " = device_copy %" + x + ", cpu, gpu\n";
  }
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const std::string y = "%y" + std::to_string(i);
    const std::string type = call.outputs[i].Type();
    before += y + "s = alloc_storage _, alignment=256, " + type + where + "\n";
    before += y + " = alloc_tensor " + y + "s, _, " + type + "\n";
    if (copies) behind += y + "h = device_copy " + y + ", gpu, cpu\n";
    arguments += (i == 0 ? "" : ", ") + y;
    results += (i == 0 ? "" : ", ") + y + (copies ? "h" : "");
  }
  return (copies ? ".device gpu = " + device + ":0\n" : "") + ".kernel k = \"" + name + "\"" + attributes +
         "\n.func main(" + inputs + ") -> value\n" + before + "invoke_packed k(" + arguments +
         "), outputs=" + std::to_string(call.outputs.size()) + "\n" + behind + "%all = alloc_adt tag=0 (" +
         results + ")\nret %all\n.end\n";
}

template <typename T>
Value Filled(const Operand& operand) {
  const Tensor tensor = *Tensor::Make(DTypeOf<T>(), operand.shape);
  const std::int64_t size = tensor.view().size();
  for (std::int64_t i = 0; i < size; ++i) {
    const double part = static_cast<double>(i * 7919 % 1009) / 1009;
    tensor.data<T>()[i] = static_cast<T>(operand.low + part * (operand.high - operand.low));
  }
  return tensor;
}

Value InputOf(const Operand& operand) {
  if (operand.dtype == "f32") return Filled<float>(operand);
  if (operand.dtype == "u8") return Filled<std::uint8_t>(operand);
  if (operand.dtype == "i8") return Filled<std::int8_t>(operand);
  if (operand.dtype == "u16") return Filled<std::uint16_t>(operand);
  if (operand.dtype == "i16") return Filled<std::int16_t>(operand);
  if (operand.dtype == "i32") return Filled<std::int32_t>(operand);
  if (operand.dtype == "bool") return Filled<bool>(operand);
  return Filled<std::int64_t>(operand);
}

template <typename T>
std::vector<double> NumbersOf(const Tensor& tensor) {
  const T* data = tensor.data<T>();
  return std::vector<double>(data, data + tensor.view().size());
}

std::vector<double> Numbers(const Tensor& tensor, const std::string& dtype) {
  if (dtype == "f32") return NumbersOf<float>(tensor);
  if (dtype == "u8") return NumbersOf<std::uint8_t>(tensor);
  if (dtype == "i8") return NumbersOf<std::int8_t>(tensor);
  if (dtype == "u16") return NumbersOf<std::uint16_t>(tensor);
  if (dtype == "i16") return NumbersOf<std::int16_t>(tensor);
  if (dtype == "i32") return NumbersOf<std::int32_t>(tensor);
  if (dtype == "bool") return NumbersOf<bool>(tensor);
  return NumbersOf<std::int64_t>(tensor);
}

std::vector<std::vector<double>> ResultsOf(const StockCall& call, const std::string& device) {
  LinkOptions options;
  const std::string library = device.empty() ? "librewire_kernels_cpu.so" : "librewire_kernels_device.so";
  REQUIRE(MessageOf(options.kernels.AddLibrary(library)).empty());
  VirtualMachine vm(ProgramOf(TextOf(call, device), std::move(options)));
  std::vector<Value> inputs;
  for (const Operand& input : call.inputs) inputs.push_back(InputOf(input));
  const Result<Value> result = vm.TryInvoke("main", inputs);
  REQUIRE(MessageOf(result).empty());
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    all.push_back(Numbers(result->field(i).tensor(), call.outputs[i].dtype));
  }
  return all;
}

void CheckAlike(const StockCall& call) {
  INFO(TextOf(call, DeviceName()));
  const auto expected = ResultsOf(call, "");
  const auto results = ResultsOf(call, DeviceName());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(results[i].size() == expected[i].size());
    std::size_t wrong = 0;
    for (std::size_t k = 0; k < expected[i].size(); ++k) {
      const bool real = call.outputs[i].dtype == "f32";
      const bool alike = real ? results[i][k] == Approx(expected[i][k]).epsilon(1e-4).margin(1e-5)
                              : results[i][k] == expected[i][k];
      wrong += alike ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

// Scales are powers of 2 where a result is rounded, so that all devices round the same number.
TEST_CASE("integers are products and sums on a device as on the CPU") {
  // More than a tile of 64 x 64 and more than a step of 16; zeros for each row and column; batches.
  CheckAlike(
      {"matmul_integer",
       "",
       {{"u8", {70, 37}, 0, 255}, {"i8", {37, 90}, -128, 127}, {"u8", {70}, 0, 255}, {"i8", {90}, -9, 9}},
       {{"i32", {70, 90}}}});
  CheckAlike({"matmul_integer",
              "",
              {{"i8", {2, 3, 5, 20}, -128, 127}, {"u8", {20, 7}, 0, 255}, {"i8", {5}, -9, 9}},
              {{"i32", {2, 3, 5, 7}}}});
  CheckAlike({"matmul_integer",
              "",
              {{"u8", {2, 1, 3, 4}, 0, 255}, {"u8", {5, 4, 2}, 0, 255}, {"u8", {1}, 7, 8}},
              {{"i32", {2, 5, 3, 2}}}});
  CheckAlike({"conv_integer",
              "group = 2, strides = [2, 1], pads = [1, 0, 0, 2], dilations = [1, 2]",
              {{"u8", {2, 6, 9, 17}, 0, 255},
               {"i8", {140, 3, 3, 2}, -128, 127},
               {"u8", {}, 128, 129},
               {"i8", {140}, -9, 9}},
              {{"i32", {2, 140, 4, 17}}}});
}

TEST_CASE("numbers are quantized on a device as on the CPU") {
  const Operand x{"f32", {3, 5, 7}, -300, 300};
  for (const char* dtype : {"u8", "i8", "u16", "i16"}) {
    const Operand zero{dtype, {5}, 0, 9};
    CheckAlike({"quantize_linear", "axis = 1", {x, {"f32", {5}, 0.5, 0.5}, zero}, {{dtype, x.shape}}});
    CheckAlike({"dequantize_linear",
                "axis = -2",
                {{dtype, x.shape, 0, 99}, {"f32", {5}, 1, 2}, zero},
                {{"f32", x.shape}}});
  }
  CheckAlike({"quantize_linear", "", {x, {"f32", {}, 4, 4}}, {{"i8", x.shape}}});
  CheckAlike({"dequantize_linear",
              "",
              {{"i32", {40}, -1e9, 1e9}, {"f32", {1}, 3, 3}, {"i32", {1}, -2e9, -2e9}},
              {{"f32", {40}}}});
  const Operand blocks{"f32", {3, 2, 7}, 0.25, 0.25};
  CheckAlike({"quantize_linear",
              "axis = 1, block_size = 3",
              {x, blocks, {"u8", blocks.shape, 0, 200}},
              {{"u8", x.shape}}});
  CheckAlike(
      {"dynamic_quantize_linear", "", {{"f32", {900}, -100, 155}}, {{"u8", {900}}, {"f32", {}}, {"u8", {}}}});
  CheckAlike({"requantize",
              "axis = 1",
              {{"i32", {2, 5, 9}, -9999, 9999},
               {"f32", {}, 0.5, 0.5},
               {"f32", {5}, 0.25, 0.25},
               {"f32", {1}, 8, 8},
               {"i8", {}, 3, 3}},
              {{"i8", {2, 5, 9}}}});
}

TEST_CASE("borders are put around tensors on a device as on the CPU") {
  const Operand x{"f32", {3, 4, 5}};
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const std::string attributes = "pads = [1, -1, 3, 2, 2, -1], mode = \"" + std::string(mode) + "\"";
    CheckAlike({"pad", attributes, {x}, {{"f32", {6, 5, 7}}}});
  }
  CheckAlike({"pad", "pads = [0, 2, 1, 0]", {{"i64", {2, 3}, -9, 9}, {"i64", {}, 7, 7}}, {{"i64", {3, 5}}}});
  CheckAlike({"pad", "pads = [2, 9]", {{"u8", {5}, 0, 99}, {"u8", {1}, 7, 7}}, {{"u8", {16}}}});
}

TEST_CASE("transposed convolutions run on a device as on the CPU") {
  CheckAlike({"conv_transpose",
              "group = 2, strides = [2, 3], dilations = [2, 1], pads = [1, 0, 2, 1], output_padding = [1, 0]",
              {{"f32", {2, 4, 5, 3}}, {"f32", {4, 3, 3, 2}}, {"f32", {6}}},
              {{"f32", {2, 6, 11, 7}}}});
  CheckAlike({"conv_transpose",
              "strides = [3], output_shape = [10]",
              {{"f32", {1, 2, 3}}, {"f32", {2, 3, 2}}},
              {{"f32", {1, 3, 10}}}});
}

TEST_CASE("tensors are resized on a device as on the CPU") {
  const Operand x{"f32", {2, 3, 7, 5}};
  const Operand out{"f32", {2, 3, 11, 12}};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                    "half_pixel_symmetric", "tf_half_pixel_for_nn"}) {
      const std::string attributes =
          "mode = \"" + std::string(mode) + "\", coordinate_transformation_mode = \"" + coordinates + "\"";
      CheckAlike({"resize", attributes, {x}, {out}});
      CheckAlike({"resize", attributes, {out}, {x}});
    }
  }
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    const std::string attributes = "nearest_mode = \"" + std::string(rounding) + "\"";
    CheckAlike({"resize", attributes, {{"f32", {8, 6}}}, {{"f32", {4, 9}}}});
  }
  // The second input is the region that only tf_crop_and_resize reads.
  CheckAlike({"resize",
              "mode = \"cubic\", cubic_coeff_a = -0.5, exclude_outside = 1, axes = [-1, 0]",
              {{"f32", {4, 2, 5}}, {"f32", {0}}, {"f32", {2}, 1.7, 1.7}},
              {{"f32", {6, 2, 8}}}});
}

TEST_CASE("what a device's kernel does not do is left to the CPU") {
  const Operand x{"f32", {4}};
  for (const char* attribute : {"antialias = 1", "coordinate_transformation_mode = \"tf_crop_and_resize\""}) {
    LinkOptions options;
    REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
    const Executable executable = ExecutableOf(TextOf({"resize", attribute, {x}, {x}}, DeviceName()));
    const std::string message = MessageOf(Program::Link(executable, std::move(options)));
    CHECK(message.find(" is left to the CPU") != std::string::npos);
  }
}

}  // namespace
}  // namespace rewire::test
