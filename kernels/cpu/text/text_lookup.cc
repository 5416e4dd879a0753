// SPDX-License-Identifier: Apache-2.0
// These kernels take strings as values: compared, looked up, read as numbers.
#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "rewire/kernels/contract/text.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/paced_sort.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/text/text_list.h"

namespace rewire::kernel::cpu {
namespace {

bool IsWellFormed(std::string_view text, Pace& pace) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t taken = *at < 0x80 ? 1 : utf8proc_iterate(at, left, &code);
    if (taken < 1 || !pace.Spend(1)) return false;
    at += taken;
    left -= taken;
  }
  return true;
}

struct CheckTexts {
  static constexpr const char* kName = names::kTextCheck;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    const TextList& list = texts.list();
    if (list.offsets()[0] != 0 || list.offsets()[list.count()] != list.length()) {
      return ValueError("offsets begin at ", list.offsets()[0], " and end at ", list.offsets()[list.count()],
                        ", expected 0 and ", list.length(), ", the size of bytes");
    }
    Pace pace;
    for (std::int64_t i = 0; i < list.count(); ++i) {
      std::string_view text;
      if (Status s = list.At(i, &text); !s.ok()) return s;
      const bool is_text = pace.Spend(4) && IsWellFormed(text, pace);
      if (pace.stopped()) return Stopped();
      if (!is_text) return ValueError("string ", i, " is not UTF-8");
    }
    for (std::int64_t i = 0; i < texts.size(); ++i) {
      std::string_view text;
      if (!pace.Spend(1)) return Stopped();
      const std::int64_t position = x.data<std::int64_t>()[i];
      if (Status s = list.At(position, &text); !s.ok()) return s;
      out.data<std::int64_t>()[i] = position;
    }
    return Status();
  }
};

struct EqualTexts {
  static constexpr const char* kName = names::kTextEqual;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView y, TensorView y_offsets,
                    TensorView y_bytes, TensorView out) const {
    Texts a, b;
    if (Status s = a.Open("x", x, offsets, bytes); !s.ok()) return s;
    if (Status s = b.Open("y", y, y_offsets, y_bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).Shape("y", y, x.dims()).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!out.Is<bool>()) return WrongDType(Bools(), "out", out);
    Pace pace;
    return a.ForEach(pace, [&](std::int64_t i, std::string_view text) -> Status {
      std::string_view other;
      if (Status s = b.At(i, &other); !s.ok()) return s;
      out.data<std::uint8_t>()[i] = text == other ? 1 : 0;
      return Status();
    });
  }
};

struct FindTexts {
  static constexpr const char* kName = names::kTextFind;
  bool sorted = true;
  static Status Make(Attributes& attributes, FindTexts* find) {
    find->sorted = attributes.Bool("sorted", true);
    return Status();
  }
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView key_offsets,
                    TensorView key_bytes, TensorView out) const {
    Texts texts;
    TextList keys;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    if (Status s = keys.Open("key_offsets", key_offsets, key_bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    Pace pace;
    return texts.ForEach(pace, [&](std::int64_t i, std::string_view text) {
      return Find(text, keys, pace, out.data<std::int64_t>() + i);
    });
  }

 private:
  // In halves of the list, or from its end.
  Status Find(std::string_view text, const TextList& keys, Pace& pace, std::int64_t* found) const {
    std::int64_t low = 0, high = keys.count();
    *found = -1;
    while (low < high) {
      const std::int64_t at = sorted ? low + (high - low) / 2 : high - 1;
      std::string_view key;
      if (Status s = keys.At(at, &key); !s.ok()) return s;
      // The common beginning of two strings is at most as long as the shorter one.
      if (!pace.Spend(4 + static_cast<std::int64_t>(std::min(text.size(), key.size()) / 8))) return Stopped();
      const int order = text.compare(key);
      if (order == 0) {
        *found = at;
        return Status();
      }
      if (!sorted || order < 0)
        high = at;
      else
        low = at + 1;
    }
    return Status();
  }
};

// The order of bytes, which is that of code points. A long comparison asks whether to go on; told to stop, it
// answers anything.
int CompareTexts(std::string_view a, std::string_view b, bool asks, Pace& pace) {
  constexpr std::size_t kPart = 8192;
  if (!asks) return a.compare(b);
  while (a.size() > kPart && b.size() > kPart) {
    const int order = a.substr(0, kPart).compare(b.substr(0, kPart));
    if (order != 0 || !pace.Spend(kPart / 8)) return order;
    a.remove_prefix(kPart);
    b.remove_prefix(kPart);
  }
  return a.substr(0, kPart + 1).compare(b.substr(0, kPart + 1));
}

struct RankTexts {
  static constexpr const char* kName = names::kTextRank;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).SameDType("out", out, "x", x).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    Pace pace;
    std::size_t longest = 0;
    Status checked = texts.ForEach(pace, [&](std::int64_t, std::string_view text) {
      longest = std::max(longest, text.size());
      return Status();
    });
    if (!checked.ok()) return checked;
    std::int64_t* order = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, texts.size()), &order); !s.ok()) return s;
    return Rank(texts, static_cast<std::int64_t>(longest), pace, order, out.data<std::int64_t>());
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const DLTensor* x = sizes.Tensor(0);
    if (x == nullptr) return false;
    sizes.Take(std::max<std::int64_t>(1, SizeOf(x)), sizeof(std::int64_t));
    return true;
  }

 private:
  // Rank takes strings that were checked, of at most `longest` bytes.
  static Status Rank(const Texts& texts, std::int64_t longest, Pace& pace, std::int64_t* order,
                     std::int64_t* ranks) {
    const std::int64_t work = 4 + longest / 8;
    const bool asks = ComparisonMayAsk(work);
    const auto compare = [&](std::int64_t a, std::int64_t b) {
      std::string_view x, y;
      if (!texts.At(a, &x).ok() || !texts.At(b, &y).ok()) return 0;
      return CompareTexts(x, y, asks, pace);
    };
    const bool counted = pace.For(texts.size(), 1, [=](std::int64_t i, std::int64_t end) {
      for (; i < end; ++i) order[i] = i;
    });
    const auto is_before = [&](std::int64_t a, std::int64_t b) {
      const int compared = compare(a, b);
      return compared != 0 ? compared < 0 : a < b;
    };
    if (!counted || !PacedSort(is_before, work, pace).Sort(order, order + texts.size())) return Stopped();
    std::int64_t rank = 0;
    for (std::int64_t i = 0; i < texts.size(); ++i) {
      if (!pace.Spend(work)) return Stopped();
      if (i > 0 && compare(order[i - 1], order[i]) != 0) ++rank;
      ranks[order[i]] = rank;
    }
    return pace.status();
  }
};

// Numbers in decimal, at the beginning of a text behind spaces, as C reads them.
std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}
bool TakeSign(std::string_view* text) {
  const bool is_signed = !text->empty() && (text->front() == '-' || text->front() == '+');
  const bool minus = is_signed && text->front() == '-';
  if (is_signed) text->remove_prefix(1);
  return minus;
}

bool ReadTextNumber(std::string_view text, double* number) {
  text = WithoutSpaces(text);
  const bool minus = TakeSign(&text);
  if (text.empty() || text.front() == '-') return false;
  std::chars_format format = std::chars_format::general;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
      std::strchr("0123456789abcdefABCDEF.", text[2]) != nullptr) {
    text.remove_prefix(2);
    format = std::chars_format::hex;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, format);
  if (minus) *number = -*number;
  return error == std::errc();
}

// A minus counts modulo 2^64, if the type has no sign.
template <typename I>
bool ReadTextNumber(std::string_view text, I* number) {
  text = WithoutSpaces(text);
  const bool minus = TakeSign(&text);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), magnitude);
  if (error != std::errc()) return false;
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 63;
  if (std::is_signed_v<I> && magnitude > (minus ? kLeast : kLeast - 1)) return false;
  *number = static_cast<I>(minus ? 0 - magnitude : magnitude);
  return true;
}

struct TextsToNumbers {
  static constexpr const char* kName = names::kTextToNumber;
  Status operator()(TensorView x, TensorView offsets, TensorView bytes, TensorView out) const {
    Texts texts;
    if (Status s = texts.Open("x", x, offsets, bytes); !s.ok()) return s;
    Checks checks;
    checks.Dense("out", out).Shape("out", out, x.dims());
    if (Status s = checks.Take(); !s.ok()) return s;
    using Read = Types<float, double, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint64_t,
                       std::uint32_t, std::uint16_t, std::uint8_t, bool>;
    return ForType(Read(), "out", out, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      using Number = std::conditional_t<std::is_floating_point_v<T>, double,
                                        std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
      Pace pace;
      return texts.ForEach(pace, [&](std::int64_t i, std::string_view text) -> Status {
        Number number{};
        if (!ReadTextNumber(text, &number)) {
          return ValueError("string ", x.data<std::int64_t>()[i], " is no number that ",
                            std::is_floating_point_v<T> ? "f64"
                            : std::is_signed_v<T>       ? "i64"
                                                        : "u64",
                            " can hold");
        }
        if constexpr (std::is_same_v<T, bool>)
          out.data<std::uint8_t>()[i] = number != 0 ? 1 : 0;
        else
          out.data<T>()[i] = static_cast<T>(number);
        return Status();
      });
    });
  }
};

}  // namespace

std::span<const Kernel> TextLookupKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<CheckTexts>("x, offsets, bytes -> out", "x, offsets, out i64; bytes u8", "",
                           "x, after checks that the list is one: offsets from 0 to the size of bytes that "
                           "never fall, strings in UTF-8, and positions inside the list"),
      Describe<EqualTexts>("x, offsets, bytes, y, y_offsets, y_bytes -> out",
                           "x, y, offsets, y_offsets i64; bytes, y_bytes u8; out bool", "",
                           "x == y, byte for byte; of the same shape"),
      Describe<FindTexts>("x, offsets, bytes, key_offsets, key_bytes -> out",
                          "x, offsets, key_offsets, out i64; bytes, key_bytes u8", "sorted = 1",
                          "where each string of x is in the list of keys, or -1. Sorted keys rise in the "
                          "order of their bytes; if they do not, it is not said which are found. Of others "
                          "it is the last place, by a search through all of them"),
      Describe<RankTexts>("x, offsets, bytes -> out", "x, offsets, out i64; bytes u8", "",
                          "how many different strings of x stand before each in the order of their bytes"),
      Describe<TextsToNumbers>(
          "x, offsets, bytes -> out",
          "x, offsets i64; bytes u8; out f32 f64 i64 i32 i16 i8 u64 u32 u16 u8 bool", "",
          "the number at the beginning of each string, behind spaces, by the rules of C whatever the locale; "
          "an error if there is none, or none that f64, i64 or, without a sign, u64 can hold. Smaller "
          "integers wrap"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
