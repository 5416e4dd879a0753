// SPDX-License-Identifier: Apache-2.0
#include "rewire/executable_format/device_code.h"

#include <algorithm>

#include "rewire/executable_format/module.h"

namespace rewire {
namespace {

// False if there is no result.
bool Apply(SizeOp op, std::int64_t a, std::int64_t b, std::int64_t* result) {
  switch (op) {
    case SizeOp::kAdd:
      return !__builtin_add_overflow(a, b, result);
    case SizeOp::kSubtract:
      return !__builtin_sub_overflow(a, b, result);
    case SizeOp::kMultiply:
      return !__builtin_mul_overflow(a, b, result);
    case SizeOp::kDivide:
    case SizeOp::kCeilDivide:
    case SizeOp::kRemainder: {
      if (b < 1) return false;
      // C++ rounds towards zero; the rest tells which way that went.
      const std::int64_t rest = a % b;
      *result = a / b;
      if (op == SizeOp::kDivide && rest < 0) --*result;
      if (op == SizeOp::kCeilDivide && rest > 0) ++*result;
      if (op == SizeOp::kRemainder) *result = rest < 0 ? rest + b : rest;
      return true;
    }
    case SizeOp::kMin:
      *result = std::min(a, b);
      return true;
    case SizeOp::kMax:
      *result = std::max(a, b);
      return true;
    case SizeOp::kNumber:
    case SizeOp::kSymbol:
      break;
  }
  return false;
}

// There are a few.
const SymbolSize* FindSymbol(Span<const SymbolSize> symbols, std::int64_t symbol) {
  for (const SymbolSize& each : symbols) {
    if (each.symbol == symbol) return &each;
  }
  return nullptr;
}

}  // namespace

const char* SizeExpressionFault(Span<const std::int64_t> words) {
  if (words.size() > kMostSizeWords) return "has more than 128 words";
  std::uint32_t depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] < 0 || words[i] >= kSizeOps) return "has an operation that does not exist";
    if (words[i] > static_cast<std::int64_t>(SizeOp::kSymbol)) {
      if (depth < 2) return "has an operation without two values";
      --depth;
      continue;
    }
    if (++i == words.size()) return "ends inside an operation";
    if (++depth > kMostSizeDepth) return "is nested more than 16 deep";
  }
  return depth == 1 ? nullptr : "is not one value";
}

std::string_view DeviceCodeFormName(std::uint32_t form) {
  static constexpr std::string_view kNames[] = {"opencl_c", "spirv", "cuda_cpp", "ptx", "cubin", "fatbin"};
  static_assert(std::size(kNames) == kMostDeviceCodeForm);
  return form >= 1 && form <= kMostDeviceCodeForm ? kNames[form - 1] : std::string_view();
}

bool EvaluateSize(Span<const std::int64_t> words, Span<const SymbolSize> symbols, std::int64_t* value) {
  std::int64_t values[kMostSizeDepth] = {};
  std::uint32_t depth = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto op = static_cast<SizeOp>(words[i]);
    if (op == SizeOp::kNumber) {
      values[depth++] = words[++i];
    } else if (op == SizeOp::kSymbol) {
      const SymbolSize* found = FindSymbol(symbols, words[++i]);
      if (found == nullptr) return false;
      values[depth++] = found->size;
    } else {
      --depth;
      if (!Apply(op, values[depth - 1], values[depth], &values[depth - 1])) return false;
    }
  }
  *value = values[0];
  return true;
}

Array<std::uint8_t> ConstantsOfDeviceCode(const Module& module) {
  Array<std::uint8_t> is_code(module.constants.size());
  for (const DeviceCodeEntry& entry : module.device_code) is_code[entry.constant] = 1;
  return is_code;
}

}  // namespace rewire
