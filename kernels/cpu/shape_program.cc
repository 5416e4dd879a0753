// SPDX-License-Identifier: Apache-2.0
// Shapes by arithmetic on other shapes: what a compiler that knows a dimension as an expression calls.
#include <algorithm>
#include <vector>

#include "kernels/cpu/checks.h"
#include "kernels/cpu/registry.h"

namespace rewire::kernel::cpu {
namespace {

// The program is postfix: each code takes its operands from a stack and leaves its result there.
struct EvaluateShape {
  static constexpr const char kName[] = "rewire.shape.eval";
  enum Code : std::int64_t { kPush, kDim, kAdd, kMultiply, kFloorDivide, kMaximum, kMinimum, kStore };
  static constexpr int kMaxDepth = 64;

  std::vector<std::int64_t> program;
  std::int64_t element_bytes = 1;
  std::int64_t inputs = 0;  // shapes that the program reads
  std::int64_t rank = 0;    // dimensions that it stores

  static Status Make(Attributes& attributes, EvaluateShape* shape) {
    attributes.Require("program");
    shape->program = attributes.Ints("program", {});
    shape->element_bytes = attributes.Int("element_bytes", 1, 1, 1024);
    return shape->Check();
  }

  Status operator()(TensorList tensors) const {
    if (tensors.size() != inputs + 2)
      return ValueError("expected ", inputs, " shapes and two outputs, got ", tensors.size(), " tensors");
    for (int i = 0; i < tensors.size(); ++i) {
      const char* what = i < inputs ? "a shape" : i == inputs ? "out" : "bytes";
      if (Status s = CheckDense(what, tensors[i]); !s.ok()) return s;
      if (!tensors[i].Is<std::int64_t>() || tensors[i].ndim() != (i == inputs + 1 ? 0 : 1))
        return TypeError(what, " is ", DTypeName(tensors[i].dtype()), tensors[i].dims(),
                         i == inputs + 1 ? ", expected a scalar of i64" : ", expected i64 of rank 1");
    }
    const TensorView out = tensors[static_cast<int>(inputs)];
    if (out.dim(0) != rank) return ValueError("out has ", out.dim(0), " elements, expected ", rank);
    return Run(tensors, out.data<std::int64_t>(), tensors.back().data<std::int64_t>());
  }

 private:
  static bool IsBinary(std::int64_t code) { return code >= kAdd && code <= kMinimum; }

  // Operands complete, the stack neither empty nor too deep: what Run relies on.
  Status Check() {
    int depth = 0;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const std::int64_t code = program[i];
      const std::size_t operands = code == kPush ? 1 : code == kDim ? 2 : 0;
      if (code < kPush || code > kStore || program.size() - i <= operands)
        return ValueError("attribute 'program': no instruction at ", i);
      if (code == kDim) {
        if (program[i + 1] < 0 || program[i + 1] >= 4096 || program[i + 2] < 0 || program[i + 2] >= kMaxRank)
          return ValueError("attribute 'program': no such dimension at ", i);
        inputs = std::max(inputs, program[i + 1] + 1);
      }
      i += operands;
      depth += code <= kDim ? 1 : -1;
      if (depth < (code == kStore ? 0 : 1) || depth > kMaxDepth)
        return ValueError("attribute 'program': the stack holds ", depth, " values after ", i);
      if (code == kStore) ++rank;
    }
    return Status();
  }

  Status Run(TensorList tensors, std::int64_t* out, std::int64_t* bytes) const {
    std::int64_t stack[kMaxDepth];
    int depth = 0;
    std::int64_t* dim = out;
    std::int64_t total = element_bytes;
    bool overflow = false;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const std::int64_t code = program[i];
      if (code == kPush) {
        stack[depth++] = program[++i];
      } else if (code == kDim) {
        const TensorView shape = tensors[static_cast<int>(program[i + 1])];
        const std::int64_t axis = program[i + 2];
        if (axis >= shape.dim(0)) return ValueError("shape ", program[i + 1], " has no axis ", axis);
        stack[depth++] = shape.data<std::int64_t>()[axis];
        i += 2;
      } else if (IsBinary(code)) {
        --depth;
        overflow = !Apply(code, stack[depth - 1], stack[depth], &stack[depth - 1]) || overflow;
      } else {
        *dim = stack[--depth];
        if (*dim < 0) return ValueError("dimension ", dim - out, " comes out as ", *dim);
        overflow = __builtin_mul_overflow(total, *dim, &total) || overflow;
        ++dim;
      }
    }
    if (overflow) return ValueError("the shape has too many elements");
    *bytes = total;
    return Status();
  }

  static bool Apply(std::int64_t code, std::int64_t a, std::int64_t b, std::int64_t* result) {
    if (code == kAdd) return !__builtin_add_overflow(a, b, result);
    if (code == kMultiply) return !__builtin_mul_overflow(a, b, result);
    if (code == kMaximum || code == kMinimum) {
      *result = code == kMaximum ? std::max(a, b) : std::min(a, b);
      return true;
    }
    *result = 0;
    if (b == 0) return true;
    if (b == -1) return !__builtin_sub_overflow(std::int64_t{0}, a, result);
    *result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
    return true;
  }
};

}  // namespace

std::span<const Kernel> ShapeProgramKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<EvaluateShape>("shapes..., out, bytes", "i64", "program, element_bytes = 1",
                              "dimensions by a postfix program, and the bytes of a tensor of them (rank 0). "
                              "Codes: 0 c pushes c; 1 i "
                              "a pushes dimension a of shape i; 2 adds, 3 multiplies, 4 divides rounding "
                              "down (x / 0 is 0), 5 takes "
                              "the larger, 6 the smaller of the top two; 7 stores the next dimension of out"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
