// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels: rows of the library, and rows that the source has for itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "rewire/base/dtype.h"
#include "rewire/compiler/aot/embedded/call.h"
#include "rewire/compiler/aot/embedded/rows.h"
#include "rewire/compiler/aot/literals.h"
#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/contract/elementwise_attributes.h"
#include "rewire/kernels/contract/fused_operations.h"
#include "rewire/kernels/contract/names.h"

namespace rewire::aot {
namespace {

std::string RowName(const EmbeddedCall& call) {
  return fmt::format("rewire_embedded_{}_f32", names::Stem(call.name()));
}

Result<std::string> FloatRow(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  return RowCall(call, RowName(call));
}

// The type of an element of which the source has rows; empty if there is none.
std::string RowType(DLDataType dtype) {
  if (dtype == kBool8) return "uint8_t";
  const bool is_integer = (dtype.code == kInt || dtype.code == kUInt) && dtype.bits >= 8 && dtype.lanes == 1;
  return dtype == kFloat32 || is_integer ? ElementType(dtype) : std::string();
}

// A row of one or two inputs that computes an expression of a and b.
std::string OwnRow(EmbeddedCall& call, const std::string& input, const std::string& output,
                   const std::string& expression) {
  std::string types;
  for (std::size_t i = 0; i < call.inputs(); ++i) types += input + ", ";
  return call.definitions().Function(fmt::format("static REWIRE_EMBEDDED_ROW_{}(NAME, {}{}, {})\n",
                                                 call.inputs(), types, output, expression));
}

// Arithmetic of floats by the library's rows; of integers, which wrap, by rows of the source.
template <char op>
Result<std::string> Arithmetic(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  if (dtype == kFloat32) return FloatRow(call);
  if (Status need = call.NeedInputs(dtype); !need) return need;
  const std::string type = RowType(dtype);
  if (type.empty() || dtype == kBool8) return FloatRow(call);
  // Sums of unsigned integers wrap in C.
  const std::string_view wide = dtype.bits == 64 ? "uint64_t" : "uint32_t";
  return RowCall(call, OwnRow(call, type, type, fmt::format("({0})a {1} ({0})b", wide, op)));
}

// A row of the source whose inputs and output have one type. Without an expression the type is refused.
Result<std::string> OwnRowOfOneType(EmbeddedCall& call, const std::string& expression) {
  const DLDataType dtype = call.OutputValue().dtype;
  if (Status need = call.NeedInputs(dtype); !need) return need;
  if (expression.empty()) return call.Refuse(fmt::format("its elements are {}", DTypeName(dtype)));
  const std::string type = RowType(dtype);
  return RowCall(call, OwnRow(call, type, type, expression));
}

bool IsInteger(DLDataType dtype) { return dtype != kBool8 && dtype != kFloat32 && !RowType(dtype).empty(); }

// Functions of the C library.
Result<std::string> LibraryFunction(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  return OwnRowOfOneType(call, fmt::format("{}f(a)", names::Stem(call.name())));
}

Result<std::string> Power(EmbeddedCall& call) {
  if (Status need = call.NeedInput(0, kFloat32); !need) return need;
  if (Status need = call.NeedOutput(kFloat32); !need) return need;
  const DLDataType exponent = call.InputValue(1).dtype;
  if (exponent == kFloat32) return OwnRowOfOneType(call, "b == 2.0f ? a * a : powf(a, b)");
  if (!IsInteger(exponent) || exponent.bits < 32)
    return call.Refuse(fmt::format("its exponents are {}", DTypeName(exponent)));
  return RowCall(call,
                 call.definitions().Function(fmt::format(
                     "static REWIRE_EMBEDDED_ROW_2(NAME, float, {}, float, pow((double)a, (double)b))\n",
                     RowType(exponent))));
}

// Quotients of integers by 0 are 0, and so are their rests.
Result<std::string> Divide(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  if (!IsInteger(dtype)) return FloatRow(call);
  const std::string_view wide = dtype.bits == 64 ? "uint64_t" : "uint32_t";
  return OwnRowOfOneType(
      call, dtype.code == kInt
                ? fmt::format("b == 0 ? 0 : b == -1 ? ({0})(({1})0 - ({1})a) : a / b", RowType(dtype), wide)
                : "b == 0 ? 0 : a / b");
}

template <bool has_divisor_sign>
Result<std::string> Rest(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  const std::string rest = dtype == kFloat32 ? "fmodf(a, b)" : "a % b";
  const std::string is_zero = dtype == kFloat32    ? ""
                              : dtype.code == kInt ? "b == 0 || b == -1 ? 0 : "
                                                   : "b == 0 ? 0 : ";
  if (dtype != kFloat32 && !IsInteger(dtype)) return OwnRowOfOneType(call, {});
  const bool is_signed = dtype == kFloat32 || dtype.code == kInt;
  return OwnRowOfOneType(
      call, has_divisor_sign && is_signed
                ? fmt::format("{1}{0} != 0 && ({0} < 0) != (b < 0) ? {0} + b : {0}", rest, is_zero)
                : is_zero + rest);
}

template <char op>
Result<std::string> Bits(EmbeddedCall& call) {
  return OwnRowOfOneType(call, IsInteger(call.OutputValue().dtype) ? fmt::format("a {} b", op) : "");
}
Result<std::string> BitNot(EmbeddedCall& call) {
  return OwnRowOfOneType(call, IsInteger(call.OutputValue().dtype) ? "~a" : "");
}

// Shifts by the width or more move every bit out.
Result<std::string> BitShift(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  if (!IsInteger(dtype) || dtype.code == kInt) return OwnRowOfOneType(call, {});
  const char* const shifted =
      call.attributes.String("direction", "LEFT") == "LEFT" ? "(uint64_t)a << b" : "a >> b";
  return OwnRowOfOneType(call, fmt::format("b >= {} ? 0 : {}", static_cast<int>(dtype.bits), shifted));
}

Result<std::string> Selu(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const double alpha = contract::kSeluAlpha.Read(call.attributes);
  const double gamma = contract::kSeluGamma.Read(call.attributes);
  return OwnRowOfOneType(
      call, fmt::format("rewire_embedded_Selu(a, {}, {})", FloatText(gamma * alpha), FloatText(gamma)));
}

// Rows that say of which kind a float is.
Result<std::string> Classify(EmbeddedCall& call, const char* expression) {
  if (Status need = call.NeedInput(0, kFloat32); !need) return need;
  if (Status need = call.NeedOutput(kBool8); !need) return need;
  return RowCall(call, OwnRow(call, "float", "uint8_t", expression));
}
Result<std::string> IsNan(EmbeddedCall& call) { return Classify(call, "a != a"); }
Result<std::string> IsInf(EmbeddedCall& call) {
  contract::IsInfAttributes given;
  given.Read(call.attributes);
  return Classify(call, given.positive && given.negative ? "fabsf(a) == INFINITY"
                        : given.positive                 ? "a == INFINITY"
                        : given.negative                 ? "a == -INFINITY"
                                                         : "a != a && a == a");
}

// The larger or the smaller one: floats by the library's rows, where NaN has a meaning; integers by rows of
// the source.
template <char op>
Result<std::string> Extremum(EmbeddedCall& call) {
  const DLDataType dtype = call.OutputValue().dtype;
  const std::string type = RowType(dtype);
  if (dtype == kFloat32 || dtype == kBool8 || type.empty()) return FloatRow(call);
  if (Status need = call.NeedInputs(dtype); !need) return need;
  return RowCall(call, OwnRow(call, type, type, fmt::format("a {} b ? a : b", op)));
}

// Comparisons give bool.
Result<std::string> Comparison(EmbeddedCall& call) {
  const DLDataType dtype = call.InputValue(0).dtype;
  if (Status need = call.NeedOutput(kBool8); !need) return need;
  if (Status need = call.NeedInputs(dtype); !need) return need;
  if (dtype == kFloat32) return RowCall(call, RowName(call));
  const std::string type = RowType(dtype);
  if (type.empty()) return call.Refuse(fmt::format("its inputs are {}", DTypeName(dtype)));
  const std::string_view name = call.name();
  const char* const op = name == names::kEqual       ? "=="
                         : name == names::kNotEqual  ? "!="
                         : name == names::kLess      ? "<"
                         : name == names::kLessEqual ? "<="
                         : name == names::kGreater   ? ">"
                                                     : ">=";
  return RowCall(call, OwnRow(call, type, "uint8_t", fmt::format("a {} b", op)));
}

Result<std::string> Truths(EmbeddedCall& call) {
  if (Status need = call.NeedInputs(kBool8); !need) return need;
  if (Status need = call.NeedOutput(kBool8); !need) return need;
  return RowCall(call, fmt::format("rewire_embedded_{}", names::Stem(call.name())));
}

Result<std::string> Where(EmbeddedCall& call) {
  const std::uint64_t bytes = ElementBytes(call.OutputValue().dtype);
  if (bytes != 1 && bytes != 4 && bytes != 8) {
    return call.Refuse(fmt::format("an element has {} bytes", bytes));
  }
  return RowCall(call, fmt::format("rewire_embedded_where_{}", bytes));
}

Result<std::string> NumberedRow(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const contract::NumberedKernel& row =
      *std::find_if(std::begin(contract::kNumberedKernels), std::end(contract::kNumberedKernels),
                    [&](const contract::NumberedKernel& each) { return call.name() == each.kernel; });
  std::vector<double> numbers;
  for (const contract::NumberAttribute& number : row.numbers) {
    if (number.name != nullptr) numbers.push_back(number.Read(call.attributes));
  }
  return RowCall(call, RowName(call), numbers);
}

Result<std::string> Gelu(EmbeddedCall& call) {
  if (Status need = call.NeedFloats(); !need) return need;
  const bool is_tanh = call.Read<contract::GeluAttributes>().tanh;
  return RowCall(call, is_tanh ? "rewire_embedded_gelu_tanh_f32" : "rewire_embedded_gelu_f32");
}

// Floats are truncated and held in the range of an integer, and NaN becomes 0. Integers wrap.
Result<std::string> Cast(EmbeddedCall& call) {
  const DLDataType from = call.InputValue(0).dtype;
  const DLDataType to = call.OutputValue().dtype;
  const std::string input = RowType(from);
  const std::string output = RowType(to);
  if (input.empty() || output.empty()) {
    return call.Refuse(fmt::format("it makes {} of {}", DTypeName(to), DTypeName(from)));
  }
  std::string expression = "a";
  if (to == kBool8) {
    expression = "a != 0";
  } else if (from == kFloat32 && to != kFloat32) {
    const bool is_signed = to.code == kInt;
    const std::string limits = fmt::format("{}INT{}_", is_signed ? "" : "U", static_cast<int>(to.bits));
    // Powers of two, which are floats.
    const std::string end = FloatText(std::ldexp(1.0, to.bits - (is_signed ? 1 : 0)));
    const std::string least = is_signed ? "-" + end : "0.0f";
    expression = fmt::format("a != a ? 0 : a >= {} ? {}MAX : a < {} ? {} : ({})a", end, limits, least,
                             is_signed ? limits + "MIN" : "0", output);
  }
  return RowCall(call, OwnRow(call, input, output, expression));
}

constexpr EmbeddedKernel kElementwiseKernels[] = {
    {names::kNeg, 1, 0, FloatRow},
    {names::kAbs, 1, 0, FloatRow},
    {names::kSign, 1, 0, FloatRow},
    {names::kRelu, 1, 0, FloatRow},
    {names::kSigmoid, 1, 0, FloatRow},
    {names::kSoftplus, 1, 0, FloatRow},
    {names::kSoftsign, 1, 0, FloatRow},
    {names::kFloor, 1, 0, FloatRow},
    {names::kCeil, 1, 0, FloatRow},
    {names::kSqrt, 1, 0, FloatRow},
    {names::kExp, 1, 0, FloatRow},
    {names::kLog, 1, 0, FloatRow},
    {names::kTanh, 1, 0, FloatRow},
    {names::kRound, 1, 0, FloatRow},
    {names::kSin, 1, 0, FloatRow},
    {names::kCos, 1, 0, FloatRow},
    {names::kErf, 1, 0, FloatRow},
    {names::kMish, 1, 0, FloatRow},
    {names::kSwish, 1, 0, FloatRow},
    {names::kHardSwish, 1, 0, FloatRow},
    {names::kReciprocal, 1, 0, FloatRow},
    {names::kDiv, 2, 0, Divide},
    {names::kMod, 2, 0, Rest<true>},
    {names::kFmod, 2, 0, Rest<false>},
    {names::kPow, 2, 0, Power},
    {names::kBitAnd, 2, 0, Bits<'&'>},
    {names::kBitOr, 2, 0, Bits<'|'>},
    {names::kBitXor, 2, 0, Bits<'^'>},
    {names::kBitNot, 1, 0, BitNot},
    {names::kBitShift, 2, 0, BitShift},
    {names::kSelu, 1, 0, Selu},
    {names::kIsNan, 1, 0, IsNan},
    {names::kIsInf, 1, 0, IsInf},
    {names::kTan, 1, 0, LibraryFunction},
    {names::kSinh, 1, 0, LibraryFunction},
    {names::kCosh, 1, 0, LibraryFunction},
    {names::kAsin, 1, 0, LibraryFunction},
    {names::kAcos, 1, 0, LibraryFunction},
    {names::kAtan, 1, 0, LibraryFunction},
    {names::kAsinh, 1, 0, LibraryFunction},
    {names::kAcosh, 1, 0, LibraryFunction},
    {names::kAtanh, 1, 0, LibraryFunction},
    {names::kMin, 2, 0, Extremum<'<'>},
    {names::kMax, 2, 0, Extremum<'>'>},
    {names::kAtLeast, 2, 0, Extremum<'>'>},
    {names::kAtMost, 2, 0, Extremum<'<'>},
    {names::kPRelu, 2, 0, FloatRow},
    {names::kAdd, 2, 0, Arithmetic<'+'>},
    {names::kSub, 2, 0, Arithmetic<'-'>},
    {names::kMul, 2, 0, Arithmetic<'*'>},
    {names::kLeakyRelu, 1, 0, NumberedRow},
    {names::kElu, 1, 0, NumberedRow},
    {names::kCelu, 1, 0, NumberedRow},
    {names::kThresholdedRelu, 1, 0, NumberedRow},
    {names::kClip, 1, 0, NumberedRow},
    {names::kHardSigmoid, 1, 0, NumberedRow},
    {names::kShrink, 1, 0, NumberedRow},
    {names::kGelu, 1, 0, Gelu},
    {names::kEqual, 2, 0, Comparison},
    {names::kNotEqual, 2, 0, Comparison},
    {names::kLess, 2, 0, Comparison},
    {names::kLessEqual, 2, 0, Comparison},
    {names::kGreater, 2, 0, Comparison},
    {names::kGreaterEqual, 2, 0, Comparison},
    {names::kAnd, 2, 0, Truths},
    {names::kOr, 2, 0, Truths},
    {names::kXor, 2, 0, Truths},
    {names::kNot, 1, 0, Truths},
    {names::kWhere, 3, 0, Where},
    {names::kCast, 1, 0, Cast},
};

}  // namespace

std::span<const EmbeddedKernel> ElementwiseKernels() { return kElementwiseKernels; }

}  // namespace rewire::aot
