// SPDX-License-Identifier: Apache-2.0
//
// Multiplies rows by a packed matrix, adds a bias and applies an activation.
#include <algorithm>
#include <dnnl.hpp>
#include <optional>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/onednn/engine.h"
#include "rewire/kernels/onednn/fused.h"
#include "rewire/kernels/onednn/packed_weights.h"
#include "rewire/kernels/onednn/prepared.h"
#include "rewire/kernels/onednn/registry.h"

namespace rewire::kernel::onednn {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;
using Forward = dnnl::matmul;

// Packing and running must agree on all of a MatMulSpec.
struct MatMulSpec {
  std::int64_t depth = 1;    // K
  std::int64_t columns = 1;  // N
  std::int64_t rows = 128;   // of x, that the layout is chosen for

  void Read(Attributes& attributes) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    attributes.Require("depth");
    attributes.Require("columns");
    depth = attributes.Int("depth", 1, 1, kMost);
    columns = attributes.Int("columns", 1, 1, kMost);
    rows = attributes.Int("rows", 128, 1, kMost);
  }

  Forward::primitive_desc Describe(std::int64_t count, const Desc& weights,
                                   const dnnl::primitive_attr& attributes) const {
    const Forward::desc wanted(Desc({count, depth}, Type::f32, Tag::ab), weights,
                               Desc({1, columns}, Type::f32, Tag::ab),
                               Desc({count, columns}, Type::f32, Tag::ab));
    return Forward::primitive_desc(wanted, attributes, Engine());
  }

  Desc BestLayout() const {
    return Describe(rows, Desc({depth, columns}, Type::f32, Tag::any), UserScratch()).weights_desc();
  }
};

struct PackMatMul {
  static constexpr const char* kName = names::kOneDnnPackMatMul;
  MatMulSpec spec;
  bool transposed = false;
  Desc layout;

  static Status Make(Attributes& attributes, PackMatMul* pack) {
    pack->spec.Read(attributes);
    pack->transposed = attributes.Bool("transposed", false);
    return Guarded([&] {
      pack->layout = pack->spec.BestLayout();
      return Status();
    });
  }

  Status operator()(TensorView w, RewireFFIAny* result) const {
    const std::int64_t shape[] = {transposed ? spec.columns : spec.depth,
                                  transposed ? spec.depth : spec.columns};
    cpu::Checks checks;
    if (Status s = checks.Dense("w", w).Shape("w", w, ShapeView(shape, 2)).Take(); !s.ok()) return s;
    if (!w.Is<float>()) return TypeError("w has dtype ", DTypeName(w.dtype()), ", expected f32");
    return Guarded([&] {
      const Desc plain({spec.depth, spec.columns}, Type::f32, transposed ? Tag::ba : Tag::ab);
      return Pack(plain, w.raw_data(), layout, result);
    });
  }
};

struct MatMul {
  static constexpr const char* kName = names::kOneDnnMatMul;
  MatMulSpec spec;
  Activation activation;
  Desc layout;

  static Status Make(Attributes& attributes, MatMul* matmul) {
    matmul->spec.Read(attributes);
    matmul->activation.Read(attributes);
    return Guarded([&] {
      matmul->layout = matmul->spec.BestLayout();
      return Status();
    });
  }

  Status operator()(TensorView x, TensorView w, TensorView bias, TensorView out) const {
    cpu::Checks checks;
    checks.Dense("x", x).Dense("bias", bias).Dense("out", out).NoOverlap("out", out, "x", x);
    checks.Shape("bias", bias, ShapeView(&spec.columns, 1))
        .SameDType("bias", bias, "x", x)
        .SameDType("out", out, "x", x);
    if (Status s = checks.Take(); !s.ok()) return s;
    if (!x.Is<float>()) return TypeError("x has dtype ", DTypeName(x.dtype()), ", expected f32");
    if (x.ndim() < 1 || x.dim(x.ndim() - 1) != spec.depth) {
      return ValueError("x has shape ", x.dims(), ", expected [..., ", spec.depth, "]");
    }
    cpu::Dims expected(x.dims());
    expected[x.ndim() - 1] = spec.columns;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (Status s = CheckPacked("w", w, layout); !s.ok()) return s;
    if (x.size() == 0) return Status();
    return Guarded([&] { return Run(x, w, bias, out); });
  }

 private:
  Status Run(TensorView x, TensorView w, TensorView bias, TensorView out) const {
    const ProgramThreads threads;
    const std::int64_t rows = x.size() / spec.depth;
    constexpr std::int64_t kLeastRows = 64;
    const std::int64_t most = std::max(kLeastRows, kMostAtOnce / cpu::Times(spec.depth, spec.columns));
    Scratchpad scratch;
    cpu::Pace pace;
    for (std::int64_t first = 0; first < rows; first += most) {
      if (first > 0 && !pace.Spend(cpu::kPace)) return cpu::Stopped();
      const std::int64_t count = std::min(most, rows - first);
      Status s = Get(count)->Run(x.data<float>() + first * spec.depth, w, bias,
                                 out.data<float>() + first * spec.columns, scratch);
      if (!s.ok()) return s;
    }
    return Status();
  }

  // Get prepares for so many rows.
  Prepared* Get(std::int64_t rows) const {
    PreparedCache& cache = PreparedCache::OfThisKernel();
    Prepared* prepared = cache.Find(ShapeView(&rows, 1));
    if (prepared != nullptr) return prepared;
    dnnl::primitive_attr attributes = UserScratch();
    activation.AppendTo(&attributes);
    return cache.Add(ShapeView(&rows, 1), Prepared::Make<Forward>(spec.Describe(rows, layout, attributes)));
  }
};

}  // namespace

std::span<const cpu::Kernel> MatMulKernels() {
  static constexpr cpu::Kernel kKernels[] = {
      cpu::Describe<PackMatMul>("w", "f32", "depth, columns, rows = 128, transposed = 0",
                                "returns w [depth, columns], or transposed, in the layout that matmul reads"),
      cpu::Describe<MatMul>(
          "x, w, bias -> out", "x, bias, out f32; w u8", "depth, columns, rows = 128",
          "x [..., depth] by w, plus bias [columns], then the activation (activation, alpha, beta)"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::onednn
