// SPDX-License-Identifier: Apache-2.0
// Signals: Fourier transforms, windows, mel filters.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/signal.h"
#include "rewire/kernels/contract/window.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/signal/fourier_lines.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

std::int64_t Bins(std::int64_t length, bool onesided) {
  return contract::DftBins(contract::WindowSize(length), onesided).value;
}

// The longest transform that has so many bins.
std::int64_t MostLength(std::int64_t bins, bool onesided) { return onesided ? Times(2, bins) - 1 : bins; }

// x [..., 1 or 2]: real, or real and imaginary parts. `axis` is not the last one. A onesided transform of
// real numbers has only the first half of its bins; an inverse one takes these and gives real numbers.
struct DftAttributes {
  std::int64_t axis = 1;
  bool inverse = false;
  bool onesided = false;

  Status Read(Attributes& attributes) {
    axis = attributes.Int("axis", 1);
    inverse = attributes.Bool("inverse", false);
    onesided = attributes.Bool("onesided", false);
    return Status();
  }
  // `length` is what x is cut or filled up to along the axis.
  Status Resolve(ShapeView x, const std::optional<TensorView>& dft_length,
                 const std::optional<TensorView>& axis_value, int* along, std::int64_t* length,
                 Dims* result) const {
    const int rank = static_cast<int>(x.size());
    if (rank < 2 || x[x.size() - 1] < 1 || x[x.size() - 1] > 2)
      return ValueError("x has shape ", x, ", expected [..., 1 or 2]");
    std::int64_t given_axis = axis;
    if (IsGiven(axis_value)) {
      if (Status s = ReadInt("axis", *axis_value, &given_axis); !s.ok()) return s;
    }
    if (Status s = NormalizeAxis(given_axis, rank, along); !s.ok()) return s;
    if (*along == rank - 1)
      return ValueError("axis ", given_axis, " of x with shape ", x, " is that of real and imaginary");
    if (gives_real() && x[x.size() - 1] != 2)
      return ValueError("x has shape ", x, ", expected [..., 2] for an inverse onesided transform");
    *length = x[static_cast<std::size_t>(*along)];
    if (gives_real()) *length = 2 * (*length - 1);
    if (IsGiven(dft_length)) {
      if (Status s = ReadInt("dft_length", *dft_length, length); !s.ok()) return s;
    }
    if (*length < 1 || *length > (std::int64_t{1} << 40))
      return ValueError("the transform has length ", *length, ", expected 1 or more");
    *result = Dims(x);
    (*result)[*along] = Bins(*length, onesided && !inverse);
    (*result)[rank - 1] = contract::DftParts(inverse, onesided);
    return Status();
  }
  bool gives_real() const { return contract::DftParts(inverse, onesided) == 1; }
};

struct Dft {
  static constexpr const char* kName = names::kDft;
  DftAttributes attributes;
  static Status Make(Attributes& given, Dft* dft) { return dft->attributes.Read(given); }

  Status operator()(TensorView x, std::optional<TensorView> dft_length, std::optional<TensorView> axis,
                    TensorView out) const {
    Checks checks;
    checks.Dense("x", x).Dense("out", out).SameDType("out", out, "x", x).NoOverlap("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    int along = 0;
    std::int64_t length = 0;
    Dims expected;
    if (Status s = attributes.Resolve(x.dims(), dft_length, axis, &along, &length, &expected); !s.ok())
      return s;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t inner = Product(x.dims(), along + 1, x.ndim() - 1);
    const std::int64_t lines = Times(Product(x.dims(), 0, along), inner);
    if (lines == 0) return Status();
    return ForType(Floats(), "x", x, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::int64_t parts = x.dim(x.ndim() - 1), out_parts = attributes.gives_real() ? 1 : 2;
      const std::int64_t given = x.dim(along), kept = expected[along];
      const auto read = [&](std::int64_t i) {
        return x.data<T>() + (i / inner * given * inner + i % inner) * parts;
      };
      const auto written = [&](std::int64_t i) {
        return out.data<T>() + (i / inner * kept * inner + i % inner) * out_parts;
      };
      const T* window = nullptr;
      return FourierLines<T, decltype(read), decltype(written)>{lines,
                                                                length,
                                                                given,
                                                                parts,
                                                                inner * parts,
                                                                window,
                                                                attributes.inverse,
                                                                attributes.gives_real(),
                                                                kept,
                                                                inner * out_parts,
                                                                read,
                                                                written}
          .Run();
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* out = sizes.Tensor(-1, 2);
    int along = 0;
    // An axis that is an argument is not known before the run.
    if (out == nullptr || sizes.Tensor(3) != nullptr ||
        !NormalizeAxis(attributes.axis, out->ndim, &along).ok())
      return false;
    const std::int64_t bins = out->shape[along];
    // All other axes, and that of the parts: enough where there are no bins.
    std::int64_t lines = 1;
    for (int i = 0; i < out->ndim; ++i) lines = Times(lines, i == along ? 1 : out->shape[i]);
    DeclareFourierLines(sizes, lines, MostLength(bins, attributes.onesided && !attributes.inverse));
    return true;
  }
};

struct DftShape {
  static constexpr const char* kName = names::kShapeDft;
  DftAttributes attributes;
  static Status Make(Attributes& given, DftShape* dft) { return dft->attributes.Read(given); }
  Status operator()(TensorView x, std::optional<TensorView> dft_length, std::optional<TensorView> axis,
                    TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    int along = 0;
    std::int64_t length = 0;
    if (Status s = attributes.Resolve(input.view(), dft_length, axis, &along, &length, &result); !s.ok())
      return s;
    return WriteShape(result, out);
  }
};

// signal [N, length, 1 or 2] to [N, frames, bins, 2].
struct StftAttributes {
  bool onesided = true;

  // `window` is the window's length, 0 without one.
  Status Resolve(ShapeView signal, TensorView frame_step, std::int64_t window,
                 const std::optional<TensorView>& frame_length, std::int64_t* step, std::int64_t* length,
                 Dims* result) const {
    if (signal.size() != 3 || signal[2] < 1 || signal[2] > 2)
      return ValueError("signal has shape ", signal, ", expected [N, length, 1 or 2]");
    if (Status s = ReadInt("frame_step", frame_step, step); !s.ok()) return s;
    *length = window;
    if (IsGiven(frame_length)) {
      if (Status s = ReadInt("frame_length", *frame_length, length); !s.ok()) return s;
    }
    if (*step < 1 || *length < 1 || *length > signal[1] || (window != 0 && window != *length)) {
      return ValueError("frames of ", *length, " every ", *step, " with a window of ", window,
                        " do not fit a signal of shape ", signal);
    }
    *result = Dims(ShapeView(signal.data(), 1));
    result->push_back((signal[1] - *length) / *step + 1);
    result->push_back(Bins(*length, onesided));
    result->push_back(2);
    return Status();
  }
};

struct Stft {
  static constexpr const char* kName = names::kStft;
  StftAttributes attributes;
  static Status Make(Attributes& given, Stft* stft) {
    stft->attributes.onesided = given.Bool("onesided", true);
    return Status();
  }
  Status operator()(TensorView signal, TensorView frame_step, std::optional<TensorView> window,
                    std::optional<TensorView> frame_length, TensorView out) const {
    Checks checks;
    checks.Dense("signal", signal).Dense("out", out).SameDType("out", out, "signal", signal);
    checks.NoOverlap("out", out, "signal", signal);
    const bool has_window = IsGiven(window);
    if (has_window) {
      checks.Dense("window", *window)
          .Rank("window", *window, 1)
          .SameDType("window", *window, "signal", signal);
      checks.NoOverlap("out", out, "window", *window);
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    std::int64_t step = 0;
    std::int64_t length = 0;
    Dims expected;
    Status resolved = attributes.Resolve(signal.dims(), frame_step, has_window ? window->dim(0) : 0,
                                         frame_length, &step, &length, &expected);
    if (!resolved.ok()) return resolved;
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t frames = expected[1], lines = Times(signal.dim(0), frames);
    if (lines == 0) return Status();
    return ForType(Floats(), "signal", signal, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::int64_t parts = signal.dim(2), bins = expected[2];
      const auto read = [&](std::int64_t i) {
        return signal.data<T>() + (i / frames * signal.dim(1) + i % frames * step) * parts;
      };
      const auto written = [&](std::int64_t i) { return out.data<T>() + i * bins * 2; };
      const T* weights = has_window ? window->data<T>() : nullptr;
      return FourierLines<T, decltype(read), decltype(written)>{lines, length, length, parts, parts, weights,
                                                                false, false,  bins,   2,     read,  written}
          .Run();
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* out = sizes.Tensor(-1, 3);
    if (out == nullptr) return false;
    DeclareFourierLines(sizes, Times(out->shape[0], out->shape[1]),
                        MostLength(out->shape[2], attributes.onesided));
    return true;
  }
};

struct StftShape {
  static constexpr const char* kName = names::kShapeStft;
  StftAttributes attributes;
  static Status Make(Attributes& given, StftShape* stft) {
    stft->attributes.onesided = given.Bool("onesided", true);
    return Status();
  }
  Status operator()(TensorView signal, TensorView frame_step, std::optional<TensorView> window,
                    std::optional<TensorView> frame_length, TensorView out) const {
    Dims input, weights, result;
    if (Status s = ReadShape("signal", signal, &input); !s.ok()) return s;
    if (IsGiven(window)) {
      if (Status s = ReadShape("window", *window, &weights); !s.ok()) return s;
      if (weights.rank() != 1) return ValueError("window is ", weights.view(), ", expected rank 1");
    }
    std::int64_t step = 0;
    std::int64_t length = 0;
    Status s = attributes.Resolve(input.view(), frame_step, weights.rank() == 0 ? 0 : weights[0],
                                  frame_length, &step, &length, &result);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct WindowFunction {
  static constexpr const char* kName = names::kWindow;
  // The first terms of a cosine series.
  double terms[3] = {0.5, -0.5, 0};
  bool periodic = true;
  static Status Make(Attributes& attributes, WindowFunction* window) {
    static constexpr double kTerms[][3] = {{0.5, -0.5, 0}, {25.0 / 46, -21.0 / 46, 0}, {0.42, -0.5, 0.08}};
    attributes.Require("kind");
    std::copy_n(kTerms[attributes.Choice("kind", {"hann", "hamming", "blackman"}, 0)], 3, window->terms);
    window->periodic = attributes.Bool("periodic", true);
    return Status();
  }
  Status operator()(TensorView out) const {
    if (Status s = Checks().Dense("out", out).Rank("out", out, 1).Take(); !s.ok()) return s;
    return ForType(AnyFloats(), "out", out, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::int64_t size = out.dim(0);
      const auto period = static_cast<double>(std::max<std::int64_t>(1, periodic ? size : size - 1));
      return ParallelFor(size, kGrain / 8, [&](std::int64_t i, std::int64_t end) {
        for (; i < end; ++i) {
          const double angle = 2 * 3.14159265358979323846 * static_cast<double>(i) / period;
          const double value = terms[0] + terms[1] * std::cos(angle) + terms[2] * std::cos(2 * angle);
          out.data<T>()[i] = static_cast<T>(static_cast<Computed<T>>(value));
        }
      });
    });
  }
};

Status ReadMel(TensorView mel_bins, TensorView dft_length, std::int64_t* mels, std::int64_t* length) {
  if (Status s = ReadInt("num_mel_bins", mel_bins, mels); !s.ok()) return s;
  if (Status s = ReadInt("dft_length", dft_length, length); !s.ok()) return s;
  if (*mels >= 0 && *mels < (1 << 24) && *length >= 0 && *length < (1 << 30)) return Status();
  return ValueError(*mels, " mel bins of a transform of length ", *length, " are no matrix");
}

struct MelWeights {
  static constexpr const char* kName = names::kMelWeightMatrix;
  // Triangles over the bins of a transform, evenly spaced on the mel scale: out [dft_length / 2 + 1, mel
  // bins].
  Status operator()(TensorView mel_bins, TensorView dft_length, TensorView sample_rate, TensorView lower,
                    TensorView upper, TensorView out) const {
    std::int64_t mels = 0, length = 0;
    if (Status s = ReadMel(mel_bins, dft_length, &mels, &length); !s.ok()) return s;
    double rate = 0, low = 0, high = 0;
    if (Status s = ReadNumber("sample_rate", sample_rate, &rate); !s.ok()) return s;
    if (Status s = ReadNumber("lower_edge_hertz", lower, &low); !s.ok()) return s;
    if (Status s = ReadNumber("upper_edge_hertz", upper, &high); !s.ok()) return s;
    const std::int64_t expected[] = {Bins(length, true), mels};
    if (Status s = Checks().Dense("out", out).Shape("out", out, ShapeView(expected, 2)).Take(); !s.ok())
      return s;
    if (!(rate > 0 && low >= 0 && high >= low && std::isfinite(rate) && std::isfinite(high))) {
      return ValueError("edges ", low, " and ", high, " at sample rate ", rate,
                        ", expected finite numbers: 0 or more, rising, and a positive rate");
    }
    const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double step = (mel(high) - mel(low)) / static_cast<double>(mels + 2);
    const auto bin = [&](std::int64_t i) {
      const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
      // NaN, of frequencies beyond the scale, is no bin either.
      const double position = std::floor(static_cast<double>(length + 1) * hertz / rate);
      return position >= 0 && position < 0x1p40 ? ToType<std::int64_t>(position) : std::int64_t{1} << 40;
    };
    return ForType(AnyFloats(), "out", out, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      T* to = out.data<T>();
      Pace pace;
      if (!pace.Fill(to, out.size(), T(0))) return Stopped();
      for (std::int64_t m = 0; m < mels && pace.Spend(64); ++m)
        Triangle(bin(m), bin(m + 1), bin(m + 2), expected[0], mels, to + m, pace);
      return pace.status();
    });
  }

 private:
  // One column.
  template <typename T>
  static void Triangle(std::int64_t low, std::int64_t center, std::int64_t high, std::int64_t bins,
                       std::int64_t step, T* column, Pace& pace) {
    const auto share = [](std::int64_t part, std::int64_t whole) {
      return T(static_cast<Computed<T>>(static_cast<double>(part) / static_cast<double>(whole)));
    };
    if (center == low && center < bins) column[center * step] = T(1);
    for (std::int64_t i = low; center > low && i <= std::min(center, bins - 1) && pace.Spend(2); ++i)
      column[i * step] = share(i - low, center - low);
    for (std::int64_t i = center; high > center && i < std::min(high, bins) && pace.Spend(2); ++i)
      column[i * step] = share(high - i, high - center);
  }
};

struct MelWeightsShape {
  static constexpr const char* kName = names::kShapeMelWeightMatrix;
  Status operator()(TensorView mel_bins, TensorView dft_length, TensorView out) const {
    std::int64_t mels = 0, length = 0;
    if (Status s = ReadMel(mel_bins, dft_length, &mels, &length); !s.ok()) return s;
    const std::int64_t shape[] = {length / 2 + 1, mels};
    return WriteShape(Dims(ShapeView(shape, 2)), out);
  }
};

}  // namespace

std::span<const Kernel> SignalKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Dft>(
          "x, dft_length?, axis? -> out", "x, out f32 f64; others any integer",
          "axis = 1 (without the argument), inverse = 0, onesided = 0",
          "the Fourier transform of x [..., 1 or 2] along the axis, cut or filled with 0 to dft_length; "
          "out [..., 2], its first half alone if onesided; inverse and onesided from such a half to out "
          "[..., 1], of dft_length or 2 (bins - 1) numbers"),
      Describe<DftShape>("x, dft_length?, axis? -> out", "x i64 i32; dft_length, axis any integer; out i64",
                         "as rewire.dft",
                         "the shape of rewire.dft's out from x's shape, dft_length and axis themselves"),
      Describe<Stft>(
          "signal, frame_step, window?, frame_length? -> out",
          "signal, window, out f32 f64; others any integer", "onesided = 1",
          "Fourier transforms of frames of signal [N, length, 1 or 2] times the window: out [N, frames, "
          "bins, 2]"),
      Describe<StftShape>("signal, frame_step, window?, frame_length? -> out",
                          "signal, window i64 i32; others any integer; out i64", "onesided = 1",
                          "the shape of rewire.stft's out from the shapes of signal and window, the others "
                          "themselves"),
      Describe<WindowFunction>("-> out", "any float", "kind, hann, hamming or blackman, periodic = 1",
                               "a window as long as out [length]"),
      Describe<MelWeights>("num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz -> out",
                           "out any float; others one number", "",
                           "ONNX MelWeightMatrix: out [dft_length / 2 + 1, num_mel_bins]"),
      Describe<MelWeightsShape>("num_mel_bins, dft_length -> out", "any integer; out i64", "",
                                "the shape of rewire.mel_weight_matrix' out"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
