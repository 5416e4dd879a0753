// SPDX-License-Identifier: Apache-2.0
// The text of a kernel's row, and the calls that a row describes.
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "rewire/kernels/cpu/support/row_text.h"
#include "rewire/vm/link/kernel_calls.h"

// A row that stops the compiler in a library stops the test.
void rewire::kernel::cpu::row_text::ThisRowIsWrong(const char* what) { throw std::runtime_error(what); }

namespace rewire::test {
namespace {

using kernel::cpu::RowArguments;

constexpr RowArguments Parsed(std::string_view arguments, std::string_view dtypes) {
  RowArguments row = kernel::cpu::row_text::ParseArguments(arguments);
  kernel::cpu::row_text::ParseDTypes(dtypes, &row);
  return row;
}

TEST_CASE("a row's text says what is read, written, optional, a list, and in whose memory") {
  constexpr RowArguments kRow =
      Parsed("x, w?, r... -> out over x|r, more?", "x, out f32 f64; others any integer");
  static_assert(kRow.count == 5);
  CHECK(std::string_view(kRow.list[1].name, kRow.list[1].name_bytes) == "w");
  CHECK(kRow.list[0].flags == 0);
  CHECK(kRow.list[1].flags == REWIRE_ARGUMENT_OPTIONAL);
  CHECK(kRow.list[2].flags == REWIRE_ARGUMENT_LIST);
  CHECK(kRow.list[3].flags == REWIRE_ARGUMENT_WRITTEN);
  CHECK(kRow.list[3].over == 0b101);
  CHECK(kRow.list[4].flags == (REWIRE_ARGUMENT_WRITTEN | REWIRE_ARGUMENT_OPTIONAL));
  CHECK(kRow.list[0].dtypes == (REWIRE_DTYPE_F32 | REWIRE_DTYPE_F64));
  CHECK(kRow.list[0].dtype_group == kRow.list[3].dtype_group);
  CHECK((kRow.list[1].dtypes & REWIRE_DTYPE_U16) != 0);
  CHECK((kRow.list[1].dtypes & REWIRE_DTYPE_BOOL) == 0);
  CHECK(kRow.list[1].dtype_group == 0);

  constexpr RowArguments kNumbers = Parsed("r, t, x -> out", "f32; r, t one number (a remark)");
  CHECK(kNumbers.list[0].flags == REWIRE_ARGUMENT_ONE_ELEMENT);
  CHECK(kNumbers.list[2].dtypes == REWIRE_DTYPE_F32);
  CHECK(kNumbers.list[2].dtype_group == kNumbers.list[3].dtype_group);
  constexpr RowArguments kMixed = Parsed("x -> out", "any float, i64 i8");
  CHECK(kMixed.list[1].dtypes == (REWIRE_DTYPE_F32 | REWIRE_DTYPE_F64 | REWIRE_DTYPE_F16 | REWIRE_DTYPE_BF16 |
                                  REWIRE_DTYPE_I64 | REWIRE_DTYPE_I8));
}

TEST_CASE("a wrong row is an error") {
  const auto wrong = [](std::string_view arguments, std::string_view dtypes = "") -> std::string {
    try {
      (void)Parsed(arguments, dtypes);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(wrong("a, a -> out") == "two arguments have the same name");
  CHECK(wrong("a, B -> out") == "a name is a_to_z0_9");
  CHECK(wrong("a, , b -> out") == "an argument has no name");
  CHECK(wrong("a ->") == "nothing stands behind the arrow");
  CHECK(wrong("a... , b... -> out") == "there are two lists");
  CHECK(wrong("a -> out over b") == "a written argument lies over one that is not read");
  CHECK(wrong("a -> out, more over out") == "a written argument lies over one that is not read");
  CHECK(wrong("a -> out under a") == "a written argument lies over, around or within others");
  CHECK(wrong("a -> out over ") == "a written argument lies over nothing");
  CHECK(wrong("a, b, c, d, e, f, g, h, i, j, k, l -> out") == "there are too many arguments");
  CHECK(wrong("a -> out", "f31") == "there is no such dtype, argument or set of dtypes");
  CHECK(wrong("a -> out", "any thing") == "there is any number, any float and any integer");
  CHECK(wrong("a -> out", "a f32; a, out f64") == "an argument is in two groups of dtypes");
  CHECK(wrong("a -> out", "a") == "a group has no dtypes");
  CHECK(wrong("a -> out", "a f32; out any number").empty());
}

struct Row {
  RowArguments arguments;
  RewireKernelRow row;
  Row(std::string_view text, std::uint32_t traits = 0) : arguments(Parsed(text, "")) {
    row = {arguments.list, arguments.count, traits, "", nullptr};
  }
  Row(const Row&) = delete;
};

// "1" for a call with these many arguments that writes one; "-" when there is none.
std::string Written(const std::string& text, std::uint32_t count, const KernelImport& import = {}) {
  const Row row(text);
  const auto outputs = KernelCalls(&row.row, import).Outputs(count);
  if (!outputs) return "-";
  return outputs->least == outputs->most
             ? std::to_string(outputs->least)
             : std::to_string(outputs->least) + ".." + std::to_string(outputs->most);
}

TEST_CASE("how many arguments a call writes follows from how many it has") {
  CHECK(Written("a, b -> out", 2) == "-");
  CHECK(Written("a, b -> out", 3) == "1");
  CHECK(Written("a, b -> out", 4) == "-");
  CHECK(Written("x, w? -> out, more?", 2) == "1");
  CHECK(Written("x, w? -> out, more?", 3) == "1");
  CHECK(Written("x, w? -> out, more?", 4) == "2");
  CHECK(Written("x, w? -> out, more?", 5) == "-");
  CHECK(Written("x... -> out", 1) == "1");
  CHECK(Written("x... -> out", 9) == "1");
  CHECK(Written("x -> out...", 9) == "8");
  CHECK(Written("x... -> out...", 3) == "0..3");
  CHECK(Written("seq, position?", 2) == "0");
  KernelImport import;
  import.attributes.push_back({"offsets", Array<std::int64_t> { 4, 5, 6 }});
  CHECK(Written("shapes... -> offsets[], total", 6, import) == "4");
  CHECK(Written("shapes... -> offsets[], total", 3, import) == "-");
  CHECK(Written("shapes... -> offsets[], total", 3) == "1");
  CHECK_FALSE(KernelCalls().known());
}

std::string NameAt(const std::string& text, std::uint32_t position, std::uint32_t count,
                   std::uint32_t outputs, const KernelImport& import = {}) {
  const Row row(text);
  const RewireKernelArgument& argument = KernelCalls(&row.row, import).At(position, count, outputs);
  return {argument.name, argument.name_bytes};
}

TEST_CASE("each argument of a call is one of the row's") {
  CHECK(NameAt("x, w?, r, b? -> y, h", 1, 4, 2) == "r");
  CHECK(NameAt("x, w?, r, b? -> y, h", 1, 5, 2) == "w");
  CHECK(NameAt("x, w?, r, b? -> y, h", 3, 6, 2) == "b");
  CHECK(NameAt("x, w?, r, b? -> y, h", 2, 4, 2) == "y");
  CHECK(NameAt("x, w?, r, b? -> y, h", 5, 6, 2) == "h");
  CHECK(NameAt("x -> out, mean?, deviation?", 2, 3, 2) == "mean");
  CHECK(NameAt("x... -> out", 7, 9, 1) == "x");
  CHECK(NameAt("x... -> out", 8, 9, 1) == "out");
  CHECK(NameAt("x -> out...", 0, 9, 8) == "x");
  CHECK(NameAt("x -> out...", 8, 9, 8) == "out");
  KernelImport import;
  import.attributes.push_back({"offsets", Array<std::int64_t> { 4, 5, 6 }});
  CHECK(NameAt("shapes... -> offsets[], total", 1, 6, 4, import) == "shapes");
  CHECK(NameAt("shapes... -> offsets[], total", 4, 6, 4, import) == "offsets");
  CHECK(NameAt("shapes... -> offsets[], total", 5, 6, 4, import) == "total");
}

TEST_CASE("a row is spelled as it was written") {
  for (const char* text : {"a, b -> out over a|b", "x... -> out around x", "x -> out... within x", "-> out",
                           "seq, position?", "shapes... -> offsets[], total", "x, w? -> y, h? over w"}) {
    const Row row(text);
    CHECK(KernelCalls(&row.row, {}).Text() == text);
  }
}

}  // namespace
}  // namespace rewire::test
