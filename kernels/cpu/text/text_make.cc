// SPDX-License-Identifier: Apache-2.0
// Kernels that make new strings. Each comes as two: the first one says where the strings lie, and the second
// one, whose output is as long as that, writes them.
#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include "rewire/kernels/contract/text.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/text/text_list.h"

namespace rewire::kernel::cpu {
namespace {

template <typename Emit>
Status Concatenate(TensorView x, TensorView offsets, TensorView bytes, TensorView y, TensorView y_offsets,
                   TensorView y_bytes, Emit emit) {
  Texts a, b;
  if (Status s = a.Open("x", x, offsets, bytes); !s.ok()) return s;
  if (Status s = b.Open("y", y, y_offsets, y_bytes); !s.ok()) return s;
  if (Status s = CheckShape("y", y, x.dims()); !s.ok()) return s;
  return EmitTexts(emit, [&](Emit& to, Pace& pace) {
    return a.ForEach(pace, [&](std::int64_t i, std::string_view text) -> Status {
      std::string_view end;
      if (Status s = b.At(i, &end); !s.ok()) return s;
      if (!to.sink.Append(pace, text) || !to.sink.Append(pace, end)) return Stopped();
      to.End();
      return Status();
    });
  });
}

struct ConcatTextOffsets {
  static constexpr const char* kName = names::kTextConcatOffsets;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView y, TensorView y_offsets,
                    TensorView y_bytes, TensorView out) const {
    return Concatenate(x, offsets, bytes, y, y_offsets, y_bytes, TextOffsets(out, x.size()));
  }
};

struct ConcatTexts {
  static constexpr const char* kName = names::kTextConcat;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView y, TensorView y_offsets,
                    TensorView y_bytes, TensorView out) const {
    return Concatenate(x, offsets, bytes, y, y_offsets, y_bytes, TextBytes(out));
  }
};

struct CaseAttributes {
  bool upper = false;

  static Status Read(Attributes& attributes, CaseAttributes* change) {
    attributes.Require("action");
    change->upper = attributes.Choice("action", {"LOWER", "UPPER"}, 0) == 1;
    return Status();
  }

  // By Unicode's simple mappings, in which the small sharp s has no capital one.
  utf8proc_int32_t Changed(utf8proc_int32_t code) const {
    constexpr utf8proc_int32_t kSharpS = 0xDF;
    if (!upper) return utf8proc_tolower(code);
    return code == kSharpS ? code : utf8proc_toupper(code);
  }

  template <typename Emit>
  Status Change(TensorView x, TensorView offsets, TensorView bytes, Emit emit) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    return EmitTexts(emit, [&](Emit& to, Pace& pace) {
      return texts.ForEach(pace, [&](std::int64_t i, std::string_view text) -> Status {
        const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
        auto left = static_cast<utf8proc_ssize_t>(text.size());
        while (left > 0) {
          utf8proc_int32_t code = *at;
          const utf8proc_ssize_t taken = *at < 0x80 ? 1 : utf8proc_iterate(at, left, &code);
          if (taken < 1) return ValueError("string ", x.data<std::int64_t>()[i], " is not UTF-8");
          utf8proc_uint8_t changed[4];
          const utf8proc_ssize_t size = utf8proc_encode_char(Changed(code), changed);
          const std::string_view piece(reinterpret_cast<const char*>(changed),
                                       static_cast<std::size_t>(size));
          if (!pace.Spend(8) || !to.sink.Append(pace, piece)) return Stopped();
          at += taken;
          left -= taken;
        }
        to.End();
        return Status();
      });
    });
  }
};

struct CaseTextOffsets {
  static constexpr const char* kName = names::kTextChangeCaseOffsets;
  CaseAttributes attributes;
  static Status Make(Attributes& given, CaseTextOffsets* kernel) {
    return CaseAttributes::Read(given, &kernel->attributes);
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    return attributes.Change(x, offsets, bytes, TextOffsets(out, x.size()));
  }
};

struct CaseTexts {
  static constexpr const char* kName = names::kTextChangeCase;
  CaseAttributes attributes;
  static Status Make(Attributes& given, CaseTexts* kernel) {
    return CaseAttributes::Read(given, &kernel->attributes);
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    return attributes.Change(x, offsets, bytes, TextBytes(out));
  }
};

// As ONNX Runtime prints numbers: f32 with 8 digits, f64 with 17.
template <typename T>
std::string_view NumberText(T number, char (&text)[32]) {
  if constexpr (std::is_same_v<T, bool>) {
    return number ? "1" : "0";
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
    const int digits = sizeof(T) == 4 ? 8 : 17;
    const auto [end, error] =
        std::to_chars(text, text + sizeof(text), number, std::chars_format::general, digits);
    return {text, static_cast<std::size_t>(end - text)};
  } else {
    const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
    return {text, static_cast<std::size_t>(end - text)};
  }
}

template <typename Emit>
Status PrintNumbers(TensorView x, Emit emit) {
  if (Status s = CheckDense("x", x); !s.ok()) return s;
  using Printed = Types<float, double, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint64_t,
                        std::uint32_t, std::uint16_t, std::uint8_t, bool>;
  return ForType(Printed(), "x", x, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return EmitTexts(emit, [&](Emit& to, Pace& pace) -> Status {
      const std::int64_t count = x.size();
      for (std::int64_t i = 0; i < count; ++i) {
        char text[32];
        T number{};
        if constexpr (std::is_same_v<T, bool>)
          number = x.data<std::uint8_t>()[i] != 0;
        else
          number = x.data<T>()[i];
        if (!pace.Spend(64) || !to.sink.Append(pace, NumberText(number, text))) return Stopped();
        to.End();
      }
      return Status();
    });
  });
}

struct NumberTextOffsets {
  static constexpr const char* kName = names::kTextFromNumberOffsets;
  Status operator()(TensorView x, TensorView out) const {
    return PrintNumbers(x, TextOffsets(out, x.size()));
  }
};

struct NumberTexts {
  static constexpr const char* kName = names::kTextFromNumber;
  Status operator()(TensorView x, TensorView out) const { return PrintNumbers(x, TextBytes(out)); }
};

}  // namespace

std::span<const Kernel> TextMakeKernels() {
  static constexpr const char kTwo[] = "x, y, offsets, y_offsets, out i64; bytes, y_bytes u8";
  static constexpr const char kTwoBytes[] = "x, y, offsets, y_offsets i64; bytes, y_bytes, out u8";
  static constexpr const char kOne[] = "x, offsets, out i64; bytes u8";
  static constexpr const char kOneBytes[] = "x, offsets i64; bytes, out u8";
  static constexpr Kernel kKernels[] = {
      Describe<ConcatTextOffsets>("x, offsets, bytes, y, y_offsets, y_bytes -> out", kTwo, "",
                                  "the offsets of rewire.text.concat: out [elements of x + 1]"),
      Describe<ConcatTexts>("x, offsets, bytes, y, y_offsets, y_bytes -> out", kTwoBytes, "",
                            "each string of x with that of y behind it; of the same shape"),
      Describe<CaseTextOffsets>("x, offsets, bytes -> out", kOne, "action, LOWER or UPPER",
                                "the offsets of rewire.text.change_case: out [elements of x + 1]"),
      Describe<CaseTexts>("x, offsets, bytes -> out", kOneBytes, "action, LOWER or UPPER",
                          "each string of x in lower or upper case, code point by code point, by Unicode's "
                          "simple mappings"),
      Describe<NumberTextOffsets>("x -> out", "x f32 f64 i64 i32 i16 i8 u64 u32 u16 u8 bool; out i64", "",
                                  "the offsets of rewire.text.from_number: out [elements of x + 1]"),
      Describe<NumberTexts>("x -> out", "x f32 f64 i64 i32 i16 i8 u64 u32 u16 u8 bool; out u8", "",
                            "each number as text: f32 with at most 8 digits, f64 with 17, NaN, INF and -INF; "
                            "a bool is 1 or 0"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
