// SPDX-License-Identifier: Apache-2.0
// Changes to constants, kernel imports and the small tables.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "rewire/tests/hostile/mutator.h"

namespace rewire::hostile {
namespace {

constexpr std::uint64_t kMostConstantBytes = 1 << 16;

std::string AnyText(Dice& dice) {
  static const std::vector<std::string> kTexts = {
      "",           "main",  "__init",   "x",       "linear",
      "nearest",    "cubic", "constant", "reflect", "edge",
      "SAME_UPPER", "ij->j", "ii,ij->i", "reverse", "bidirectional",
      "Relu",       "Tanh",  "\xFF\xFE", "a\nb",    std::string(5000, 'n')};
  return dice.Pick(kTexts);
}

std::uint64_t AnyDouble(Dice& dice) {
  static const std::vector<double> kDoubles = {0.0,
                                               -0.0,
                                               1.0,
                                               -1.0,
                                               0.5,
                                               1e-9,
                                               1e-30,
                                               1e9,
                                               1e30,
                                               1e300,
                                               -1e300,
                                               std::numeric_limits<double>::infinity(),
                                               -std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN(),
                                               5e-324};
  return std::bit_cast<std::uint64_t>(dice.Pick(kDoubles));
}

// Bits of a float that is a number, or that some other type would read as a large one.
std::uint32_t AnyFloat(Dice& dice) {
  static const std::vector<std::uint32_t> kFloats = {
      0,          0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x40000000,
      0x4E6E6B28, 0x5F000000, 0x7149F2CA, 0x00000001, 0x000003E8, 0x3E800000, 0xCF000000};
  return dice.Pick(kFloats);
}

// A constant's first elements, or one of them, become others.
void ChangeContent(Constant& constant, Dice& dice) {
  const std::uint32_t dtype = constant.type.words[0];
  const std::uint64_t width = std::min<std::uint64_t>(ElementBytes(dtype), 8);
  if (constant.stored.size() < width) return;
  const std::uint64_t at = dice.Below(constant.stored.size() / width) * width;
  std::uint64_t bits = static_cast<std::uint64_t>(dice.Interesting());
  if ((dtype & 0xFF) == 2) bits = width == 8 ? AnyDouble(dice) : width == 4 ? AnyFloat(dice) : dice.Next();
  std::memcpy(constant.stored.data() + at, &bits, width);
}

// Sizes and bytes that fit dtype and dimensions; false where those are too large to store.
bool Fit(Constant& constant) {
  std::uint64_t elements = 1;
  for (const std::int64_t dim : constant.type.dims) {
    if (dim < 0 || (dim > 0 && elements > kMostConstantBytes / static_cast<std::uint64_t>(dim))) return false;
    elements *= static_cast<std::uint64_t>(dim);
  }
  const std::uint64_t bytes = elements * ElementBytes(constant.type.words[0]);
  if (bytes > kMostConstantBytes) return false;
  constant.type.words[1] = static_cast<std::uint32_t>(constant.type.dims.size());
  constant.raw_bytes = bytes;
  constant.codec = 0;
  constant.stored.resize(bytes, '\1');
  return true;
}

// `__init` makes a constant by returning a copy of it that is data.
std::string Compute(Program& program, Constant& constant) {
  for (const Function& function : program.functions) {
    if (function.name == "__init") return "";
  }
  Constant source = constant;
  source.name = "__source";
  const auto index = static_cast<std::int64_t>(program.constants.size());
  constant.kind = kComputed;
  constant.stored.clear();
  Function init;
  init.name = "__init";
  TypeNode adt;
  adt.kind = kAdt;
  adt.words = {0, 1, 0};
  init.result = {adt, constant.type};
  init.outputs = {"made"};
  init.registers = 2;
  const auto add = [&](std::uint32_t op, std::vector<std::int64_t> values, std::vector<std::int64_t> list) {
    Instruction instruction;
    instruction.op = op;
    std::size_t i = 0;
    for (const char* kind = OperandsOf(op); *kind != 0; ++kind, ++i) {
      Operand operand;
      operand.kind = *kind;
      if (*kind == 'R') {
        operand.list = list;
      } else {
        operand.value = values[i];
      }
      instruction.operands.push_back(std::move(operand));
    }
    init.code.push_back(std::move(instruction));
  };
  add(kLoadConst, {index, 0}, {});
  add(kAllocAdt, {0, 1}, {0});
  add(kRet, {1}, {});
  program.constants.push_back(std::move(source));
  program.functions.push_back(std::move(init));
  return "constant computed";
}

std::string ChangeConstant(Program& program, Dice& dice) {
  if (program.constants.empty()) return "";
  Constant& constant = dice.Pick(program.constants);
  switch (dice.Below(14)) {
    case 0:
      constant.type.words[0] = AnyDType(dice);
      if (!dice.OneIn(8)) Fit(constant);
      return "constant's dtype changed";
    case 1:
    case 2:
      ChangeDims(constant.type.dims, dice);
      if (!dice.OneIn(8)) Fit(constant);
      return "constant's dimensions changed";
    case 3:
      constant.kind = static_cast<std::uint8_t>(dice.Below(4));
      return "constant's kind changed";
    case 4:
      constant.kind = kParameter;
      constant.stored.clear();
      constant.raw_bytes = 0;
      if (constant.name.empty()) constant.name = "parameter" + std::to_string(dice.Below(100));
      return "constant made a parameter";
    case 5:
      return Compute(program, constant);
    case 6:
      constant.checksum = dice.OneIn(2) ? dice.Pick(program.constants).checksum.value_or(7) : dice.Next();
      return "constant's checksum forged";
    case 7: {
      std::uint64_t* const sizes[] = {&constant.raw_bytes,
                                      &constant.stored_bytes.emplace(constant.stored.size())};
      *sizes[dice.Below(2)] = static_cast<std::uint64_t>(dice.Interesting());
      return "constant's sizes changed";
    }
    case 8:
      constant.codec = static_cast<std::uint32_t>(dice.Below(4) == 0 ? dice.Interesting() : 1);
      return "constant's codec changed";
    case 9: {
      std::uint32_t* const words[] = {&constant.type.words[1], &constant.type.words[2]};
      *words[dice.Below(2)] = static_cast<std::uint32_t>(dice.Interesting());
      return "constant's rank or device changed";
    }
    default:
      for (std::uint64_t i = dice.Below(3) + 1; i > 0; --i) ChangeContent(constant, dice);
      return "constant's elements changed";
  }
}

void ChangeAttribute(Attribute& attribute, Dice& dice) {
  if (dice.OneIn(12)) attribute.kind = static_cast<std::uint32_t>(dice.Below(6));
  if (attribute.kind == 2) {
    attribute.text = AnyText(dice);
    return;
  }
  const bool is_list = attribute.kind > 2;
  if (is_list && dice.OneIn(4)) {
    attribute.numbers.resize(dice.Below(6), 1);
    return;
  }
  if (attribute.numbers.empty()) attribute.numbers.push_back(0);
  std::uint64_t& number = dice.Pick(attribute.numbers);
  const bool is_float = attribute.kind == 1 || attribute.kind == 4;
  number = is_float ? AnyDouble(dice) : static_cast<std::uint64_t>(dice.Interesting());
}

std::string ChangeKernel(Program& program, const Pool& pool, Dice& dice) {
  if (program.kernels.empty()) return "";
  Kernel& kernel = dice.Pick(program.kernels);
  switch (dice.Below(12)) {
    case 0:
    case 1:
      kernel.name = dice.Pick(pool.kernel_names);
      if (dice.OneIn(2)) kernel.attributes.clear();
      return "kernel's name changed to " + kernel.name;
    case 2: {
      // With the attributes that go with it.
      const Program& other = dice.Pick(*pool.seeds).program;
      if (other.kernels.empty()) return "";
      kernel = dice.Pick(other.kernels);
      return "kernel taken from elsewhere: " + kernel.name;
    }
    case 3:
      kernel.flags = static_cast<std::uint32_t>(dice.OneIn(8) ? dice.Interesting() : dice.Below(4));
      return "kernel's flags changed";
    case 4:
      kernel.alignment = static_cast<std::uint32_t>(dice.OneIn(4) ? dice.Interesting() : 1 << dice.Below(14));
      return "kernel's alignment changed";
    case 5:
      kernel.also_written.clear();
      for (std::uint32_t i = 0; i < 6; ++i) {
        if (dice.OneIn(3)) kernel.also_written.push_back(i);
      }
      if (dice.OneIn(12)) kernel.also_written.push_back(static_cast<std::uint32_t>(dice.Interesting()));
      return "kernel's written positions changed";
    case 6: {
      if (kernel.attributes.empty() || dice.OneIn(2)) return "";
      auto& place = dice.Pick(kernel.attributes);
      auto& others = dice.Pick(program.kernels).attributes;
      if (!others.empty() && dice.OneIn(2)) {
        auto taken = dice.Pick(others);
        place = std::move(taken);
        return "kernel's attribute replaced by one of a kernel of the file";
      }
      std::swap(place, kernel.attributes.back());
      kernel.attributes.pop_back();
      return "kernel's attribute removed";
    }
    case 7:
      kernel.debug_name = AnyText(dice);
      return "kernel's debug name changed";
    default:
      if (kernel.attributes.empty()) return "";
      ChangeAttribute(dice.Pick(kernel.attributes), dice);
      return "kernel's attribute changed";
  }
}

std::string ChangeSmallTable(Program& program, Dice& dice) {
  switch (dice.Below(7)) {
    case 0:
      if (dice.OneIn(2) || program.devices.empty()) {
        program.devices.push_back({static_cast<std::int32_t>(dice.Below(14)),
                                   static_cast<std::int32_t>(dice.Below(2)),
                                   dice.OneIn(4) ? AnyText(dice) : ""});
      } else {
        dice.Pick(program.devices).type = static_cast<std::int32_t>(dice.Interesting());
      }
      return "devices changed";
    case 1:
      if (program.symbols.empty() || dice.OneIn(2)) {
        program.symbols.push_back(AnyText(dice));
      } else {
        program.symbols.pop_back();
      }
      return "symbols changed";
    case 2:
      program.symbol_limits.resize(dice.OneIn(4) ? dice.Below(4) : program.symbols.size(), -1);
      if (!program.symbol_limits.empty()) dice.Pick(program.symbol_limits) = dice.Interesting();
      return "symbols' limits changed";
    case 3:
      program.strings.push_back(AnyText(dice));
      return "string added";
    case 4:
      if (program.strings.empty()) return "";
      program.strings.pop_back();
      return "string removed";
    case 5:
      program.metadata.emplace_back(AnyText(dice), AnyText(dice));
      return "metadata added";
    default: {
      if (program.functions.empty()) return "";
      Function& function = dice.Pick(program.functions);
      function.notes.emplace_back(static_cast<std::uint32_t>(dice.OneIn(2) ? 0 : dice.Interesting()),
                                  AnyText(dice));
      return "note added";
    }
  }
}

}  // namespace

std::string ChangeTables(Program& program, const Pool& pool, Dice& dice) {
  switch (dice.Below(10)) {
    case 0:
      return ChangeSmallTable(program, dice);
    case 1:
    case 2:
    case 3:
    case 4:
      return ChangeConstant(program, dice);
    default:
      return ChangeKernel(program, pool, dice);
  }
}

}  // namespace rewire::hostile
