// SPDX-License-Identifier: Apache-2.0
//
// Shape functions. They take shapes as i64 tensors of rank 1 and return the shape of the operator's output.
// An executable calls them to allocate outputs whose shape is known only during the run.
#include <algorithm>
#include <string>

#include "rewire/kernels/contract/indexing_attributes.h"
#include "rewire/kernels/contract/movement_attributes.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/contract/shape.h"
#include "rewire/kernels/cpu/convolution/conv.h"
#include "rewire/kernels/cpu/convolution/window.h"
#include "rewire/kernels/cpu/reduction/reduce.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/with_attributes.h"

namespace rewire::kernel::cpu {
namespace {

struct BroadcastShape {
  static constexpr const char* kName = names::kShapeBroadcast;
  Status operator()(const TensorList& tensors) const {
    if (tensors.size() < 2)
      return TypeError("expected at least one shape and out, got ", tensors.size(), " arguments");
    Dims result;
    for (int i = 0; i + 1 < tensors.size(); ++i) {
      Dims next;
      if (Status s = ReadShape("a shape", tensors[i], &next); !s.ok()) return s;
      if (Status s = BroadcastDims(result.view(), next.view(), &result); !s.ok()) return s;
    }
    return WriteShape(result, tensors.back());
  }
};

struct MatMulShape {
  static constexpr const char* kName = names::kShapeMatMul;
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    Dims left, right, result;
    if (Status s = ReadShape("a", a, &left); !s.ok()) return s;
    if (Status s = ReadShape("b", b, &right); !s.ok()) return s;
    if (Status s = MatMulDims(left.view(), right.view(), &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct DenseShape {
  static constexpr const char* kName = names::kShapeDense;
  bool transposed = true;
  static Status Make(Attributes& attributes, DenseShape* dense) {
    dense->transposed = attributes.Bool("transpose_w", true);
    return Status();
  }
  Status operator()(TensorView x, TensorView w, TensorView out) const {
    Dims input, weights, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("w", w, &weights); !s.ok()) return s;
    Status s = contract::DenseSizes(input.view(), weights.view(), transposed, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct ConvShape {
  static constexpr const char* kName = names::kShapeConv;
  ConvAttributes attributes;
  static Status Make(Attributes& given, ConvShape* conv) { return conv->attributes.Read(given); }
  Status operator()(TensorView x, TensorView w, TensorView out) const {
    return WriteConvShape(attributes, x, w, out);
  }
};

struct PoolShape {
  static constexpr const char* kName = names::kShapePool;
  WindowAttributes attributes;
  static Status Make(Attributes& given, PoolShape* pool) {
    pool->attributes.Read(given, true, true);
    return pool->attributes.Check();
  }
  Status operator()(TensorView x, TensorView out) const {
    Dims input;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    Window window;
    if (Status s = attributes.Resolve(input.view(), &window); !s.ok()) return s;
    return WriteShape(window.OutputDims(input[0], input[1]), out);
  }
};

struct ConcatShape : WithAttributes<contract::ConcatAttributes> {
  static constexpr const char* kName = names::kShapeConcat;
  Status operator()(const TensorList& tensors) const {
    if (tensors.size() < 2)
      return TypeError("expected at least one shape and out, got ", tensors.size(), " arguments");
    Dims result;
    if (Status s = ReadShape("a shape", tensors[0], &result); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, result.rank(), &along); !s.ok()) return s;
    for (int i = 1; i + 1 < tensors.size(); ++i) {
      Dims next;
      if (Status s = ReadShape("a shape", tensors[i], &next); !s.ok()) return s;
      if (Status s = ConcatDims(result.view(), next.view(), along, i, &result); !s.ok()) return s;
    }
    return WriteShape(result, tensors.back());
  }
};

struct ReduceShape {
  static constexpr const char* kName = names::kShapeReduce;
  ReduceAttributes attributes;
  static Status Make(Attributes& given, ReduceShape* reduce) {
    reduce->attributes.Read(given);
    return Status();
  }
  Status operator()(TensorView x, std::optional<TensorView> axes, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    bool reduced[kMaxKernelRank];
    if (Status s = attributes.Resolve(input.view(), axes, reduced, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

// ONNX Reshape: 0 takes x's dimension (unless allowzero), one -1 what is left.
struct SameSize {
  static constexpr const char* kName = names::kShapeSame;
  std::string what;
  static Status Make(Attributes& attributes, SameSize* same) {
    same->what = attributes.String("what", "the sizes");
    return Status();
  }
  Status operator()(TensorView sizes, TensorView out) const {
    Dims given;
    if (Status s = ReadInts("sizes", sizes, &given); !s.ok()) return s;
    if (given.rank() == 0) return ValueError("sizes is empty");
    for (const std::int64_t size : given.view()) {
      if (size != given[0]) return ValueError(what, " are ", given.view(), ", expected to be equal");
    }
    if (Status s = Checks().Dense("out", out).Rank("out", out, 0).Take(); !s.ok()) return s;
    if (!out.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out);
    *out.data<std::int64_t>() = given[0];
    return Status();
  }
};

struct ReshapeShape {
  static constexpr const char* kName = names::kShapeReshape;
  bool allow_zero = false;
  static Status Make(Attributes& attributes, ReshapeShape* reshape) {
    reshape->allow_zero = attributes.Bool("allowzero", false);
    return Status();
  }
  Status operator()(TensorView x, TensorView target, TensorView out) const {
    Dims input, wanted, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadInts("target", target, &wanted); !s.ok()) return s;
    const auto quotient = [](std::int64_t left, std::int64_t known) {
      return left % known == 0 ? std::optional(left / known) : std::nullopt;
    };
    Status s =
        contract::ReshapedSizes(input.view(), wanted.view(), allow_zero, quotient, &result, kShapeError);
    return s.ok() ? WriteShape(result, out) : std::move(s);
  }
};

struct TransposeShape : WithAttributes<contract::TransposeAttributes> {
  static constexpr const char* kName = names::kShapeTranspose;
  Status operator()(TensorView x, TensorView out) const {
    Dims input, order, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = PermutedDims(input.view(), perm, &order, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct SliceShape {
  static constexpr const char* kName = names::kShapeSlice;
  Status operator()(TensorView x, TensorView starts, TensorView ends, std::optional<TensorView> axes,
                    std::optional<TensorView> steps, TensorView out) const {
    Dims input, first, last, along, by;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadInts("starts", starts, &first); !s.ok()) return s;
    if (Status s = ReadInts("ends", ends, &last); !s.ok()) return s;
    if (axes) {
      if (Status s = ReadInts("axes", *axes, &along); !s.ok()) return s;
    }
    if (steps) {
      if (Status s = ReadInts("steps", *steps, &by); !s.ok()) return s;
    }
    SliceRange range;
    Status s = SliceDims(input.view(), first.view(), last.view(), along.view(), by.view(), &range);
    return s.ok() ? WriteShape(range.dims, out) : std::move(s);
  }
};

struct GatherShape : WithAttributes<contract::GatherAttributes> {
  static constexpr const char* kName = names::kShapeGather;
  Status operator()(TensorView x, TensorView indices, TensorView out) const {
    Dims input, picks, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = ReadShape("indices", indices, &picks); !s.ok()) return s;
    int along = 0;
    if (Status s = NormalizeAxis(axis, input.rank(), &along); !s.ok()) return s;
    if (Status s = GatherDims(input.view(), picks.view(), along, &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct PadShape : WithAttributes<contract::PadAttributes> {
  static constexpr const char* kName = names::kShapePad;
  Status operator()(TensorView x, TensorView out) const {
    Dims input, result;
    if (Status s = ReadShape("x", x, &input); !s.ok()) return s;
    if (Status s = PaddedDims(input.view(), ShapeView(pads.data(), pads.size()), &result); !s.ok()) return s;
    return WriteShape(result, out);
  }
};

struct ArangeShape {
  static constexpr const char* kName = names::kShapeArange;
  Status operator()(TensorView start, TensorView limit, TensorView delta, TensorView out) const {
    const std::pair<const char*, TensorView> scalars[] = {
        {"start", start}, {"limit", limit}, {"delta", delta}};
    for (const auto& [name, scalar] : scalars) {
      if (Status s = Checks().Dense(name, scalar).SameDType(name, scalar, "start", start).Take(); !s.ok())
        return s;
      if (scalar.size() != 1) return ValueError(name, " has shape ", scalar.dims(), ", expected one element");
    }
    std::int64_t count = 0;
    if (Status s = ArangeCount(start, limit, delta, &count); !s.ok()) return s;
    return WriteShape(Dims(ShapeView(&count, 1)), out);
  }
};

// StorageBytes computes the size that AllocStorage asks for.
struct StorageBytes {
  static constexpr const char* kName = names::kShapeBytes;
  std::int64_t element_bytes = 1;
  static Status Make(Attributes& attributes, StorageBytes* bytes) {
    attributes.Require("element_bytes");
    bytes->element_bytes = attributes.Int("element_bytes", 1, 1, 1024);
    return Status();
  }
  Status operator()(TensorView shape, TensorView out) const {
    Dims dims;
    if (Status s = ReadShape("shape", shape, &dims); !s.ok()) return s;
    if (Status s = Checks().Dense("out", out).Rank("out", out, 0).Take(); !s.ok()) return s;
    if (!out.Is<std::int64_t>()) return WrongDType(Types<std::int64_t>(), "out", out);
    std::int64_t bytes = element_bytes;
    for (std::int64_t dim : dims.view()) {
      if (__builtin_mul_overflow(bytes, dim, &bytes))
        return ValueError("shape ", dims.view(), " has too many elements");
    }
    *out.data<std::int64_t>() = bytes;
    return Status();
  }
};

constexpr const char kInts[] = "i64 i32; out i64";

}  // namespace

std::span<const Kernel> ShapeFunctionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<BroadcastShape>("shapes... -> out", kInts, "", "numpy's broadcast of all of them", kGrows),
      Describe<MatMulShape>("a, b -> out", kInts, "", "of rewire.matmul", kGrows),
      Describe<DenseShape>("x, w -> out", kInts, "transpose_w = 1", "of rewire.dense", kGrows),
      Describe<ConvShape>("x, w -> out", kInts, "as rewire.conv", "of rewire.conv and rewire.conv_integer",
                          kGrowsWithFirst),
      Describe<PoolShape>("x -> out", kInts, "as rewire.max_pool", "of the pools", kGrowsWithFirst),
      Describe<ConcatShape>("shapes... -> out", kInts, "axis", "of rewire.concat", kGrows),
      Describe<ReduceShape>("x, axes? -> out", kInts, "as rewire.reduce_sum", "of the reductions",
                            kGrowsWithFirst),
      Describe<SameSize>("sizes -> out", kInts, "what = the sizes",
                         "the one size that all of them are (rank 0); an error names what differs"),
      Describe<ReshapeShape>(
          "x, target -> out", kInts, "allowzero = 0",
          "target with its 0 replaced by x's dimension (but for allowzero) and its -1 by what is "
          "left",
          kGrowsWithFirst),
      Describe<TransposeShape>("x -> out", kInts, "perm = reversed", "of rewire.transpose", kGrows),
      Describe<SliceShape>("x, starts, ends, axes?, steps? -> out", kInts, "", "of rewire.slice", kShrinks),
      Describe<GatherShape>("x, indices -> out", kInts, "axis = 0", "of rewire.gather", kGrows),
      Describe<PadShape>("x -> out", kInts, "pads", "of rewire.pad", kGrowsWithFirst),
      Describe<ArangeShape>("start, limit, delta -> out", "f32 f64 i64 i32; out i64", "", "of rewire.arange"),
      Describe<StorageBytes>("shape -> out", kInts, "element_bytes",
                             "the bytes of a tensor of the shape, out of rank 0", kGrows),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
