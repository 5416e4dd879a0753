// SPDX-License-Identifier: Apache-2.0
//
// The engine of elementwise kernels: out[i] = op(in0[i], in1[i], ...), with numpy's broadcasting.
//
// Inputs and output may be strided. The output may be one of the inputs, with the same memory, shape, strides
// and element size. Any other overlap is refused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "rewire/kernels/cpu/elementwise/join_rows.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"
#include "rewire/kernels/cpu/support/wide_loop.h"

namespace rewire::kernel::cpu {

// Elements of one operand along the innermost dimension.
template <typename T>
struct RowOf {
  T* data;
  std::int64_t step;  // in elements; 0 repeats one
};

// Stands before a loop whose output covers an input exactly or not at all, which Elementwise::Check has made
// sure of. The compiler then vectorizes operations in place as well. Otherwise it would test for overlap,
// find one, and compute one element at a time.
#if defined(__clang__)
#define REWIRE_ELEMENTS_APART _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define REWIRE_ELEMENTS_APART _Pragma("GCC ivdep")
#else
#define REWIRE_ELEMENTS_APART
#endif

// Contiguous elements. A function of its own, because compilers do not vectorize the loop in a branch of a
// kernel that they take for a rare one.
template <typename Op, typename Out, typename... Ins>
[[gnu::noinline]] void RunContiguous(const Op op, std::int64_t count, Out* out, const Ins*... in) {
  WideLoop([=] {
    REWIRE_ELEMENTS_APART
    for (std::int64_t i = 0; i < count; ++i) out[i] = op(in[i]...);
  });
}

// One run of elements. The common patterns have loops of their own, which the compiler vectorizes.
template <typename Op, typename Out, typename A>
void RunRow(const Op op, std::int64_t count, RowOf<Out> out, RowOf<A> a) {
  if (out.step == 1 && a.step == 1) {
    RunContiguous(op, count, out.data, a.data);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out.data[i * out.step] = op(a.data[i * a.step]);
  }
}

template <typename Op, typename Out, typename A, typename B>
void RunRow(const Op op, std::int64_t count, RowOf<Out> out, RowOf<A> a, RowOf<B> b) {
  if (out.step == 1 && a.step == 1 && b.step == 1) {
    RunContiguous(op, count, out.data, a.data, b.data);
  } else if (out.step == 1 && a.step == 1 && b.step == 0) {
    RunContiguous([op, repeated = *b.data](A x) { return op(x, repeated); }, count, out.data, a.data);
  } else if (out.step == 1 && a.step == 0 && b.step == 1) {
    RunContiguous([op, repeated = *a.data](B x) { return op(repeated, x); }, count, out.data, b.data);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      out.data[i * out.step] = op(a.data[i * a.step], b.data[i * b.step]);
    }
  }
}

template <typename Op, typename Out, typename A, typename B, typename C>
void RunRow(const Op op, std::int64_t count, RowOf<Out> out, RowOf<A> a, RowOf<B> b, RowOf<C> c) {
  if (out.step == 1 && a.step == 1 && b.step == 1 && c.step == 1) {
    RunContiguous(op, count, out.data, a.data, b.data, c.data);
  } else if (out.step == 1 && a.step == 1 && b.step == 1 && c.step == 0) {
    RunContiguous([op, repeated = *c.data](A x, B y) { return op(x, y, repeated); }, count, out.data, a.data,
                  b.data);
  } else if (out.step == 1 && a.step == 1 && b.step == 0 && c.step == 1) {
    RunContiguous([op, repeated = *b.data](A x, C y) { return op(x, repeated, y); }, count, out.data, a.data,
                  c.data);
  } else if (out.step == 1 && a.step == 1 && b.step == 0 && c.step == 0) {
    RunContiguous([op, second = *b.data, third = *c.data](A x) { return op(x, second, third); }, count,
                  out.data, a.data);
  } else if (out.step == 1 && a.step == 0 && b.step == 1 && c.step == 1) {
    RunContiguous([op, repeated = *a.data](B x, C y) { return op(repeated, x, y); }, count, out.data, b.data,
                  c.data);
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      out.data[i * out.step] = op(a.data[i * a.step], b.data[i * b.step], c.data[i * c.step]);
    }
  }
}

// An operation on elements of type T, in the type that computations use.
template <typename T, typename Op>
auto OnElements(const Op& op) {
  return [op](auto... x) { return static_cast<T>(op(static_cast<Computed<T>>(x)...)); };
}

// A function of rows of floats on elements of type T: 16-bit floats are computed as floats, in blocks.
template <typename T, typename Row>
auto OnRows(const Row& row) {
  return [row](const T* in, T* out, std::int64_t count) {
    if constexpr (std::is_same_v<T, float>) {
      row(in, out, count);
    } else {
      float block[256];
      for (std::int64_t at = 0; at < count; at += std::ssize(block)) {
        const std::int64_t size = std::min<std::int64_t>(count - at, std::ssize(block));
        for (std::int64_t i = 0; i < size; ++i) block[i] = static_cast<float>(in[at + i]);
        row(block, block, size);
        for (std::int64_t i = 0; i < size; ++i) out[at + i] = T(block[i]);
      }
    }
  };
}

// One elementwise operation: first check, then run with the element types that the kernel has found.
template <int kInputs>
class Elementwise {
 public:
  Elementwise(TensorView out, const TensorView (&inputs)[kInputs], const char* const (&names)[kInputs])
      : out_(out) {
    std::copy_n(inputs, kInputs, inputs_);
    std::copy_n(names, kInputs, names_);
  }

  // Checks memory, shapes and overlap. The kernel checks dtypes.
  Status Check() {
    if (Status s = CheckHost("out", out_); !s.ok()) return s;
    flat_ = IsFlat();
    if (flat_) [[likely]]
      return Status();
    for (int k = 0; k < kInputs; ++k) {
      if (Status s = CheckHost(names_[k], inputs_[k]); !s.ok()) return s;
    }
    size_ = out_.size();
    Dims expected(inputs_[0].dims());
    for (int k = 1; k < kInputs; ++k) {
      if (Status s = BroadcastDims(expected.view(), inputs_[k].dims(), &expected); !s.ok()) return s;
    }
    if (Status s = CheckShape("out", out_, expected.view()); !s.ok()) return s;
    for (int k = 0; k < kInputs; ++k) {
      if (Status s = CheckInPlace("out", out_, names_[k], inputs_[k]); !s.ok()) return s;
    }
    return Status();
  }

  // The operation is given two inputs in the other order from here on, so that a < b also serves b > a.
  void Swap() {
    static_assert(kInputs == 2);
    std::swap(inputs_[0], inputs_[1]);
    std::swap(names_[0], names_[1]);
  }

  // For one input: calls row(in, out, count) with contiguous elements. Strided elements are passed one at a
  // time.
  template <typename Out, typename In, typename Row>
  Status RunRows(const Row& row) const {
    static_assert(kInputs == 1);
    if (size_ == 0) return Status();
    if (flat_ && size_ <= kGrain) {
      row(inputs_[0].template data<In>(), out_.data<Out>(), size_);
      return Status();
    }
    const auto layout = MakeLayout();
    const std::int64_t* steps = layout.inner_strides();
    return ForEachRow(layout, [&](const std::int64_t* offsets, std::int64_t count) {
      Out* to = out_.data<Out>() + offsets[0];
      const In* from = inputs_[0].template data<In>() + offsets[1];
      if (steps[0] == 1 && steps[1] == 1) {
        row(from, to, count);
      } else {
        for (std::int64_t i = 0; i < count; ++i) row(from + i * steps[1], to + i * steps[0], 1);
      }
    });
  }

  // loop.Run<float, float, float>(op): the output's element type, then each input's. Only after Check.
  template <typename Out, typename... Ins, typename Op>
  Status Run(const Op& op) const {
    static_assert(sizeof...(Ins) == kInputs);
    return size_ == 0 ? Status() : RunIndexed<Out, Ins...>(op, std::index_sequence_for<Ins...>());
  }

 private:
  // Tests for the common case in one pass over the dimensions: all tensors have one shape, are contiguous,
  // and are the same or apart. The inputs are on the host. The shape is out's, which is checked already.
  // Stores the number of elements in size_.
  [[gnu::always_inline]] bool IsFlat() {
    const int rank = out_.ndim();
    for (TensorView input : inputs_) {
      if (input.ndim() != rank || !input.IsOnHost()) return false;
    }
    size_ = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const std::int64_t dim = out_.dim(i);
      bool dense = dim == 1 || IsStep(out_, i, size_);
      for (TensorView input : inputs_) {
        dense = dense && input.dim(i) == dim && (dim == 1 || IsStep(input, i, size_));
      }
      if (!dense) return false;
      size_ *= dim;
    }
    for (TensorView input : inputs_) {
      const bool in_place =
          input.raw_data() == out_.raw_data() && input.element_bytes() == out_.element_bytes();
      if (!in_place && OverlapOfSize(out_, input, size_, size_)) return false;
    }
    return true;
  }
  static bool IsStep(TensorView tensor, int i, std::int64_t step) {
    return tensor.dl_tensor()->strides == nullptr || tensor.stride(i) == step;
  }

  Layout<kInputs + 1> MakeLayout() const {
    const int rank = out_.ndim();
    std::int64_t by_operand[kInputs + 1][kMaxKernelRank];
    BroadcastStrides(out_, rank, by_operand[0]);
    for (int k = 0; k < kInputs; ++k) BroadcastStrides(inputs_[k], rank, by_operand[k + 1]);
    Layout<kInputs + 1> layout;
    for (int i = 0; i < rank; ++i) {
      std::int64_t strides[kInputs + 1];
      for (int k = 0; k <= kInputs; ++k) strides[k] = by_operand[k][i];
      layout.Append(out_.dim(i), strides);
    }
    layout.Finish();
    return layout;
  }

  template <typename Out, typename... Ins, typename Op, std::size_t... I>
  Status RunIndexed(const Op& op, std::index_sequence<I...>) const {
    if (flat_ && size_ <= kGrain) {
      RunContiguous(op, size_, out_.data<Out>(), inputs_[I].template data<const Ins>()...);
      return Status();
    }
    return EachRun(
        [](const void* op, const Runs& runs) {
          for (std::int64_t r = 0; r < runs.runs; ++r)
            RunRow(*static_cast<const Op*>(op), runs.count, Row<Out>(runs, 0, r),
                   Row<const Ins>(runs, I + 1, r)...);
        },
        &op);
  }

  // Runs that follow each other. Operand k begins at element offsets[k] of data[k].
  struct Runs {
    void* const* data;
    const std::int64_t *offsets, *steps, *next;
    std::int64_t count;
    std::int64_t runs;
  };
  // Element types and operations are many, and what goes over the dimensions knows neither: it is compiled
  // once, not once for each pair of them, which would take minutes.
  Status EachRun(void (*each)(const void* op, const Runs& runs), const void* op) const {
    const auto layout = MakeLayout();
    const std::int64_t *steps = layout.inner_strides(), *next = layout.next_strides();
    void* data[kInputs + 1] = {out_.raw_data()};
    std::int64_t bytes[kInputs + 1] = {out_.element_bytes()};
    for (int k = 0; k < kInputs; ++k) {
      data[k + 1] = inputs_[k].raw_data();
      bytes[k + 1] = inputs_[k].element_bytes();
    }
    const bool joins = layout.rank > 1 && CanJoinRows(kInputs + 1, layout.inner(), steps, next, bytes);
    return ForEachRow(layout, [&](const std::int64_t* offsets, std::int64_t count, std::int64_t runs) {
      if (joins && runs >= kFewestJoinedRows)
        JoinRows(each, op, {data, offsets, steps, next, count, runs}, bytes);
      else
        each(op, {data, offsets, steps, next, count, runs});
    });
  }
  // Short rows go through the operation several at a time. Operands that repeat a row or an element are
  // written out for them.
  static void JoinRows(void (*each)(const void* op, const Runs& runs), const void* op, const Runs& runs,
                       const std::int64_t (&bytes)[kInputs + 1]) {
    alignas(64) std::byte blocks[kInputs][kJoinedElements * kMostJoinedBytes];
    const std::int64_t rows = std::min(runs.runs, kJoinedElements / runs.count);
    void* data[kInputs + 1];
    std::int64_t offsets[kInputs + 1], ones[kInputs + 1];
    std::fill_n(ones, kInputs + 1, 1);
    for (std::int64_t r = 0; r < runs.runs; r += rows) {
      const std::int64_t some = std::min(rows, runs.runs - r);
      for (int k = 0; k <= kInputs; ++k) {
        const std::int64_t at = runs.offsets[k] + r * runs.next[k];
        const bool follows = runs.steps[k] == 1 && runs.next[k] == runs.count;
        data[k] = follows ? runs.data[k] : blocks[k - 1];
        offsets[k] = follows ? at : 0;
        if (follows || (r != 0 && runs.next[k] == 0)) continue;
        RepeatRows(static_cast<const std::byte*>(runs.data[k]) + at * bytes[k], bytes[k], runs.steps[k],
                   runs.next[k], runs.count, some, blocks[k - 1]);
      }
      each(op, {data, offsets, ones, ones, some * runs.count, 1});
    }
  }

  template <typename T>
  static RowOf<T> Row(const Runs& runs, std::size_t operand, std::int64_t run) {
    return {static_cast<T*>(runs.data[operand]) + runs.offsets[operand] + run * runs.next[operand],
            runs.steps[operand]};
  }

  TensorView out_;
  TensorView inputs_[kInputs];
  const char* names_[kInputs];
  std::int64_t size_ = 0;
  bool flat_ = false;
};

#undef REWIRE_ELEMENTS_APART

}  // namespace rewire::kernel::cpu
