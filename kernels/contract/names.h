// SPDX-License-Identifier: Apache-2.0
//
// Functions that read and build names of kernels. The names themselves stand in the files of the families
// beside this one, as constants, so that a wrong name does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace rewire::names {

// The names of all stock kernels begin so.
inline constexpr std::string_view kStock = "rewire.";
// A kernel of a device has the name of the CPU's counterpart, with this beginning.
inline constexpr std::string_view kDevice = "rewire.device.";
// Shape functions compute shapes and sizes on the host.
inline constexpr std::string_view kShape = "rewire.shape.";

constexpr bool StartsWith(std::string_view name, std::string_view start) {
  return name.substr(0, start.size()) == start;
}
constexpr bool IsStock(std::string_view name) { return StartsWith(name, kStock); }
constexpr bool IsOnDevice(std::string_view name) { return StartsWith(name, kDevice); }
constexpr bool IsShapeFunction(std::string_view name) { return StartsWith(name, kShape); }

// The part of a stock kernel's name that it shares with its counterparts: "add" of "rewire.add" and of
// "rewire.device.add". Other names stay as they are.
constexpr std::string_view Stem(std::string_view name) {
  if (IsOnDevice(name)) return name.substr(kDevice.size());
  return IsStock(name) ? name.substr(kStock.size()) : name;
}

// Whether `name` is that of the CPU's kernel `kernel` or of its counterpart on a device.
constexpr bool IsKernel(std::string_view name, std::string_view kernel) {
  return IsStock(name) && Stem(name) == Stem(kernel);
}

// The name of the counterpart on a device of the CPU's kernel `name`.
inline std::string OnDevice(std::string_view name) { return std::string(kDevice) + std::string(Stem(name)); }

namespace internal {

template <const char* kName>
constexpr auto JoinOnDevice() {
  constexpr std::string_view kStem = Stem(kName);
  std::array<char, kDevice.size() + kStem.size() + 1> name{};
  std::size_t at = 0;
  for (const char c : kDevice) name[at++] = c;
  for (const char c : kStem) name[at++] = c;
  return name;
}

template <const char* kName>
inline constexpr auto kJoinedOnDevice = JoinOnDevice<kName>();

}  // namespace internal

// As OnDevice, of a constant of this folder: kOnDevice<kAdd> is "rewire.device.add".
template <const char* kName>
inline constexpr const char* kOnDevice = internal::kJoinedOnDevice<kName>.data();

}  // namespace rewire::names
