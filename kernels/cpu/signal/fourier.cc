// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/signal/fourier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rewire/kernels/cpu/signal/fourier_steps.h"
#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;

// The first `some` of `count` roots of unity.
bool FillRoots(double* roots, std::int64_t some, std::int64_t count, double sign, Pace& pace) {
  return pace.For(some, 8, [=](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) {
      const double angle = sign * 2 * kPi * static_cast<double>(i) / static_cast<double>(count);
      roots[2 * i] = std::cos(angle);
      roots[2 * i + 1] = std::sin(angle);
    }
  });
}

// The power of two that Bluestein's convolution takes for `count` numbers.
std::int64_t PaddedFor(std::int64_t count) {
  std::int64_t padded = 2;
  while (padded < Times(2, count) - 1) padded *= 2;
  return padded;
}

}  // namespace

Status Fourier::Init(std::int64_t length, bool inverse, bool pairs, Pace& pace) {
  sign_ = inverse ? 1 : -1;
  count_ = padded_ = pairs ? length / 2 : length;
  std::int64_t rest = count_;
  for (const std::int8_t radix : {4, 2, 3, 5}) {
    for (; rest > 1 && rest % radix == 0; rest /= radix) radices_[radix_count_++] = radix;
  }
  const bool has_radices = rest <= 1;
  if (!has_radices) {
    padded_ = rest = PaddedFor(count_);
    radix_count_ = 0;
    for (; rest > 1; rest /= radices_[radix_count_++]) radices_[radix_count_] = rest % 4 == 0 ? 4 : 2;
  }
  if (Status s = Workspace(Times(2, padded_), &roots_); !s.ok()) return s;
  // The other half is the conjugate of this one.
  if (!FillRoots(roots_, padded_ / 2 + 1, padded_, sign_, pace)) return Stopped();
  const bool mirrored = pace.For(padded_, 1, [&](std::int64_t i, std::int64_t end) {
    for (i = std::max(i, padded_ / 2 + 1); i < end; ++i) {
      roots_[2 * i] = roots_[2 * (padded_ - i)];
      roots_[2 * i + 1] = -roots_[2 * (padded_ - i) + 1];
    }
  });
  if (!mirrored) return Stopped();
  if (pairs) {
    if (Status s = Workspace(Times(2, count_ / 2 + 1), &turns_); !s.ok()) return s;
    if (!FillRoots(turns_, count_ / 2 + 1, 2 * count_, sign_, pace)) return Stopped();
  }
  return has_radices ? Status() : InitChirp(pace);
}

Status Fourier::InitChirp(Pace& pace) {
  double* convolved = nullptr;
  if (Status s = Workspace(Times(2, count_), &chirp_); !s.ok()) return s;
  if (Status s = Workspace(Times(4, padded_), &convolved); !s.ok()) return s;
  if (!pace.Fill(convolved, 2 * padded_, 0.0)) return Stopped();
  for (std::int64_t i = 0; i < count_; ++i) {
    if (!pace.Spend(16)) return Stopped();
    // i^2 / 2 turns; whole turns are left out before the angle loses precision.
    const auto square = static_cast<unsigned __int128>(i) * static_cast<unsigned __int128>(i);
    const auto turns = static_cast<std::int64_t>(square % static_cast<unsigned __int128>(2 * count_));
    const double angle = sign_ * kPi * static_cast<double>(turns) / static_cast<double>(count_);
    chirp_[2 * i] = std::cos(angle);
    chirp_[2 * i + 1] = std::sin(angle);
    for (const std::int64_t at : {i, (padded_ - i) % padded_}) {
      convolved[2 * at] = chirp_[2 * i];
      convolved[2 * at + 1] = -chirp_[2 * i + 1];
    }
  }
  spectrum_ = RunPasses(convolved, convolved + 2 * padded_, 1, pace);
  return pace.status();
}

// Every length may be the one that takes the convolution.
void Fourier::DeclareWorkspace(WorkspaceSizes& sizes, std::int64_t most) {
  const std::int64_t padded = PaddedFor(most);
  for (const std::int64_t numbers : {Times(2, padded), Plus(most, 2), Times(2, most), Times(4, padded)})
    sizes.Take(numbers, sizeof(double));
}

std::int64_t Fourier::MostNumbers(std::int64_t most) { return PaddedFor(most) + 1; }

double* Fourier::RunPasses(double* data, double* other, std::int64_t lanes, Pace& pace) const {
  const FourierSteps& steps = BestFourierSteps();
  FourierPass pass = {data, other, roots_, sign_, 0, padded_, 1, lanes};
  for (int r = 0; r < radix_count_; ++r) {
    pass.from = data;
    pass.to = other;
    pass.radix = radices_[r];
    pass.parts /= pass.radix;
    const auto run = [&](std::int64_t begin, std::int64_t end) { steps.pass(pass, begin, end); };
    if (!pace.For(pass.parts * pass.stride, 4 * pass.radix, run)) return nullptr;
    pass.stride *= pass.radix;
    std::swap(data, other);
  }
  return data;
}

double* Fourier::Convolve(double* data, double* other, std::int64_t lanes, Pace& pace) const {
  const FourierSteps& steps = BestFourierSteps();
  const auto multiply = [&](const FourierProduct& product, std::int64_t count) {
    return pace.For(count, 4,
                    [&](std::int64_t begin, std::int64_t end) { steps.multiply(product, begin, end); });
  };
  double* const second = other;
  double* const first = data;
  const auto opposite = [&](const double* buffer) { return buffer == first ? second : first; };
  if (!multiply({first, chirp_, 1, first, 0, lanes}, count_)) return nullptr;
  if (!pace.Fill(first + 2 * lanes * count_, 2 * lanes * (padded_ - count_), 0.0)) return nullptr;
  double* at = RunPasses(first, second, lanes, pace);
  if (at == nullptr || !multiply({at, spectrum_, 1, at, 0, lanes}, padded_)) return nullptr;
  // Back: the inverse transform is the transform read backwards.
  at = RunPasses(at, opposite(at), lanes, pace);
  if (at == nullptr) return nullptr;
  double* result = opposite(at);
  const FourierProduct back = {at, chirp_, 1 / static_cast<double>(padded_), result, padded_, lanes};
  return multiply(back, count_) ? result : nullptr;
}

double* Fourier::Run(double* data, double* other, std::int64_t lanes, Pace& pace) const {
  double* result =
      chirp_ == nullptr ? RunPasses(data, other, lanes, pace) : Convolve(data, other, lanes, pace);
  if (result == nullptr || turns_ == nullptr) return result;
  const auto separate = [&](std::int64_t begin, std::int64_t end) {
    BestFourierSteps().separate(result, turns_, count_, lanes, begin, end);
  };
  return pace.For(count_ / 2 + 1, 8, separate) ? result : nullptr;
}

}  // namespace rewire::kernel::cpu
