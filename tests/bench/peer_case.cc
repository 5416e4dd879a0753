// SPDX-License-Identifier: Apache-2.0
#include "rewire/tests/bench/peer_case.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "rewire/base/dtype.h"
#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/kernels/cpu/support/half.h"

namespace rewire::bench {
namespace {

HostTensor Read(const std::filesystem::path& path) {
  Result<HostTensor> tensor = ReadNpy(path.string());
  if (!tensor) throw std::runtime_error(tensor.error().message());
  return *std::move(tensor);
}

template <typename T>
std::vector<double> ValuesAs(const HostTensor& tensor) {
  const auto* data = reinterpret_cast<const T*>(tensor.bytes.view.data());
  std::vector<double> values(tensor.bytes.view.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_same_v<T, kernel::cpu::Float16>)
      values[i] = static_cast<float>(data[i]);
    else
      values[i] = static_cast<double>(data[i]);
  }
  return values;
}

std::vector<double> ValuesOf(const HostTensor& tensor) {
  const DLDataType dtype = tensor.dtype;
  if (dtype == kFloat32) return ValuesAs<float>(tensor);
  if (dtype == kFloat64) return ValuesAs<double>(tensor);
  if (dtype == kFloat16) return ValuesAs<kernel::cpu::Float16>(tensor);
  if (dtype == kInt64) return ValuesAs<std::int64_t>(tensor);
  if (dtype == kInt32) return ValuesAs<std::int32_t>(tensor);
  if (dtype == MakeDType(kInt, 16)) return ValuesAs<std::int16_t>(tensor);
  if (dtype == kInt8) return ValuesAs<std::int8_t>(tensor);
  if (dtype == MakeDType(kUInt, 64)) return ValuesAs<std::uint64_t>(tensor);
  if (dtype == MakeDType(kUInt, 32)) return ValuesAs<std::uint32_t>(tensor);
  if (dtype == MakeDType(kUInt, 16)) return ValuesAs<std::uint16_t>(tensor);
  if (dtype == kUInt8 || dtype == kBool8) return ValuesAs<std::uint8_t>(tensor);
  throw std::runtime_error("elements of type " + DTypeName(dtype) + " are not compared");
}

}  // namespace

PeerCase ReadCase(const std::filesystem::path& folder) {
  PeerCase read;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "in"))
    read.inputs[entry.path().stem().string()] = Read(entry.path());
  std::ifstream names_file(folder / "out" / "names.json");
  for (const std::string& output : nlohmann::json::parse(names_file).get<std::vector<std::string>>())
    read.expected[output] = Read(folder / "out" / (std::to_string(read.expected.size()) + ".npy"));
  return read;
}

NamedTensors MakeOutputs(const NamedTensors& expected) {
  NamedTensors outputs = expected;
  for (auto& [name, tensor] : outputs) {
    std::byte* data = nullptr;
    tensor.bytes = AllocateBytes(tensor.bytes.view.size(), &data);
  }
  return outputs;
}

double TensorApart(const HostTensor& output, const HostTensor& expected) {
  const std::vector<double> given = ValuesOf(output), wanted = ValuesOf(expected);
  // One step of 8 bits is rounding, also where all values are a few steps.
  constexpr double kLeastSteps = 64;
  double most = expected.dtype == kUInt8 || expected.dtype == kInt8 ? kLeastSteps : 0, difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (given[i] == wanted[i] || (std::isnan(given[i]) && std::isnan(wanted[i]))) {
      if (std::isfinite(wanted[i])) most = std::max(most, std::fabs(wanted[i]));
      continue;
    }
    if (!std::isfinite(given[i]) || !std::isfinite(wanted[i])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::fabs(wanted[i]));
    difference = std::max(difference, std::fabs(given[i] - wanted[i]));
  }
  return difference / (most > 0 ? most : 1);
}

double FloatsApart(const NamedTensors& outputs, const NamedTensors& expected) {
  double apart = 0;
  for (const auto& [name, tensor] : expected) {
    if (tensor.dtype == kFloat32) apart = std::max(apart, TensorApart(outputs.at(name), tensor));
  }
  return apart;
}

double AllApart(const NamedTensors& outputs, const NamedTensors& expected) {
  double apart = 0;
  for (const auto& [name, tensor] : expected) apart = std::max(apart, TensorApart(outputs.at(name), tensor));
  return apart;
}

}  // namespace rewire::bench
