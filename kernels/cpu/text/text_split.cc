// SPDX-License-Identifier: Apache-2.0
// Strings cut into pieces.
#include <algorithm>
#include <limits>
#include <string>

#include "rewire/kernels/contract/text.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/text/text_list.h"

namespace rewire::kernel::cpu {
namespace {

constexpr std::string_view kSpaces = " \t\n\v\f\r";

struct SplitAttributes {
  std::string delimiter;  // empty: spaces
  std::int64_t most_cuts = 0;

  static Status Read(Attributes& attributes, SplitAttributes* split) {
    split->delimiter = attributes.String("delimiter", "");
    const std::int64_t most = attributes.Int("maxsplit", -1);
    split->most_cuts = most < 0 ? std::numeric_limits<std::int64_t>::max() : most;
    return Status();
  }

  // Calls body(piece) for each piece until it fails.
  template <typename Body>
  Status ForPieces(std::string_view text, Pace& pace, const Body& body) const {
    const bool by_spaces = delimiter.empty();
    if (by_spaces) text = From(text, text.find_first_not_of(kSpaces));
    if (by_spaces && text.empty()) return Status();
    for (std::int64_t cuts = 0;; ++cuts) {
      const std::size_t end = cuts == most_cuts ? std::string_view::npos
                              : by_spaces       ? text.find_first_of(kSpaces)
                                                : FindDelimiter(text, pace);
      if (!pace.Spend(4)) return Stopped();
      if (Status s = body(text.substr(0, end)); !s.ok() || end == std::string_view::npos) return s;
      text =
          by_spaces ? From(text, text.find_first_not_of(kSpaces, end)) : text.substr(end + delimiter.size());
      if (by_spaces && text.empty()) return Status();
    }
  }

  // Writes the pieces of each string, and empty ones up to `width`.
  template <typename Emit>
  Status Cut(const Texts& texts, std::int64_t width, Emit emit) const {
    return EmitTexts(emit, [&](Emit& to, Pace& pace) {
      return texts.ForEach(pace, [&](std::int64_t /*i*/, std::string_view text) -> Status {
        std::int64_t pieces = 0;
        Status cut = ForPieces(text, pace, [&](std::string_view piece) -> Status {
          if (++pieces > width) return ValueError("a string has more than ", width, " pieces");
          if (!to.sink.Append(pace, piece)) return Stopped();
          to.End();
          return Status();
        });
        if (!cut.ok()) return cut;
        for (; pieces < width; ++pieces) {
          if (!pace.Spend(1)) return Stopped();
          to.End();
        }
        return Status();
      });
    });
  }

 private:
  static std::string_view From(std::string_view text, std::size_t begin) {
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
  }
  // A part after the other, so that long texts are searched at the host's pace.
  std::size_t FindDelimiter(std::string_view text, Pace& pace) const {
    constexpr std::size_t kPart = 8 * kPace;
    for (std::size_t begin = 0;; begin += kPart) {
      const std::size_t at = text.substr(begin, kPart + delimiter.size() - 1).find(delimiter);
      if (at != std::string_view::npos) return begin + at;
      if (text.size() - begin <= kPart || !pace.Spend(kPace)) return std::string_view::npos;
    }
  }
};

struct SplitTextCounts {
  static constexpr const char* kName = names::kTextSplitCounts;
  SplitAttributes attributes;
  static Status Make(Attributes& given, SplitTextCounts* kernel) {
    return SplitAttributes::Read(given, &kernel->attributes);
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    Pace pace;
    return texts.ForEach(pace, [&](std::int64_t i, std::string_view text) {
      std::int64_t pieces = 0;
      Status counted = attributes.ForPieces(text, pace, [&](std::string_view) {
        ++pieces;
        return Status();
      });
      out.data<std::int64_t>()[i] = pieces;
      return counted;
    });
  }
};

struct SplitTextOffsets {
  static constexpr const char* kName = names::kTextSplitOffsets;
  SplitAttributes attributes;
  static Status Make(Attributes& given, SplitTextOffsets* kernel) {
    return SplitAttributes::Read(given, &kernel->attributes);
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView width,
                    TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    if (Status s = CheckDense("width", width); !s.ok()) return s;
    if (!width.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "width", width);
    if (width.size() != 1) return ValueError("width has shape ", width.dims(), ", expected one element");
    const std::int64_t pieces = width.data<std::int64_t>()[0];
    if (pieces < 0) return ValueError("width is ", pieces, ", expected at least 0");
    return attributes.Cut(texts, pieces, TextOffsets(out, Times(texts.size(), pieces)));
  }
};

struct SplitTexts {
  static constexpr const char* kName = names::kTextSplit;
  SplitAttributes attributes;
  static Status Make(Attributes& given, SplitTexts* kernel) {
    return SplitAttributes::Read(given, &kernel->attributes);
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    return EmitTexts(TextBytes(out), [&](TextBytes& to, Pace& pace) {
      return texts.ForEach(pace, [&](std::int64_t /*i*/, std::string_view text) {
        return attributes.ForPieces(text, pace, [&](std::string_view piece) {
          return to.sink.Append(pace, piece) ? Status() : Stopped();
        });
      });
    });
  }
};

}  // namespace

std::span<const Kernel> TextSplitKernels() {
  static constexpr const char kAttributes[] = "delimiter = spaces, maxsplit = -1";
  static constexpr Kernel kKernels[] = {
      Describe<SplitTextCounts>("x, offsets, bytes -> out", "x, offsets, out i64; bytes u8", kAttributes,
                                "how many pieces rewire.text.split makes of each string"),
      Describe<SplitTextOffsets>(
          "x, offsets, bytes, width -> out", "x, offsets, width, out i64; bytes u8", kAttributes,
          "the offsets of rewire.text.split, with empty strings behind the pieces of each string up to the "
          "width, one number: out [elements of x * width + 1]"),
      Describe<SplitTexts>("x, offsets, bytes -> out", "x, offsets i64; bytes, out u8", kAttributes,
                           "the pieces of each string, one behind the other: cut at each delimiter, or at "
                           "runs of ASCII spaces without those at both ends; at most maxsplit times, if that "
                           "is not negative"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
