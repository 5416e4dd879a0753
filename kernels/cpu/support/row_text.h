// SPDX-License-Identifier: Apache-2.0
// Reads the text of a kernel's row while compiling. A mistake in a row is an error of the compiler's.
//
//   arguments   "x, w, bias? -> out, out_indices?"
//               read ones, an arrow, written ones. `?` marks an optional one, `...` any number of tensors,
//               `[]` as many as the attribute of that name has elements. Without an arrow the kernel returns
//               its result. A written one says in whose memory it may lie:
//               "a, b -> out over a|b"      it may be the memory of a, of b, or of both
//               "x... -> out around x"      an input may be a part of it
//               "x -> out... within x"      it may be a part of x
//   dtypes      "x, scale f32; zero, out u8 i8; others i64"
//               groups of arguments, each with its dtypes. The arguments of a group have the same dtype in a
//               call. A group without names is all that no other group names; `others` are those too, each
//               with a dtype of its own. "any" moves elements without looking at them; "any number", "any
//               float", "any integer", "narrow" (at most 8 bits, not i8 and u8) and "all" are sets; "one
//               number" is a tensor of one element. What stands in parentheses is a remark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "rewire/vm/kernel/packed.h"
#include "rewire/vm/kernel/row.h"

namespace rewire::kernel::cpu {

struct RowArguments {
  static constexpr std::uint32_t kMost = 12;
  RewireKernelArgument list[kMost] = {};
  std::uint32_t count = 0;
};

namespace row_text {

// Not a constant expression: if a row reaches it, the compiler stops with an error that shows the row.
void ThisRowIsWrong(const char* what);

constexpr std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Removes the text before the separator from *rest and returns it.
constexpr std::string_view Take(std::string_view* rest, std::string_view separator) {
  const std::size_t at = rest->find(separator);
  const std::string_view taken = rest->substr(0, at);
  *rest = at == std::string_view::npos ? std::string_view() : rest->substr(at + separator.size());
  return Trimmed(taken);
}

constexpr bool TakeEnd(std::string_view* text, std::string_view end) {
  if (text->size() < end.size() || text->substr(text->size() - end.size()) != end) return false;
  text->remove_suffix(end.size());
  return true;
}

constexpr std::string_view NameOf(const RewireKernelArgument& argument) {
  return {argument.name, argument.name_bytes};
}

constexpr std::int32_t Find(const RowArguments& row, std::string_view name) {
  for (std::uint32_t i = 0; i < row.count; ++i) {
    if (NameOf(row.list[i]) == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

constexpr RewireKernelArgument* Add(RowArguments* row, std::string_view name, std::uint8_t flags) {
  if (TakeEnd(&name, "?")) flags |= REWIRE_ARGUMENT_OPTIONAL;
  if (TakeEnd(&name, "...")) flags |= REWIRE_ARGUMENT_LIST;
  if (TakeEnd(&name, "[]")) flags |= REWIRE_ARGUMENT_LIST | REWIRE_ARGUMENT_COUNTED;
  if (name.empty() || name.size() > 255) ThisRowIsWrong("an argument has no name");
  for (const char c : name) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_') ThisRowIsWrong("a name is a_to_z0_9");
  }
  if (Find(*row, name) >= 0) ThisRowIsWrong("two arguments have the same name");
  if (row->count == RowArguments::kMost) ThisRowIsWrong("there are too many arguments");
  RewireKernelArgument* argument = &row->list[row->count++];
  argument->name = name.data();
  argument->name_bytes = static_cast<std::uint8_t>(name.size());
  argument->flags = flags;
  return argument;
}

// "out over a|b"
constexpr void AddWritten(RowArguments* row, std::string_view text) {
  std::string_view rest = text;
  const std::string_view name = Take(&rest, " ");
  RewireKernelArgument* argument = Add(row, name, REWIRE_ARGUMENT_WRITTEN);
  if (rest.empty()) return;
  const std::string_view how = Take(&rest, " ");
  if (how == "around") {
    argument->flags |= REWIRE_ARGUMENT_AROUND;
  } else if (how == "within") {
    argument->flags |= REWIRE_ARGUMENT_WITHIN;
  } else if (how != "over") {
    ThisRowIsWrong("a written argument lies over, around or within others");
  }
  while (!rest.empty()) {
    const std::int32_t at = Find(*row, Take(&rest, "|"));
    if (at < 0 || (row->list[at].flags & REWIRE_ARGUMENT_WRITTEN) != 0) {
      ThisRowIsWrong("a written argument lies over one that is not read");
    } else {
      argument->over = static_cast<std::uint16_t>(argument->over | 1u << at);
    }
  }
  if (argument->over == 0) ThisRowIsWrong("a written argument lies over nothing");
}

constexpr RowArguments ParseArguments(std::string_view text) {
  RowArguments row;
  const bool writes = text.find("->") != std::string_view::npos;
  std::string_view written = text;
  std::string_view read = Take(&written, "->");
  while (!read.empty()) Add(&row, Take(&read, ","), 0);
  if (writes && Trimmed(written).empty()) ThisRowIsWrong("nothing stands behind the arrow");
  while (!written.empty()) AddWritten(&row, Take(&written, ","));
  std::int32_t lists[2] = {0, 0};
  for (std::uint32_t i = 0; i < row.count; ++i) {
    if ((row.list[i].flags & REWIRE_ARGUMENT_LIST) != 0) ++lists[row.list[i].flags & REWIRE_ARGUMENT_WRITTEN];
  }
  if (lists[0] > 1 || lists[1] > 1) ThisRowIsWrong("there are two lists");
  return row;
}

inline constexpr std::uint32_t kFloats =
    REWIRE_DTYPE_F32 | REWIRE_DTYPE_F64 | REWIRE_DTYPE_F16 | REWIRE_DTYPE_BF16;
inline constexpr std::uint32_t kIntegers = REWIRE_DTYPE_I8 | REWIRE_DTYPE_I16 | REWIRE_DTYPE_I32 |
                                           REWIRE_DTYPE_I64 | REWIRE_DTYPE_U8 | REWIRE_DTYPE_U16 |
                                           REWIRE_DTYPE_U32 | REWIRE_DTYPE_U64;
inline constexpr std::uint32_t kAll = kFloats | kIntegers | REWIRE_DTYPE_BOOL;

constexpr std::uint32_t DTypeBit(std::string_view word) {
  // In the order of the bits.
  constexpr std::string_view kNames[] = {"f32", "f64", "f16", "bf16", "i8",  "i16", "i32",
                                         "i64", "u8",  "u16", "u32",  "u64", "bool"};
  for (std::size_t i = 0; i < sizeof(kNames) / sizeof(kNames[0]); ++i) {
    if (kNames[i] == word) return 1u << i;
  }
  ThisRowIsWrong("there is no such dtype, argument or set of dtypes");
  return 0;
}

struct DTypes {
  std::uint32_t set = 0;
  std::uint8_t flags = 0;  // of the arguments
};

constexpr DTypes ParseKinds(std::string_view text) {
  if (text == "any") return {kAll | REWIRE_DTYPE_OTHER_8 | REWIRE_DTYPE_OTHER_16, 0};
  if (text == "any of at most 8 bytes") return {kAll | REWIRE_DTYPE_OTHER_8, 0};
  if (text == "one number") return {kFloats | kIntegers, REWIRE_ARGUMENT_ONE_ELEMENT};
  if (text == "all") return {kAll, 0};
  DTypes dtypes;
  while (!text.empty()) {
    std::string_view word = Take(&text, " ");
    TakeEnd(&word, ",");
    if (word != "any") {
      dtypes.set |= word == "narrow" ? REWIRE_DTYPE_NARROW : DTypeBit(word);
      continue;
    }
    word = Take(&text, " ");
    TakeEnd(&word, ",");
    if (word == "number") {
      dtypes.set |= kFloats | kIntegers;
    } else if (word == "float") {
      dtypes.set |= kFloats;
    } else if (word == "integer") {
      dtypes.set |= kIntegers;
    } else {
      ThisRowIsWrong("there is any number, any float and any integer");
    }
  }
  return dtypes;
}

constexpr void SetDTypes(RewireKernelArgument* argument, const DTypes& dtypes, std::uint8_t group) {
  if (argument->dtypes != 0) ThisRowIsWrong("an argument is in two groups of dtypes");
  argument->dtypes = dtypes.set;
  argument->flags |= dtypes.flags;
  argument->dtype_group = group;
}

// Parses "x, out any float": the named arguments get the dtypes. A group without names is skipped, except in
// the second round, which has `rest` set.
constexpr void ParseGroup(std::string_view text, std::uint8_t group, bool rest, RowArguments* row) {
  text = Trimmed(text.substr(0, text.find('(')));
  std::uint32_t named = 0;
  bool others = false;
  for (;;) {
    std::string_view behind = text;
    std::string_view word = Take(&behind, " ");
    const bool more = TakeEnd(&word, ",");
    const std::int32_t at = Find(*row, word);
    if (at < 0 && word != "others") break;
    if (at >= 0) named |= 1u << at;
    others = others || at < 0;
    text = behind;
    if (!more) break;
  }
  if ((named == 0) != rest) return;
  const DTypes dtypes = ParseKinds(Trimmed(text));
  if (dtypes.set == 0) ThisRowIsWrong("a group has no dtypes");
  for (std::uint32_t i = 0; i < row->count; ++i) {
    if (rest ? row->list[i].dtypes == 0 : (named >> i & 1) != 0) {
      SetDTypes(&row->list[i], dtypes, others ? std::uint8_t{0} : group);
    }
  }
}

constexpr void ParseDTypes(std::string_view text, RowArguments* row) {
  for (const bool rest : {false, true}) {
    std::string_view groups = text;
    for (std::uint8_t group = 1; !groups.empty(); ++group) ParseGroup(Take(&groups, ";"), group, rest, row);
  }
}

// Checks a row's arguments against the parameters of the function.
template <typename P>
struct ParameterKind;
template <typename T>
struct ParameterKind<internal::Parameter<T>> {
  static constexpr bool kIsArgument = !std::is_same_v<T, RewireFFIAny*>;
  static constexpr bool kIsOptional = internal::kIsOptional<T>;
  static constexpr bool kIsList = std::is_same_v<T, TensorList>;
};

template <typename... Ps>
constexpr void CheckParameters(const RowArguments& row, const std::tuple<Ps...>*) {
  constexpr std::uint32_t kParameters = (0 + ... + std::uint32_t{ParameterKind<Ps>::kIsArgument});
  std::uint32_t at = 0;
  const auto check = [&](bool is_argument, bool is_optional, bool is_list) {
    if (!is_argument) return;
    bool list = false;
    // A TensorList may hold several arguments of the row.
    for (std::uint32_t count = is_list ? row.count + 1 - kParameters : 1; count > 0; --count, ++at) {
      if (at >= row.count) return ThisRowIsWrong("the function has more parameters");
      const std::uint8_t flags = row.list[at].flags;
      list = list || (flags & REWIRE_ARGUMENT_LIST) != 0;
      if (((flags & REWIRE_ARGUMENT_OPTIONAL) != 0) != is_optional)
        ThisRowIsWrong("optional here, not there");
    }
    if (list != is_list) ThisRowIsWrong("a list here, none there");
  };
  (check(ParameterKind<Ps>::kIsArgument, ParameterKind<Ps>::kIsOptional, ParameterKind<Ps>::kIsList), ...);
  if (at != row.count) ThisRowIsWrong("the function has fewer parameters");
}

}  // namespace row_text

// The arguments of a row for the kernel class K.
template <typename K>
constexpr RowArguments ParseRow(std::string_view arguments, std::string_view dtypes) {
  RowArguments row = row_text::ParseArguments(arguments);
  row_text::ParseDTypes(dtypes, &row);
  using Parameters = typename internal::Signature<K>::Parameters;
  row_text::CheckParameters(row, static_cast<const Parameters*>(nullptr));
  return row;
}

}  // namespace rewire::kernel::cpu
