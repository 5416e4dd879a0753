// SPDX-License-Identifier: Apache-2.0
//
// Computes shapes from other shapes, and where tensors of such shapes lie in one piece of memory. Compilers
// that know dimensions as expressions call these functions.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_program.h"
#include "rewire/kernels/cpu/support/checks.h"

namespace rewire::kernel::cpu {
namespace {

Status CheckShape(const char* what, TensorView tensor, int rank) {
  if (Status s = CheckDense(what, tensor); !s.ok()) return s;
  if (!tensor.Is<std::int64_t>() || tensor.ndim() != rank)
    return TypeError(what, " is ", DTypeName(tensor.dtype()), tensor.dims(),
                     rank == 0 ? ", expected a scalar of i64" : ", expected i64 of rank 1");
  return Status();
}

struct EvaluateShape {
  static constexpr const char* kName = names::kShapeEval;

  ShapeProgram program;
  std::int64_t element_bytes = 1;

  static Status Make(Attributes& attributes, EvaluateShape* shape) {
    shape->element_bytes = attributes.Int("element_bytes", 1, 1, 1024);
    return ShapeProgram::Make(attributes, &shape->program);
  }

  Status operator()(TensorList tensors) const {
    const std::int64_t inputs = program.inputs();
    if (tensors.size() != inputs + 2)
      return ValueError("expected ", inputs, " shapes and two outputs, got ", tensors.size(), " tensors");
    for (int i = 0; i < tensors.size(); ++i) {
      const char* what = i < inputs ? "a shape" : i == inputs ? "out" : "bytes";
      if (Status s = CheckShape(what, tensors[i], i == inputs + 1 ? 0 : 1); !s.ok()) return s;
    }
    const TensorView out = tensors[static_cast<int>(inputs)];
    const std::int64_t rank = program.stores();
    if (out.dim(0) != rank) return ValueError("out has ", out.dim(0), " elements, expected ", rank);
    std::int64_t* dims = out.data<std::int64_t>();
    std::int64_t bytes = element_bytes;
    bool overflow = false;
    if (Status s = program.Run(tensors, dims, &overflow); !s.ok()) return s;
    for (std::int64_t i = 0; i < rank; ++i) {
      if (dims[i] < 0) return ValueError("dimension ", i, " comes out as ", dims[i]);
      overflow = __builtin_mul_overflow(bytes, dims[i], &bytes) || overflow;
    }
    if (overflow) return ValueError("the shape has too many elements");
    *tensors.back().data<std::int64_t>() = bytes;
    return Status();
  }
};

constexpr std::int64_t kMostNumbers = 1024;  // numbers, and blocks: they lie on the stack

Status MakeShort(Attributes& attributes, ShapeProgram* program) {
  if (Status s = ShapeProgram::Make(attributes, program); !s.ok()) return s;
  if (program->stores() <= kMostNumbers) return Status();
  return ValueError("attribute 'program' stores more than ", kMostNumbers, " numbers");
}

struct EvaluateSizes {
  static constexpr const char* kName = names::kShapeSizes;
  static constexpr std::int64_t kScalar = -1;

  ShapeProgram program;
  std::vector<std::int64_t> lengths;  // of the outputs, or kScalar

  static Status Make(Attributes& attributes, EvaluateSizes* sizes) {
    attributes.Require("outputs");
    sizes->lengths = attributes.Ints("outputs", {});
    if (Status s = MakeShort(attributes, &sizes->program); !s.ok()) return s;
    std::int64_t sum = 0;
    for (const std::int64_t length : sizes->lengths) {
      if (length < kScalar || length > kMaxKernelRank)
        return ValueError("attribute 'outputs': ", length, " is no length");
      sum += std::abs(length);
    }
    if (sum == sizes->program.stores()) return Status();
    return ValueError("attribute 'outputs' has room for ", sum, " numbers, and the program stores ",
                      sizes->program.stores());
  }

  Status operator()(TensorList tensors) const {
    const auto inputs = static_cast<int>(program.inputs());
    const auto outputs = static_cast<int>(lengths.size());
    if (tensors.size() != inputs + outputs)
      return ValueError("expected ", inputs, " shapes and ", outputs, " outputs, got ", tensors.size(),
                        " tensors");
    for (int i = 0; i < inputs; ++i)
      if (Status s = CheckShape("a shape", tensors[i], 1); !s.ok()) return s;
    std::int64_t numbers[kMostNumbers];
    bool overflow = false;
    if (Status s = program.Run(tensors, numbers, &overflow); !s.ok()) return s;
    if (overflow) return ValueError("a shape has too many elements");
    const std::int64_t* next = numbers;
    for (int i = 0; i < outputs; ++i) {
      const TensorView out = tensors[inputs + i];
      const std::int64_t length = lengths[static_cast<std::size_t>(i)];
      if (Status s = CheckShape("an output", out, length == kScalar ? 0 : 1); !s.ok()) return s;
      if (length != kScalar && out.dim(0) != length)
        return ValueError("output ", i, " has ", out.dim(0), " elements, expected ", length);
      std::int64_t* to = out.data<std::int64_t>();
      for (std::int64_t k = 0; k < std::abs(length); ++k, ++next) {
        if (*next < 0) return ValueError("number ", k, " of output ", i, " comes out as ", *next);
        to[k] = *next;
      }
    }
    return Status();
  }
};

struct LayOut {
  static constexpr const char* kName = names::kShapeLayout;
  static constexpr std::int64_t kAlignment = 64;

  struct Block {
    std::int64_t size = 0;                 // which stored number
    std::size_t begin_on = 0, end_on = 0;  // of `on`: the blocks that it lies on
  };
  ShapeProgram program;
  std::vector<Block> blocks;
  std::vector<std::int64_t> on;
  std::vector<std::int64_t> told;  // the blocks whose offsets are outputs

  static Status Make(Attributes& attributes, LayOut* layout) {
    attributes.Require("blocks");
    layout->told = attributes.Ints("offsets", {});
    const std::vector<std::int64_t> numbers = attributes.Ints("blocks", {});
    if (Status s = MakeShort(attributes, &layout->program); !s.ok()) return s;
    return layout->Read(numbers);
  }

  Status operator()(TensorList tensors) const {
    const auto inputs = static_cast<int>(program.inputs());
    const auto outputs = static_cast<int>(told.size()) + 1;
    if (tensors.size() != inputs + outputs)
      return ValueError("expected ", inputs, " shapes and ", outputs, " outputs, got ", tensors.size(),
                        " tensors");
    for (int i = 0; i < tensors.size(); ++i) {
      if (Status s = CheckShape(i < inputs ? "a shape" : "an output", tensors[i], i < inputs ? 1 : 0);
          !s.ok())
        return s;
    }
    std::int64_t numbers[kMostNumbers], offsets[kMostNumbers], ends[kMostNumbers];
    bool overflow = false;
    if (Status s = program.Run(tensors, numbers, &overflow); !s.ok()) return s;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      offsets[i] = 0;
      for (std::size_t k = blocks[i].begin_on; k < blocks[i].end_on; ++k)
        offsets[i] = std::max(offsets[i], ends[on[k]]);
      // A size that comes out negative is refused where it is allocated.
      std::int64_t size = std::max<std::int64_t>(numbers[blocks[i].size], 0);
      overflow = __builtin_add_overflow(size, kAlignment - 1, &size) || overflow;
      size -= size % kAlignment;
      overflow = __builtin_add_overflow(offsets[i], size, &ends[i]) || overflow;
      total = std::max(total, ends[i]);
    }
    if (overflow) return ValueError("the blocks are too large");
    for (std::size_t i = 0; i < told.size(); ++i) {
      *tensors[inputs + static_cast<int>(i)].data<std::int64_t>() = offsets[told[i]];
    }
    *tensors.back().data<std::int64_t>() = total;
    return Status();
  }

 private:
  Status Read(const std::vector<std::int64_t>& numbers) {
    for (std::size_t i = 0; i < numbers.size();) {
      Block block;
      block.size = numbers[i++];
      const std::int64_t count = i < numbers.size() ? numbers[i++] : -1;
      if (block.size < 0 || block.size >= program.stores() || count < 0 ||
          count > static_cast<std::int64_t>(numbers.size() - i) || blocks.size() == kMostNumbers)
        return ValueError("attribute 'blocks': no block at ", i);
      block.begin_on = on.size();
      for (; on.size() - block.begin_on < static_cast<std::size_t>(count); ++i) {
        if (numbers[i] < 0 || numbers[i] >= static_cast<std::int64_t>(blocks.size()))
          return ValueError("attribute 'blocks': block ", blocks.size(), " lies on block ", numbers[i]);
        on.push_back(numbers[i]);
      }
      block.end_on = on.size();
      blocks.push_back(block);
    }
    for (const std::int64_t block : told) {
      if (block < 0 || block >= static_cast<std::int64_t>(blocks.size()))
        return ValueError("attribute 'offsets': there is no block ", block);
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> ShapeProgramKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<EvaluateShape>(
          "shapes... -> out, bytes", "i64", "program, element_bytes = 1",
          "dimensions by a postfix program, and the bytes of a tensor of them (rank 0). "
          "Codes: 0 c pushes c; 1 i "
          "a pushes dimension a of shape i, or with an i of -1 what was stored as number a; "
          "2 adds, 3 multiplies, 4 divides rounding "
          "down (x / 0 is 0), 5 takes "
          "the larger, 6 the smaller of the top two, 8 what these two sizes broadcast to; 7 stores the next "
          "dimension of out"),
      Describe<EvaluateSizes>(
          "shapes... -> outputs[]", "i64", "program, outputs",
          "several shapes and sizes at once. The program is as that of rewire.shape.eval. `outputs` has for "
          "each output how many of the numbers that it stores are its elements, or -1 for one number as a "
          "scalar (rank 0). None may be negative"),
      Describe<LayOut>(
          "shapes... -> offsets[], total", "i64", "program, blocks, offsets = none",
          "where blocks of memory lie in one piece, and its bytes (all rank 0). The program is as "
          "that of rewire.shape.eval and stores sizes in bytes; `blocks` has for each block "
          "which of these is its size, how many blocks it lies on, and which, all before it. "
          "A block begins where the highest of them ends, rounded up to 64; `offsets` says of which "
          "blocks that is told"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
