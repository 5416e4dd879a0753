// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/devices/stock_call.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <type_traits>

#include "rewire/tests/devices/test_device.h"
#include "rewire/tests/vm/test_program.h"

namespace rewire::test {
namespace {

template <typename T>
Value Filled(const Operand& operand) {
  const Tensor tensor = *Tensor::Make(DTypeOf<T>(), operand.shape);
  const std::int64_t size = tensor.view().size();
  // The range that a call asks for, without what T does not have.
  const double low = std::max(operand.low, static_cast<double>(std::numeric_limits<T>::lowest()));
  const double high = std::min(operand.high, static_cast<double>(std::numeric_limits<T>::max()));
  for (std::int64_t i = 0; i < size; ++i) {
    const double part = static_cast<double>(i * 7919 % 1009) / 1009;
    const double number =
        operand.numbers.empty() ? low + part * (high - low) : operand.numbers[static_cast<std::size_t>(i)];
    tensor.data<T>()[i] = static_cast<T>(number);
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T kSpecial[] = {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(),
                                -std::numeric_limits<T>::infinity(), T{-0.0}, T{0}};
      if (operand.special && i % 3 == 0) tensor.data<T>()[i] = kSpecial[i / 3 % 5];
    }
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

}  // namespace

// On a device it copies the inputs there and the results back.
std::string TextOf(const StockCall& call, const std::string& device) {
  const bool copies = !device.empty();
  const std::string where = copies ? ", gpu" : ", cpu";
  const std::string name = std::string(copies ? "rewire.device." : "rewire.") + call.kernel;
  const std::string attributes = call.attributes.empty() ? "" : " {" + call.attributes + "}";
  std::string inputs, arguments, results, before, behind;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    inputs += (i == 0 ? "" : ", ") + x + ": " + call.inputs[i].Type();
    const bool moves = copies && !call.inputs[i].on_host;
    arguments += (moves ? "%d" : "%") + x + ", ";
    if (moves) before += "%d" + x + " = device_copy %" + x + ", cpu, gpu\n";
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

std::vector<Value> InputsOf(const StockCall& call) {
  std::vector<Value> inputs;
  for (const Operand& input : call.inputs) inputs.push_back(InputOf(input));
  return inputs;
}

std::vector<std::vector<double>> ResultsOf(const StockCall& call, const std::string& device) {
  LinkOptions options;
  const std::string library = device.empty() ? "librewire_kernels_cpu.so" : "librewire_kernels_device.so";
  REQUIRE(MessageOf(options.kernels.AddLibrary(library)).empty());
  VirtualMachine vm(ProgramOf(TextOf(call, device), std::move(options)));
  const Result<Value> result = vm.TryInvoke("main", InputsOf(call));
  REQUIRE(MessageOf(result).empty());
  std::vector<std::vector<double>> all;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    all.push_back(Numbers(result->field(i).tensor(), call.outputs[i].dtype));
  }
  return all;
}

std::string DeviceErrorOf(const StockCall& call) {
  LinkOptions options;
  REQUIRE(MessageOf(options.kernels.AddLibrary("librewire_kernels_device.so")).empty());
  VirtualMachine vm(ProgramOf(TextOf(call, DeviceName()), std::move(options)));
  return MessageOf(vm.TryInvoke("main", InputsOf(call)));
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
      const bool both_nan = std::isnan(results[i][k]) && std::isnan(expected[i][k]);
      const bool alike = both_nan ? true
                         : real   ? results[i][k] == Approx(expected[i][k]).epsilon(1e-4).margin(1e-5)
                                  : results[i][k] == expected[i][k];
      wrong += alike ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace rewire::test
