// SPDX-License-Identifier: Apache-2.0
//
// Linear attention: each head has a matrix as its state, which every step changes by a key and a value and
// then multiplies by a query.
#include <cmath>

#include "rewire/kernels/contract/recurrent.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/parallel.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct LinearAttention {
  static constexpr const char* kName = names::kLinearAttention;
  std::int64_t q_heads = 1, kv_heads = 1;
  double scale = 1;
  static Status Make(Attributes& attributes, LinearAttention* attention) {
    attributes.Require("q_heads");
    attributes.Require("kv_heads");
    attention->q_heads = attributes.Int("q_heads", 1, 1);
    attention->kv_heads = attributes.Int("kv_heads", 1, 1);
    attention->scale = attributes.Float("scale", 1);
    if (attention->q_heads % attention->kv_heads != 0) {
      return ValueError("attribute 'q_heads' is ", attention->q_heads, ", expected a multiple of the ",
                        attention->kv_heads, " kv_heads");
    }
    return Status();
  }

  Status operator()(TensorView q, TensorView k, TensorView v, std::optional<TensorView> state,
                    std::optional<TensorView> decay, std::optional<TensorView> beta, TensorView out,
                    TensorView out_state) const {
    Sizes sizes;
    if (Status s = Resolve(q, k, v, &sizes); !s.ok()) return s;
    if (Status s = CheckResults(sizes, q, k, v, out, out_state); !s.ok()) return s;
    if (IsGiven(state)) {
      Checks checks;
      checks.Dense("state", *state).SameDType("state", *state, "q", q);
      checks.Shape("state", *state, out_state.dims()).NoOverlap("out", out, "state", *state);
      if (state->raw_data() != out_state.raw_data())
        checks.NoOverlap("out_state", out_state, "state", *state);
      if (Status s = checks.Take(); !s.ok()) return s;
    }
    bool per_key = false, shared = false;
    if (Status s = CheckGate("decay", decay, sizes, Times(kv_heads, sizes.key), q, out, out_state, &per_key);
        !s.ok())
      return s;
    if (Status s = CheckGate("beta", beta, sizes, 1, q, out, out_state, &shared); !s.ok()) return s;
    if (out.size() == 0 && out_state.size() == 0) return Status();
    return ForType(Floats(), "q", q, [&](auto tag) -> Status {
      using T = typename decltype(tag)::type;
      Heads<T> heads{*this,   sizes,         q.data<T>(),         k.data<T>(), v.data<T>(), nullptr,
                     nullptr, out.data<T>(), out_state.data<T>(), per_key,     shared};
      if (IsGiven(decay)) heads.decay = decay->data<T>();
      if (IsGiven(beta)) heads.beta = beta->data<T>();
      const std::int64_t bytes = Times(out_state.size(), out_state.element_bytes());
      if (!IsGiven(state)) {
        if (Status s = FillAll(out_state.data<T>(), out_state.size(), T{0}); !s.ok()) return s;
      } else if (state->raw_data() != out_state.raw_data()) {
        if (Status s = CopyAll(out_state.raw_data(), state->raw_data(), bytes); !s.ok()) return s;
      }
      const std::int64_t work = Times(sizes.steps, sizes.key, sizes.value);
      return ParallelFor(Times(sizes.batch, kv_heads), GrainOf(kGrain, work),
                         [&](std::int64_t begin, std::int64_t end, Pace& pace) {
                           for (std::int64_t i = begin; i < end && pace.Spend(1); ++i)
                             heads.Run(i / kv_heads, i % kv_heads, pace);
                         });
    });
  }

 private:
  struct Sizes {
    std::int64_t batch = 0, steps = 0;
    std::int64_t key = 0, value = 0;  // of a head
  };

  Status Resolve(TensorView q, TensorView k, TensorView v, Sizes* sizes) const {
    Checks checks;
    checks.Dense("q", q).Dense("k", k).Dense("v", v);
    checks.Rank("q", q, 3).Rank("k", k, 3).Rank("v", v, 3);
    checks.SameDType("k", k, "q", q).SameDType("v", v, "q", q);
    if (Status s = checks.Take(); !s.ok()) return s;
    sizes->batch = q.dim(0);
    sizes->steps = q.dim(1);
    sizes->key = q.dim(2) / q_heads;
    sizes->value = v.dim(2) / kv_heads;
    const std::int64_t of_q[] = {q.dim(0), q.dim(1), Times(sizes->key, q_heads)};
    const std::int64_t of_k[] = {q.dim(0), q.dim(1), Times(sizes->key, kv_heads)};
    const std::int64_t of_v[] = {q.dim(0), q.dim(1), Times(sizes->value, kv_heads)};
    Checks shapes;
    shapes.Shape("q", q, ShapeView(of_q, 3)).Shape("k", k, ShapeView(of_k, 3));
    return shapes.Shape("v", v, ShapeView(of_v, 3)).Take();
  }

  Status CheckResults(const Sizes& sizes, TensorView q, TensorView k, TensorView v, TensorView out,
                      TensorView out_state) const {
    const std::int64_t of_out[] = {sizes.batch, sizes.steps, Times(sizes.value, q_heads)};
    const std::int64_t of_state[] = {sizes.batch, kv_heads, sizes.key, sizes.value};
    Checks checks;
    checks.Dense("out", out).Dense("out_state", out_state);
    checks.SameDType("out", out, "q", q).SameDType("out_state", out_state, "q", q);
    checks.Shape("out", out, ShapeView(of_out, 3)).Shape("out_state", out_state, ShapeView(of_state, 4));
    checks.NoOverlap("out", out, "q", q).NoOverlap("out", out, "k", k).NoOverlap("out", out, "v", v);
    checks.NoOverlap("out_state", out_state, "q", q).NoOverlap("out_state", out_state, "k", k);
    return checks.NoOverlap("out_state", out_state, "v", v)
        .NoOverlap("out", out, "out_state", out_state)
        .Take();
  }

  // One number for each head of a step, or `other` of them, of which `is_other` tells.
  Status CheckGate(const char* name, const std::optional<TensorView>& gate, const Sizes& sizes,
                   std::int64_t other, TensorView q, TensorView out, TensorView out_state,
                   bool* is_other) const {
    if (!IsGiven(gate)) return Status();
    Checks checks;
    checks.Dense(name, *gate).Rank(name, *gate, 3).SameDType(name, *gate, "q", q);
    checks.NoOverlap("out", out, name, *gate).NoOverlap("out_state", out_state, name, *gate);
    if (Status s = checks.Take(); !s.ok()) return s;
    *is_other = gate->dim(2) != kv_heads && gate->dim(2) == other;
    const std::int64_t expected[] = {sizes.batch, sizes.steps, *is_other ? other : kv_heads};
    return CheckShape(name, *gate, ShapeView(expected, 3));
  }

  // The elements of all heads.
  template <typename T>
  struct Heads {
    const LinearAttention& attributes;
    Sizes sizes;
    const T *q, *k, *v, *decay, *beta;
    T *out, *state;
    bool per_key;  // decay has a number for each element of a key
    bool shared;   // beta has one number for all heads

    // All steps of a head of keys.
    void Run(std::int64_t batch, std::int64_t head, Pace& pace) const {
      const std::int64_t q_heads = attributes.q_heads, kv_heads = attributes.kv_heads;
      const std::int64_t group = q_heads / kv_heads;
      T* const rows = state + (batch * kv_heads + head) * sizes.key * sizes.value;
      for (std::int64_t step = 0; step < sizes.steps; ++step) {
        if (!pace.Spend(1)) return;
        const std::int64_t at = batch * sizes.steps + step;
        const T* key = k + (at * kv_heads + head) * sizes.key;
        const T* value = v + (at * kv_heads + head) * sizes.value;
        T* first = out + (at * q_heads + head * group) * sizes.value;
        if (decay != nullptr && !Decay(rows, at, head, pace)) return;
        if (beta != nullptr) {
          // The result's memory holds the value until the query is multiplied.
          const T factor = beta[shared ? at : at * kv_heads + head];
          if (!Multiply(rows, key, T{1}, first, pace)) return;
          const bool done = pace.For(sizes.value, 1, [&](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) first[i] = factor * (value[i] - first[i]);
          });
          if (!done) return;
          value = first;
        }
        for (std::int64_t d = 0; d < sizes.key; ++d) {
          T* row = rows + d * sizes.value;
          const bool done = pace.For(sizes.value, 1, [&](std::int64_t i, std::int64_t end) {
            for (; i < end; ++i) row[i] += key[d] * value[i];
          });
          if (!done) return;
        }
        for (std::int64_t g = 0; g < group; ++g) {
          const T* query = q + (at * q_heads + head * group + g) * sizes.key;
          if (!Multiply(rows, query, static_cast<T>(attributes.scale), first + g * sizes.value, pace)) return;
        }
      }
    }

    bool Decay(T* rows, std::int64_t at, std::int64_t head, Pace& pace) const {
      const std::int64_t place = at * attributes.kv_heads + head;
      for (std::int64_t d = 0; d < sizes.key; ++d) {
        const T factor = std::exp(decay[per_key ? place * sizes.key + d : place]);
        T* row = rows + d * sizes.value;
        const bool done = pace.For(sizes.value, 1, [&](std::int64_t i, std::int64_t end) {
          for (; i < end; ++i) row[i] *= factor;
        });
        if (!done || !pace.Spend(1)) return false;
      }
      return true;
    }

    // to = scale * vector * rows.
    bool Multiply(const T* rows, const T* vector, T scale, T* to, Pace& pace) const {
      if (!pace.Fill(to, sizes.value, T{0})) return false;
      for (std::int64_t d = 0; d < sizes.key; ++d) {
        const T factor = vector[d] * scale;
        const T* row = rows + d * sizes.value;
        const bool done = pace.For(sizes.value, 1, [&](std::int64_t i, std::int64_t end) {
          for (; i < end; ++i) to[i] += factor * row[i];
        });
        if (!done || !pace.Spend(1)) return false;
      }
      return true;
    }
  };
};

}  // namespace

std::span<const Kernel> LinearAttentionKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<LinearAttention>("q, k, v, state?, decay?, beta? -> out, out_state over state", "f32 f64",
                                "q_heads, kv_heads, scale = 1.0",
                                "for each step of q [N, steps, q_heads * K], k [.., kv_heads * K] and v [.., "
                                "kv_heads * V] the state "
                                "[N, kv_heads, K, V] times exp(decay) [.., kv_heads] or [.., kv_heads * K], "
                                "plus k times v; with beta "
                                "[.., kv_heads] or [.., 1] v is beta (v - k times the state) first; out [.., "
                                "q_heads * V] is scale q "
                                "times the state of its group of heads"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
