// SPDX-License-Identifier: Apache-2.0
#include "rewire/kernels/cpu/signal/fourier.h"

#include <algorithm>
#include <cmath>

#include "rewire/kernels/cpu/support/parallel.h"

namespace rewire::kernel::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;

void Multiply(double* a, const double* b, double sign = 1) {
  const double real = a[0] * b[0] - sign * a[1] * b[1];
  a[1] = sign * a[0] * b[1] + a[1] * b[0];
  a[0] = real;
}

}  // namespace

Status Fourier::Init(std::int64_t length, bool inverse, Pace& pace) {
  length_ = length;
  if (length <= 1) return Status();
  const bool is_power = (length & (length - 1)) == 0;
  padded_ = 2;
  while (padded_ < (is_power ? length : 2 * length - 1)) padded_ *= 2;
  if (Status s = Workspace(padded_, &roots_); !s.ok()) return s;
  const double direction = inverse ? 1 : -1;
  for (std::int64_t i = 0; i < padded_ / 2; ++i) {
    if (!pace.Spend(8)) return Stopped();
    // Within Bluestein's convolution the direction is of no matter, but the same both ways.
    const double angle = direction * 2 * kPi * static_cast<double>(i) / static_cast<double>(padded_);
    roots_[2 * i] = std::cos(angle);
    roots_[2 * i + 1] = std::sin(angle);
  }
  if (is_power) return Status();
  if (Status s = Workspace(2 * length, &chirp_); !s.ok()) return s;
  if (Status s = Workspace(2 * padded_, &spectrum_); !s.ok()) return s;
  if (Status s = Workspace(2 * padded_, &scratch_); !s.ok()) return s;
  if (!pace.Fill(spectrum_, 2 * padded_, 0.0)) return Stopped();
  for (std::int64_t i = 0; i < length; ++i) {
    if (!pace.Spend(16)) return Stopped();
    // i^2 / 2 turns; whole turns are left out before the angle loses precision.
    const auto square = static_cast<unsigned __int128>(i) * static_cast<unsigned __int128>(i);
    const auto turns = static_cast<std::int64_t>(square % static_cast<unsigned __int128>(2 * length));
    const double angle = direction * kPi * static_cast<double>(turns) / static_cast<double>(length);
    chirp_[2 * i] = std::cos(angle);
    chirp_[2 * i + 1] = std::sin(angle);
    for (std::int64_t at : {i, (padded_ - i) % padded_}) {
      spectrum_[2 * at] = chirp_[2 * i];
      spectrum_[2 * at + 1] = -chirp_[2 * i + 1];
    }
  }
  return Radix2(spectrum_, roots_, pace) ? Status() : Stopped();
}

// A shorter length that is no power of two takes more than one that is.
void Fourier::DeclareWorkspace(WorkspaceSizes& sizes, std::int64_t most) {
  std::int64_t padded = 2;
  while (padded < Times(2, most) - 1) padded *= 2;
  for (const std::int64_t numbers : {padded, Times(2, most), Times(2, padded), Times(2, padded)})
    sizes.Take(numbers, sizeof(double));
}

// Decimation in time: positions are reversed bit by bit, then halves of growing length are joined.
bool Fourier::Radix2(double* data, const double* roots, Pace& pace) const {
  for (std::int64_t i = 1, j = 0; i < padded_; ++i) {
    if (!pace.Spend(2)) return false;
    std::int64_t bit = padded_ / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j |= bit;
    if (i < j) std::swap_ranges(data + 2 * i, data + 2 * i + 2, data + 2 * j);
  }
  for (std::int64_t half = 1; half < padded_; half *= 2) {
    const std::int64_t step = padded_ / (2 * half);
    const auto butterflies = [&](std::int64_t first, std::int64_t k, std::int64_t end) {
      for (; k < end; ++k) {
        double* even = data + 2 * (first + k);
        double* odd = even + 2 * half;
        Multiply(odd, roots + 2 * k * step);
        const double real = odd[0];
        const double imaginary = odd[1];
        odd[0] = even[0] - real;
        odd[1] = even[1] - imaginary;
        even[0] += real;
        even[1] += imaginary;
      }
    };
    // Many short halves at a time, or a long one in parts.
    const auto blocks = [&](std::int64_t block, std::int64_t end) {
      for (; block < end && !pace.stopped(); ++block) {
        const auto part = [&](std::int64_t k, std::int64_t last) { butterflies(block * 2 * half, k, last); };
        if (half <= kPace)
          part(0, half);
        else
          static_cast<void>(pace.For(half, 4, part));
      }
    };
    if (!pace.For(step, Times(4, std::min(half, kPace)), blocks)) return false;
  }
  return true;
}

bool Fourier::Run(double* data, Pace& pace) const {
  if (length_ <= 1) return true;
  if (chirp_ == nullptr) return Radix2(data, roots_, pace);
  if (!pace.Copy(scratch_, data, Times(2 * length_, sizeof(double)))) return false;
  if (!pace.Fill(scratch_ + 2 * length_, 2 * (padded_ - length_), 0.0)) return false;
  const auto chirp = [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) Multiply(scratch_ + 2 * i, chirp_ + 2 * i);
  };
  if (!pace.For(length_, 4, chirp) || !Radix2(scratch_, roots_, pace)) return false;
  const auto filter = [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) Multiply(scratch_ + 2 * i, spectrum_ + 2 * i);
  };
  // Back: the inverse transform is the transform read backwards.
  if (!pace.For(padded_, 4, filter) || !Radix2(scratch_, roots_, pace)) return false;
  return pace.For(length_, 8, [&](std::int64_t i, std::int64_t end) {
    for (; i < end; ++i) {
      const std::int64_t at = (padded_ - i) % padded_;
      data[2 * i] = scratch_[2 * at] / static_cast<double>(padded_);
      data[2 * i + 1] = scratch_[2 * at + 1] / static_cast<double>(padded_);
      Multiply(data + 2 * i, chirp_ + 2 * i);
    }
  });
}

}  // namespace rewire::kernel::cpu
