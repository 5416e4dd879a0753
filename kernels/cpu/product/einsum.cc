// SPDX-License-Identifier: Apache-2.0
//
// Einstein summation: products of elements, summed over the labels that the result does not have.
//
// Two operands that share only the labels of a matrix product are converted to a matrix product. Everything
// else is a loop over all labels.
#include <algorithm>
#include <string>
#include <string_view>

#include "rewire/kernels/cpu/movement/strided_copy.h"
#include "rewire/kernels/cpu/product/gemm.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

constexpr int kMaxOperands = 8;
constexpr int kMaxLabels = 2 * kMaxKernelRank;
constexpr char kEllipsis = '.';

// "ij,jk->ik", without spaces and with the result spelled out; "..." is one '.'.
struct Equation {
  std::vector<std::string> operands;
  std::string result;

  Status Read(Attributes& attributes) {
    attributes.Require("equation");
    const std::string given = attributes.String("equation", "");
    std::string text;
    for (char c : given) {
      if (c != ' ') text += c;
    }
    for (std::size_t at; (at = text.find("...")) != std::string::npos;) text.replace(at, 3, 1, kEllipsis);
    const std::size_t arrow = text.find("->");
    std::string_view left = std::string_view(text).substr(0, arrow);
    for (bool more = true; more;) {
      const std::size_t comma = left.find(',');
      operands.emplace_back(left.substr(0, comma));
      more = comma != std::string_view::npos;
      if (more) left = left.substr(comma + 1);
    }
    result = arrow == std::string::npos ? Implied() : text.substr(arrow + 2);
    if (operands.size() > kMaxOperands)
      return ValueError("the equation has more than ", kMaxOperands, " operands");
    for (const std::string& operand : operands) {
      if (!IsTerm(operand)) return ValueError("attribute 'equation' is '", given, "', which is no equation");
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      const bool known = std::any_of(operands.begin(), operands.end(), [&](const std::string& operand) {
        return operand.find(result[i]) != std::string::npos;
      });
      if ((!known && result[i] != kEllipsis) || result.find(result[i], i + 1) != std::string::npos ||
          !IsTerm(result)) {
        return ValueError("attribute 'equation' is '", given,
                          "': its result is no list of different labels of its "
                          "operands");
      }
    }
    return Status();
  }

 private:
  static bool IsTerm(const std::string& term) {
    const auto is_label = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == kEllipsis;
    };
    return std::all_of(term.begin(), term.end(), is_label) &&
           std::count(term.begin(), term.end(), kEllipsis) <= 1;
  }
  // The ellipsis, then every label that stands once, in alphabetical order.
  std::string Implied() const {
    std::string all;
    for (const std::string& operand : operands) all += operand;
    std::string once;
    for (char c : all) {
      if (c != kEllipsis && std::count(all.begin(), all.end(), c) == 1) once += c;
    }
    std::sort(once.begin(), once.end());
    const bool has_ellipsis = all.find(kEllipsis) != std::string::npos;
    return (has_ellipsis ? std::string(1, kEllipsis) : "") + once;
  }
};

// The labels of one call: those of the result first, in its order, then those that are summed.
struct Labels {
  int count = 0;
  int kept = 0;
  char names[kMaxLabels];
  std::int64_t sizes[kMaxLabels];
  std::int64_t strides[kMaxLabels][kMaxOperands];  // 0 where an operand lacks or repeats it

  Status Resolve(const Equation& equation, const ShapeView* shapes) {
    int ellipsis = 0;  // how many axes the longest one stands for
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      const std::string& term = equation.operands[i];
      const bool has = term.find(kEllipsis) != std::string::npos;
      const int rest = static_cast<int>(shapes[i].size()) - static_cast<int>(term.size()) + (has ? 1 : 0);
      if (rest < 0 || (rest > 0 && !has)) {
        return ValueError("operand ", i, " has shape ", shapes[i], ", expected the rank of '", term, "'");
      }
      if (has) ellipsis = std::max(ellipsis, rest);
    }
    const auto add = [&](char name) {
      for (int k = 0; name == kEllipsis && k < ellipsis; ++k) Add(static_cast<char>(k));
      if (name != kEllipsis && Find(name) < 0) Add(name);
    };
    if (equation.result.size() + static_cast<std::size_t>(ellipsis) > kMaxKernelRank)
      return ValueError("the result's rank is over ", kMaxKernelRank);
    for (char name : equation.result) add(name);
    kept = count;
    for (const std::string& term : equation.operands) {
      if (term.find(kEllipsis) != std::string::npos && equation.result.find(kEllipsis) == std::string::npos &&
          Find(0) < 0)
        add(kEllipsis);
      for (char name : term) {
        if (name == kEllipsis) continue;
        if (count + ellipsis >= kMaxLabels)
          return ValueError("the equation has more than ", kMaxLabels, " labels");
        add(name);
      }
    }
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
      if (Status s = Place(equation.operands[i], static_cast<int>(i), shapes[i], ellipsis); !s.ok()) return s;
    }
    return Status();
  }
  Dims Result() const { return Dims(ShapeView(sizes, static_cast<std::size_t>(kept))); }

 private:
  void Add(char name) {
    names[count] = name;
    sizes[count] = 1;
    std::fill_n(strides[count], kMaxOperands, 0);
    ++count;
  }
  int Find(char name) const {
    for (int i = 0; i < count; ++i) {
      if (names[i] == name) return i;
    }
    return -1;
  }
  // Axes of an ellipsis have the names 0, 1, ... and are aligned to the right.
  Status Place(const std::string& term, int operand, ShapeView shape, int ellipsis) {
    const Dims dense = DenseStrides(shape);
    int axis = 0;
    const int own = static_cast<int>(shape.size()) - static_cast<int>(term.size()) + 1;
    for (char name : term) {
      const int axes = name == kEllipsis ? own : 1;
      for (int k = 0; k < axes; ++k, ++axis) {
        const int label = Find(name == kEllipsis ? static_cast<char>(ellipsis - own + k) : name);
        const std::int64_t dim = shape[static_cast<std::size_t>(axis)];
        std::int64_t& size = sizes[label];
        if (dim != size && dim != 1 && size != 1) {
          return ValueError("axis ", axis, " of operand ", operand, " with shape ", shape, " is ", dim,
                            ", expected ", size, " as the label's others");
        }
        if (size == 1) size = dim;
        if (dim != 1) strides[label][operand] += dense[axis];
      }
    }
    return Status();
  }
};

using EinsumTypes = Types<float, double, std::int32_t, std::int64_t>;

struct Einsum {
  static constexpr const char kName[] = "rewire.einsum";
  Equation equation;
  static Status Make(Attributes& attributes, Einsum* einsum) { return einsum->equation.Read(attributes); }

  Status operator()(const TensorList& tensors) const {
    const auto operands = static_cast<int>(equation.operands.size());
    if (tensors.size() != operands + 1)
      return TypeError("expected ", operands, " operands and out, got ", tensors.size(), " arguments");
    const TensorView out = tensors.back();
    Checks checks;
    checks.Dense("out", out);
    ShapeView shapes[kMaxOperands];
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
      if (Status s = FillAll(out.data<T>(), out.size(), T{0}); !s.ok()) return s;
      for (int l = 0; l < labels.count; ++l) {
        if (labels.sizes[l] == 0) return Status();
      }
      if (operands == 2 && IsProduct(labels)) return Multiply<T>(labels, tensors[0], tensors[1], out);
      return Loop<T>(labels, tensors.first(operands), out);
    });
  }
  bool DeclareWorkspace(WorkspaceSizes& sizes) const {
    if (equation.operands.size() != 2) return true;
    const DLTensor *a = sizes.Tensor(0), *b = sizes.Tensor(1), *out = sizes.Tensor(2);
    if (a == nullptr || b == nullptr || out == nullptr) return false;
    ShapeView shapes[] = {ShapeView(a->shape, static_cast<std::size_t>(a->ndim)),
                          ShapeView(b->shape, static_cast<std::size_t>(b->ndim))};
    Labels labels;
    if (!labels.Resolve(equation, shapes).ok()) return false;
    // Axes of 1, which broadcast, may stand where a declared one is larger: then batches are rows or columns,
    // and what was none is a product.
    const std::int64_t element = a->dtype.bits / 8;
    const std::int64_t left = SizeOf(a), right = SizeOf(b);
    sizes.Take(left, element);
    sizes.Take(right, element);
    sizes.Take(SizeOf(out), element);
    std::int64_t terms = 1;
    for (int l = labels.kept; l < labels.count; ++l) terms = Times(terms, labels.sizes[l]);
    if (left == 0 || right == 0 || terms == 0) return true;
    sizes.TakeGemm(std::max<std::int64_t>(1, left / terms), std::max<std::int64_t>(1, right / terms), terms,
                   a->dtype);
    return true;
  }

 private:
  // Whether every summed label is of both operands, so that nothing has to be summed before the product.
  static bool IsProduct(const Labels& labels) {
    for (int l = labels.kept; l < labels.count; ++l) {
      if (labels.sizes[l] != 1 && (labels.strides[l][0] == 0 || labels.strides[l][1] == 0)) return false;
    }
    return true;
  }

  // The labels of one role, as a loop from an operand or from out into contiguous memory.
  template <typename Has>
  static void AppendRole(const Labels& labels, const Has& has, int operand, Dims* dims, Dims* strides) {
    const Dims out = DenseStrides(labels.Result().view());
    for (int l = 0; l < labels.count; ++l) {
      if (labels.sizes[l] == 1 || !has(l)) continue;
      dims->push_back(labels.sizes[l]);
      strides->push_back(operand >= 0 ? labels.strides[l][operand] : out[l]);
    }
  }

  // [batch, m, k] times [batch, k, n], from operands copied into this order where they are not in it.
  template <typename T>
  static Status Multiply(const Labels& labels, TensorView a, TensorView b, TensorView out) {
    const auto in_a = [&](int l) { return labels.strides[l][0] != 0; };
    const auto in_b = [&](int l) { return labels.strides[l][1] != 0; };
    const auto is_batch = [&](int l) { return l < labels.kept && in_a(l) && in_b(l); };
    const auto is_m = [&](int l) { return l < labels.kept && in_a(l) && !in_b(l); };
    const auto is_n = [&](int l) { return l < labels.kept && !in_a(l) && in_b(l); };
    const auto is_k = [&](int l) { return l >= labels.kept; };
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    for (int l = 0; l < labels.count; ++l) {
      std::int64_t& size = is_batch(l) ? batch : is_m(l) ? m : is_n(l) ? n : k;
      size = Times(size, labels.sizes[l]);
    }
    T* left = nullptr;
    T* right = nullptr;
    T* product = nullptr;
    if (Status s = Workspace(Times(batch, m, k), &left); !s.ok()) return s;
    if (Status s = Workspace(Times(batch, k, n), &right); !s.ok()) return s;
    if (Status s = Workspace(Times(batch, m, n), &product); !s.ok()) return s;
    Dims dims[3], strides[3];
    AppendRole(labels, is_batch, 0, &dims[0], &strides[0]);
    AppendRole(labels, is_m, 0, &dims[0], &strides[0]);
    AppendRole(labels, is_k, 0, &dims[0], &strides[0]);
    AppendRole(labels, is_batch, 1, &dims[1], &strides[1]);
    AppendRole(labels, is_k, 1, &dims[1], &strides[1]);
    AppendRole(labels, is_n, 1, &dims[1], &strides[1]);
    AppendRole(labels, is_batch, -1, &dims[2], &strides[2]);
    AppendRole(labels, is_m, -1, &dims[2], &strides[2]);
    AppendRole(labels, is_n, -1, &dims[2], &strides[2]);
    if (Status s = Rearrange(dims[0], strides[0], left, a.data<T>(), true); !s.ok()) return s;
    if (Status s = Rearrange(dims[1], strides[1], right, b.data<T>(), true); !s.ok()) return s;
    if (Status s = FillAll(product, Times(batch, m, n), T{0}); !s.ok()) return s;
    GemmScratch<T> scratch;
    for (std::int64_t i = 0; i < batch; ++i) {
      Status s = Gemm<T>(m, n, k, Matrix<T>{left + i * m * k, k, 1}, Matrix<T>{right + i * k * n, n, 1},
                         product + i * m * n, n, scratch);
      if (!s.ok()) return s;
    }
    return Rearrange(dims[2], strides[2], out.data<T>(), product, false);
  }
  // Between strided and contiguous memory.
  template <typename T>
  static Status Rearrange(const Dims& dims, const Dims& strides, T* to, const T* from, bool gathers) {
    const Dims dense = DenseStrides(dims.view());
    Layout<2> layout;
    for (int i = 0; i < dims.rank(); ++i)
      layout.Append(dims[i], {gathers ? dense[i] : strides[i], gathers ? strides[i] : dense[i]});
    layout.Finish();
    return CopyStrided(layout, sizeof(T), to, from);
  }

  template <typename T>
  static Status Loop(const Labels& labels, const TensorList& operands, TensorView out) {
    using Number = std::conditional_t<std::is_integral_v<T>,
                                      std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>,
                                      T>;  // integers wrap
    std::int64_t index[kMaxLabels] = {};
    std::int64_t offsets[kMaxOperands] = {};
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
  static constexpr const char kName[] = "rewire.shape.einsum";
  Equation equation;
  static Status Make(Attributes& attributes, EinsumShape* einsum) {
    return einsum->equation.Read(attributes);
  }
  Status operator()(const TensorList& tensors) const {
    const auto operands = static_cast<int>(equation.operands.size());
    if (tensors.size() != operands + 1)
      return TypeError("expected ", operands, " shapes and out, got ", tensors.size(), " arguments");
    Dims dims[kMaxOperands];
    ShapeView shapes[kMaxOperands];
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
