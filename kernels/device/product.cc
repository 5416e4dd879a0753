// SPDX-License-Identifier: Apache-2.0
// Products of matrices: numpy's matmul and ONNX Gemm.
#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/contract/names.h"
#include "rewire/kernels/contract/product_attributes.h"
#include "rewire/kernels/cpu/shape/shape_error.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cuda_libraries/libraries.h"
#include "rewire/kernels/device/call/device_call.h"
#include "rewire/kernels/device/product_arguments.h"
#include "rewire/kernels/device/registry.h"

namespace rewire::kernel::device {
namespace {

bool DeclareCublas(cpu::WorkspaceSizes& sizes) {
  cuda_libraries::DeclareScratch(cuda_libraries::CublasMayWork(), sizes);
  return true;
}

struct MatMul {
  static constexpr const char* kName = names::kOnDevice<names::kMatMul>;
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const { return DeclareCublas(sizes); }
  Status operator()(TensorView a, TensorView b, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("a", a, out).Beside("b", b, out).Real("a", a).SameDType("b", b, "a", a);
    if (Status s = checks.SameDType("out", out, "a", a).Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = cpu::MatMulDims(a.dims(), b.dims(), &expected); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    std::int64_t batches = 0;
    const ProductArguments product = MatMulArguments(a.dims(), b.dims(), out.dims(), &batches);
    return RunProduct(a, b, std::nullopt, out, product, batches);
  }
};

struct Gemm : contract::GemmAttributes {
  static constexpr const char* kName = names::kOnDevice<names::kGemm>;
  int activation = kNoActivation;
  static Status Make(Attributes& attributes, Gemm* gemm) {
    gemm->Read(attributes);
    // In the order of ProductActivation.
    gemm->activation = attributes.Choice("activation", {"none", "relu", "gelu_tanh"}, 0);
    return Status();
  }
  bool DeclareWorkspace(cpu::WorkspaceSizes& sizes) const { return DeclareCublas(sizes); }
  Status operator()(TensorView a, TensorView b, std::optional<TensorView> c, TensorView out) const {
    DeviceChecks checks;
    checks.On("out", out).Beside("a", a, out).Beside("b", b, out).Real("a", a).SameDType("b", b, "a", a);
    checks.SameDType("out", out, "a", a);
    if (c) checks.Beside("c", *c, out).SameDType("c", *c, "a", a);
    if (Status s = checks.Take(); !s.ok()) return s;
    Dims expected;
    if (Status s = ProductSizes(a.dims(), b.dims(), &expected, cpu::kShapeError); !s.ok()) return s;
    if (Status s = cpu::CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t m = expected[0], n = expected[1], k = a.dim(transpose_a ? 0 : 1);
    ProductArguments product{};
    product.m = static_cast<int>(m);
    product.n = static_cast<int>(n);
    product.k = static_cast<int>(k);
    product.a_row = static_cast<int>(transpose_a ? 1 : k);
    product.a_column = static_cast<int>(transpose_a ? m : 1);
    product.b_row = static_cast<int>(transpose_b ? 1 : n);
    product.b_column = static_cast<int>(transpose_b ? k : 1);
    product.alpha = static_cast<float>(alpha);
    product.beta = static_cast<float>(beta);
    product.activation = activation;
    if (c) {
      if (!contract::BroadcastsTo(c->dims(), out.dims()))
        return ValueError("c has shape ", c->dims(), ", which does not broadcast to ", out.dims());
      product.has_c = 1;
      const bool rows = c->ndim() == 2 && c->dim(0) != 1;
      const bool columns = c->ndim() >= 1 && c->dim(c->ndim() - 1) != 1;
      product.c_column = columns ? 1 : 0;
      product.c_row = rows ? static_cast<int>(c->dim(1)) : 0;
    }
    if (out.size() == 0) return Status();
    return RunProduct(a, b, c, out, product, 1);
  }
};

}  // namespace

std::span<const Kernel> ProductKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Gemm>("a, b, c? -> out", "f32 f16",
                     "alpha = 1.0, beta = 1.0, transA = 0, transB = 0, activation = none, relu or gelu_tanh",
                     "alpha * a b + beta * c with a and b transposed on demand; c broadcasts to [M, N]; then "
                     "the activation",
                     REWIRE_KERNEL_DEVICE_WORKSPACE),
      Describe<MatMul>(
          "a, b -> out", "f32 f16", "",
          "numpy's matmul: leading dimensions broadcast, rank 1 is a row on the left, a column on the "
          "right",
          REWIRE_KERNEL_DEVICE_WORKSPACE),
  };
  return kKernels;
}

}  // namespace rewire::kernel::device
