// SPDX-License-Identifier: Apache-2.0
// Recognizes the held-out digits, shows a few of them and how many are right.
// usage: digits-show digits.rwx images.npy labels.npy
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "rewire/executable_format/tensor_files/npy.h"
#include "rewire/vm/vm.h"

namespace {

// DLPack's types are C, so argument-dependent lookup does not find it.
using rewire::operator==;  // NOLINT(misc-unused-using-decls): it is used

constexpr std::int64_t kSide = 8;
constexpr std::int64_t kPixels = kSide * kSide;
constexpr std::int64_t kClasses = 10;
constexpr std::int64_t kShown = 8;

// The share of images that must be right: what README.md promises, less what another machine's rounding may
// cost.
constexpr double kLeastAccuracy = 0.97;

// `shown` images beside each other, each with its prediction below.
void Show(const float* images, const std::int64_t* predicted, const std::int64_t* labels,
          std::int64_t shown) {
  for (std::int64_t row = 0; row < kSide; ++row) {
    std::string line;
    for (std::int64_t i = 0; i < shown; ++i) {
      for (std::int64_t column = 0; column < kSide; ++column) {
        const float ink = std::clamp(images[i * kPixels + row * kSide + column], 0.0F, 1.0F);
        line += " .:-=+*#"[std::lround(ink * 7)];
      }
      line += "   ";
    }
    std::printf("  %s\n", line.c_str());
  }
  std::printf("  ");
  for (std::int64_t i = 0; i < shown; ++i) {
    std::printf("%-11s",
                (std::to_string(predicted[i]) + (predicted[i] == labels[i] ? "" : " (wrong)")).c_str());
  }
  std::printf("\n");
}

template <typename T>
T Take(rewire::Result<T> result) {
  if (!result) throw rewire::Error(result.error());
  return *std::move(result);
}

rewire::HostTensor ReadArray(const char* path, DLDataType dtype, std::size_t rank) {
  rewire::HostTensor tensor = Take(rewire::ReadNpy(path));
  if (tensor.dtype == dtype && tensor.shape.size() == rank && tensor.shape[0] > 0) return tensor;
  throw rewire::Error(rewire::StatusCode::kInvalidArgument,
                      std::string(path) + " is " + rewire::TensorTypeText(tensor.dtype, tensor.shape) +
                          ", expected " + rewire::DTypeName(dtype) + " of rank " + std::to_string(rank));
}

int Run(char** argv) {
  const rewire::HostTensor images = ReadArray(argv[2], rewire::kFloat32, 4);
  const rewire::HostTensor labels = ReadArray(argv[3], rewire::kInt64, 1);
  const std::int64_t count = std::min(images.shape[0], labels.shape[0]);
  const auto* pixels = reinterpret_cast<const float*>(images.bytes.view.data());
  const auto* expected = reinterpret_cast<const std::int64_t*>(labels.bytes.view.data());

  const auto program = rewire::Program::Open(argv[1]);
  rewire::VirtualMachine vm(program);
  vm.SetInput("image", rewire::TensorView(pixels, {count, 1, kSide, kSide}));
  vm.Invoke();
  const rewire::Tensor probabilities = vm.Output("probabilities");

  std::vector<std::int64_t> predicted;
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* scores = probabilities.data<float>() + i * kClasses;
    predicted.push_back(std::max_element(scores, scores + kClasses) - scores);
    right += predicted.back() == expected[i] ? 1 : 0;
  }
  Show(pixels, predicted.data(), expected, std::min(count, kShown));
  const double accuracy = static_cast<double>(right) / static_cast<double>(count);
  std::printf("%lld of %lld held-out images are right: %.2f %%\n", static_cast<long long>(right),
              static_cast<long long>(count), 100 * accuracy);
  return accuracy >= kLeastAccuracy ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 4) return Run(argv);
  std::fprintf(stderr, "usage: digits-show digits.rwx images.npy labels.npy\n");
  return 2;
} catch (const rewire::Error& error) {
  std::fprintf(stderr, "digits-show: error: %s\n", error.what());
  return 1;
}
