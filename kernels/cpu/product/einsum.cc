// SPDX-License-Identifier: Apache-2.0
//
// Einstein summation: products of elements, summed over the labels that the result does not have.
//
// Labels of one operand alone are summed first, and more than two operands are multiplied in pairs. Two that
// share the labels of a matrix product become one. One that only changes its order is copied, and everything
// else is a loop over rows.
#include <algorithm>
#include <string>

#include "rewire/kernels/contract/product.h"
#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/product/einsum_labels.h"
#include "rewire/kernels/cpu/product/einsum_sums.h"
#include "rewire/kernels/cpu/product/matmul.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

using EinsumTypes = Types<float, double, std::int32_t, std::int64_t>;

struct Einsum {
  static constexpr const char* kName = names::kEinsum;
  Equation equation;
  static Status Make(Attributes& attributes, Einsum* einsum) { return einsum->equation.Read(attributes); }

  Status operator()(const TensorList& tensors) const {
    const auto operands = static_cast<int>(equation.operands.size());
    if (tensors.size() != operands + 1)
      return TypeError("expected ", operands, " operands and out, got ", tensors.size(), " arguments");
    const TensorView out = tensors.back();
    Checks checks;
    checks.Dense("out", out);
    ShapeView shapes[kMaxEinsumOperands];
    for (int i = 0; i < operands; ++i) {
      checks.Dense("an operand", tensors[i]).SameDType("an operand", tensors[i], "out", out);
      checks.NoOverlap("out", out, "an operand", tensors[i]);
      shapes[i] = tensors[i].dims();
    }
    if (Status s = checks.Take(); !s.ok()) return s;
    Labels labels;
    if (Status s = labels.Resolve(equation, shapes); !s.ok()) return s;
    if (Status s = CheckShape("out", out, labels.Result().view()); !s.ok()) return s;
    return ForType(EinsumTypes(), "out", out, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      for (int l = 0; l < labels.count; ++l) {
        if (labels.sizes[l] == 0) return FillAll(out.data<T>(), out.size(), T{0});
      }
      if (labels.count > kMaxKernelRank) return Loop<T>(labels, tensors.first(operands), out);
      return Sum<T>(labels, tensors.first(operands), out.data<T>());
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    const auto operands = static_cast<int>(equation.operands.size());
    ShapeView shapes[kMaxEinsumOperands];
    for (int i = 0; i < operands; ++i) {
      const DLTensor* tensor = sizes.Tensor(i);
      if (tensor == nullptr) return false;
      shapes[i] = ShapeView(tensor->shape, static_cast<std::size_t>(tensor->ndim));
    }
    const DLTensor* out = sizes.Tensor(operands);
    if (out == nullptr) return false;
    Labels labels;
    if (!labels.Resolve(equation, shapes).ok()) return false;
    if (operands < 2 || labels.count > kMaxKernelRank) return true;
    Terms terms(operands);
    const std::int64_t element = out->dtype.bits / 8, parts = SizeOfParts(labels, terms);
    if (parts > 0) sizes.Take(parts, element);
    // The sizes of the two operands that are left.
    std::int64_t left = 1, right = 1, terms_of_sum = 1;
    for (int l = 0; l < labels.count; ++l) {
      if ((labels.operands[l] >> terms.live[0] & 1) != 0) left = Times(left, labels.sizes[l]);
      if ((labels.operands[l] >> terms.live[1] & 1) != 0) right = Times(right, labels.sizes[l]);
      if (l >= labels.kept) terms_of_sum = Times(terms_of_sum, labels.sizes[l]);
    }
    // Axes of 1, which broadcast, may stand where a declared one is larger: then batches are rows or columns,
    // what was none is a product, and what lay as it is read has to be copied.
    sizes.Take(left, element);
    sizes.Take(right, element);
    sizes.Take(SizeOf(out), element);
    if (SameDType(out->dtype, DTypeOf<float>())) return true;  // multiplied by panels, which take none
    if (left == 0 || right == 0 || terms_of_sum == 0) return true;
    sizes.TakeGemm(std::max<std::int64_t>(1, left / terms_of_sum),
                   std::max<std::int64_t>(1, right / terms_of_sum), terms_of_sum, out->dtype);
    return true;
  }

 private:
  // The operands that are left, as columns of the labels.
  struct Terms {
    explicit Terms(int operands) : count(operands) {
      for (int i = 0; i < operands; ++i) live[i] = i;
    }
    std::uint32_t Mask() const {
      std::uint32_t mask = 0;
      for (int i = 0; i < count; ++i) mask |= 1U << live[i];
      return mask;
    }
    int live[kMaxEinsumOperands];
    int count;
  };

  // Leaves two operands, and none with a label that is summed and no other operand's. Which ones are joined
  // depends on the equation alone, so that smaller tensors take no more memory. Calls
  // make(part, a, b): operand a becomes the sums of `part` of operands a and b; b is -1 for a alone.
  template <typename Make>
  static Status Join(Labels& labels, Terms& terms, const Make& make) {
    const auto replace = [&](int a, int b) -> Status {
      const std::uint32_t some = 1U << a | (b < 0 ? 0 : 1U << b), others = terms.Mask() & ~some;
      const auto keeps = [&](int l) { return l < labels.kept || (labels.operands[l] & others) != 0; };
      const Labels part = labels.Of(some, keeps);
      if (Status s = make(part, a, b); !s.ok()) return s;
      if (b >= 0) labels.Drop(b);
      labels.Replace(a, part);
      return Status();
    };
    for (int i = 0; i < terms.count; ++i) {
      const std::uint32_t own = 1U << terms.live[i];
      bool sums = false;
      for (int l = labels.kept; l < labels.count; ++l)
        sums |= labels.operands[l] == own && labels.sizes[l] != 1;
      if (!sums) continue;
      if (Status s = replace(terms.live[i], -1); !s.ok()) return s;
    }
    while (terms.count > 2) {
      int first = 0, second = 1, least = kMaxLabels + 1;
      for (int i = 0; i < terms.count; ++i) {
        for (int k = i + 1; k < terms.count; ++k) {
          const std::uint32_t some = 1U << terms.live[i] | 1U << terms.live[k], others = terms.Mask() & ~some;
          int kept = 0;
          for (int l = 0; l < labels.count; ++l) {
            kept +=
                (labels.operands[l] & some) != 0 && (l < labels.kept || (labels.operands[l] & others) != 0);
          }
          if (kept < least) least = kept, first = i, second = k;
        }
      }
      if (Status s = replace(terms.live[first], terms.live[second]); !s.ok()) return s;
      std::copy(terms.live + second + 1, terms.live + terms.count, terms.live + second);
      --terms.count;
    }
    return Status();
  }
  // The elements of all parts that Join makes.
  static std::int64_t SizeOfParts(Labels& labels, Terms& terms) {
    std::int64_t size = 0;
    static_cast<void>(Join(labels, terms, [&](const Labels& part, int, int) {
      size = Plus(size, Product(part.Result().view(), 0, part.kept));
      return Status();
    }));
    return size;
  }

  template <typename T>
  static Status Sum(Labels& labels, const TensorList& operands, T* out) {
    Terms terms(operands.size());
    const T* data[kMaxEinsumOperands] = {};
    for (int i = 0; i < operands.size(); ++i) data[i] = operands[i].data<T>();
    if (operands.size() == 1) {
      if (labels.kept == labels.count) return Reorder(labels, data[0], out);
      return SumProducts<T>(labels, 0, data[0], -1, nullptr, out);
    }
    Labels counted = labels;
    Terms counted_terms = terms;
    T* spare = nullptr;
    if (const std::int64_t size = SizeOfParts(counted, counted_terms); size > 0) {
      if (Status s = Workspace(size, &spare); !s.ok()) return s;
    }
    Status joined = Join(labels, terms, [&](const Labels& part, int a, int b) -> Status {
      T* const to = spare;
      spare += Product(part.Result().view(), 0, part.kept);
      const T* from = data[a];
      data[a] = to;
      return SumProducts<T>(part, a, from, b, b < 0 ? nullptr : data[b], to);
    });
    if (!joined.ok()) return joined;
    const int a = terms.live[0], b = terms.live[1];
    if (IsProduct(labels, a, b)) return Multiply<T>(labels, a, data[a], b, data[b], out);
    return SumProducts<T>(labels, a, data[a], b, data[b], out);
  }

  // A transpose or a diagonal.
  template <typename T>
  static Status Reorder(const Labels& labels, const T* operand, T* out) {
    const Dims dense = DenseStrides(labels.Result().view());
    Layout<2> layout;
    for (int l = 0; l < labels.count; ++l) layout.Append(labels.sizes[l], {dense[l], labels.strides[l][0]});
    layout.Finish();
    return CopyStrided(layout, sizeof(T), out, operand);
  }

  // Whether this is a product of matrices: every summed label is of both operands, and there are rows or
  // columns.
  static bool IsProduct(const Labels& labels, int a, int b) {
    bool sums = false, has_rows = false;
    for (int l = 0; l < labels.count; ++l) {
      if (labels.sizes[l] == 1) continue;
      const bool in_both = labels.strides[l][a] != 0 && labels.strides[l][b] != 0;
      if (l >= labels.kept && !in_both) return false;
      (l < labels.kept ? has_rows : sums) |= l >= labels.kept || !in_both;
    }
    return sums && has_rows;
  }

  // Matrices says how the matrices of a product lie: how far apart their rows are, and the elements for each
  // label of the batch. Elements of a row follow each other.
  template <typename T>
  struct Matrices {
    T* data = nullptr;
    std::int64_t row = 1;
    Dims batch;
  };
  // The labels of a tensor of matrices [batch, rows, columns] without those of size 1, with its strides.
  struct Roles {
    Dims dims[3], strides[3];

    static Dims Join(const Dims (&parts)[3]) {
      Dims all;
      for (const Dims& part : parts) {
        for (const std::int64_t value : part.view()) all.push_back(value);
      }
      return all;
    }
    // The step of one role's labels, taken as one dimension; 0 if they are not evenly apart. 1 where there
    // are none.
    std::int64_t StepOf(int role) const {
      Layout<1> layout;
      for (int i = 0; i < dims[role].rank(); ++i) layout.Append(dims[role][i], {strides[role][i]});
      layout.Finish();
      return layout.rank == 1 ? layout.strides[0][0] : 0;
    }
    // True if the matrices can be multiplied where they lie.
    template <typename T>
    bool InPlace(T* data, Matrices<T>* matrices) const {
      *matrices = {data, StepOf(1), strides[0]};
      return matrices->row != 0 && StepOf(2) == 1;
    }
    // In memory of their own, densely.
    template <typename T>
    Status Apart(Matrices<T>* matrices) const {
      const Dims all = Join(dims);
      const Dims dense = DenseStrides(all.view());
      *matrices = {};
      for (int i = 0; i < dims[0].rank(); ++i) matrices->batch.push_back(dense[i]);
      matrices->row = Product(dims[2].view(), 0, dims[2].rank());
      return Workspace(Product(all.view(), 0, all.rank()), &matrices->data);
    }
    // Between strided and contiguous memory.
    template <typename T>
    Status Rearrange(T* to, const T* from, bool gathers) const {
      const Dims all = Join(dims), apart = Join(strides), dense = DenseStrides(all.view());
      Layout<2> layout;
      for (int i = 0; i < all.rank(); ++i)
        layout.Append(all[i], {gathers ? dense[i] : apart[i], gathers ? apart[i] : dense[i]});
      layout.Finish();
      return CopyStrided(layout, sizeof(T), to, from);
    }
  };

  // An operand's matrices, copied where they are in another order.
  template <typename T>
  static Status Gather(const Roles& roles, const T* operand, Matrices<const T>* matrices) {
    if (roles.InPlace(operand, matrices)) return Status();
    Matrices<T> copy;
    if (Status s = roles.Apart(&copy); !s.ok()) return s;
    *matrices = {copy.data, copy.row, copy.batch};
    return roles.Rearrange(copy.data, operand, true);
  }

  // [batch, m, k] times [batch, k, n].
  template <typename T>
  static Status Multiply(const Labels& labels, int a, const T* data_a, int b, const T* data_b, T* out) {
    enum Role { kBatch, kM, kN, kK };
    Roles left, right, product;
    std::int64_t m = 1, n = 1, k = 1;
    const Dims of_out = DenseStrides(labels.Result().view());
    for (int l = 0; l < labels.count; ++l) {
      const std::int64_t size = labels.sizes[l];
      if (size == 1) continue;
      const std::int64_t in_a = labels.strides[l][a], in_b = labels.strides[l][b];
      const auto add = [&](Roles& roles, int role, std::int64_t stride) {
        roles.dims[role].push_back(size);
        roles.strides[role].push_back(stride);
      };
      const Role role = l >= labels.kept ? kK : in_a == 0 ? kN : in_b == 0 ? kM : kBatch;
      if (role != kN) add(left, role == kBatch ? 0 : role == kM ? 1 : 2, in_a);
      if (role != kM) add(right, role == kBatch ? 0 : role == kK ? 1 : 2, in_b);
      if (role != kK) add(product, role == kBatch ? 0 : role == kM ? 1 : 2, of_out[l]);
      if (role != kBatch) (role == kM ? m : role == kN ? n : k) *= size;
    }
    Matrices<const T> of_a, of_b;
    Matrices<T> to;
    if (Status s = Gather<T>(left, data_a, &of_a); !s.ok()) return s;
    if (Status s = Gather<T>(right, data_b, &of_b); !s.ok()) return s;
    const bool in_place = product.InPlace(out, &to);
    if (!in_place) {
      if (Status s = product.Apart(&to); !s.ok()) return s;
    }
    Layout<3> batches;
    for (int i = 0; i < to.batch.rank(); ++i)
      batches.Append(product.dims[0][i], {to.batch[i], of_a.batch[i], of_b.batch[i]});
    batches.Finish();
    Status s = cpu::Multiply<T>({m, n, k, Matrix<T>{of_a.data, of_a.row, 1},
                                 Matrix<T>{of_b.data, of_b.row, 1}, to.data, to.row, batches});
    if (!s.ok() || in_place) return s;
    return product.Rearrange<T>(out, to.data, false);
  }

  // Element by element, for more labels than a layout has.
  template <typename T>
  static Status Loop(const Labels& labels, const TensorList& operands, TensorView out) {
    using Number = typename EinsumNumber<T>::type;
    std::int64_t index[kMaxLabels] = {};
    std::int64_t offsets[kMaxEinsumOperands] = {};
    const std::int64_t sums = Product(ShapeView(labels.sizes, kMaxLabels), labels.kept, labels.count);
    const std::int64_t size = out.size();
    Pace pace;
    for (std::int64_t o = 0; o < size; ++o) {
      Number sum = 0;
      const bool done = pace.For(sums, 4 * operands.size(), [&](std::int64_t s, std::int64_t end) {
        for (; s < end; ++s) {
          Number product = 1;
          for (int i = 0; i < operands.size(); ++i)
            product *= static_cast<Number>(operands[i].data<T>()[offsets[i]]);
          sum += product;
          Advance(labels, labels.count - 1, operands.size(), index, offsets);
        }
      });
      if (!done) return Stopped();
      out.data<T>()[o] = static_cast<T>(sum);
    }
    return Status();
  }
  // The innermost label is the last; carries go to the result's labels, whose order is out's.
  static void Advance(const Labels& labels, int last, int operands, std::int64_t* index,
                      std::int64_t* offsets) {
    for (int l = last; l >= 0; --l) {
      for (int i = 0; i < operands; ++i) offsets[i] += labels.strides[l][i];
      if (++index[l] < labels.sizes[l]) return;
      index[l] = 0;
      for (int i = 0; i < operands; ++i) offsets[i] -= labels.sizes[l] * labels.strides[l][i];
    }
  }
};

struct EinsumShape {
  static constexpr const char* kName = names::kShapeEinsum;
  Equation equation;
  static Status Make(Attributes& attributes, EinsumShape* einsum) {
    return einsum->equation.Read(attributes);
  }
  Status operator()(const TensorList& tensors) const {
    const auto operands = static_cast<int>(equation.operands.size());
    if (tensors.size() != operands + 1)
      return TypeError("expected ", operands, " shapes and out, got ", tensors.size(), " arguments");
    Dims dims[kMaxEinsumOperands];
    ShapeView shapes[kMaxEinsumOperands];
    for (int i = 0; i < operands; ++i) {
      if (Status s = ReadShape("a shape", tensors[i], &dims[i]); !s.ok()) return s;
      shapes[i] = dims[i].view();
    }
    Labels labels;
    if (Status s = labels.Resolve(equation, shapes); !s.ok()) return s;
    return WriteShape(labels.Result(), tensors.back());
  }
};

}  // namespace

std::span<const Kernel> EinsumKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Einsum>("x... -> out", "f32 f64 i32 i64", "equation",
                       "Einstein summation as numpy has it, with ellipses and with or without ->, of up to 8 "
                       "operands"),
      Describe<EinsumShape>("shapes... -> out", "i64 i32; out i64", "equation",
                            "the shape of rewire.einsum's out"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
