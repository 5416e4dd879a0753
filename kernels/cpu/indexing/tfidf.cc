// SPDX-License-Identifier: Apache-2.0
// Counts of n-grams in sequences of integers.
#include <algorithm>
#include <cmath>

#include "rewire/kernels/contract/indexing.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/pace.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

struct TfIdf {
  static constexpr const char* kName = names::kTfIdf;
  enum Mode { kTf, kIdf, kTfIdf };
  Mode mode = kTf;
  std::int64_t shortest = 1;
  std::int64_t longest = 1;
  std::int64_t most_skipped = 0;
  std::vector<std::int64_t> starts;   // where the pool's n-grams of length 1, 2, ... begin
  std::vector<std::int64_t> columns;  // of out, for each n-gram
  std::vector<std::int64_t> pool;
  std::vector<double> weights;

  static Status Make(Attributes& attributes, TfIdf* tfidf) {
    for (const char* name : {"mode", "min_gram_length", "max_gram_length", "max_skip_count", "ngram_counts",
                             "ngram_indexes", "pool_int64s"})
      attributes.Require(name);
    tfidf->mode = static_cast<Mode>(attributes.Choice("mode", {"TF", "IDF", "TFIDF"}, kTf));
    tfidf->shortest = attributes.Int("min_gram_length", 1, 1, 1 << 20);
    tfidf->longest = attributes.Int("max_gram_length", 1, 1, 1 << 20);
    tfidf->most_skipped = attributes.Int("max_skip_count", 0, 0, 1 << 20);
    tfidf->starts = attributes.Ints("ngram_counts", {});
    tfidf->columns = attributes.Ints("ngram_indexes", {});
    tfidf->pool = attributes.Ints("pool_int64s", {});
    tfidf->weights = attributes.Floats("weights", {});
    return tfidf->CheckPool();
  }

  Status operator()(TensorView x, TensorView out) const {
    Checks checks;
    if (Status s = checks.Dense("x", x).Dense("out", out).NoOverlap("out", out, "x", x).Take(); !s.ok())
      return s;
    if (x.ndim() != 1 && x.ndim() != 2) return ValueError("x has shape ", x.dims(), ", expected rank 1 or 2");
    if (!out.Is<float>()) return WrongDType(Types<float>(), "out", out);
    Dims expected(x.dims());
    expected[x.ndim() - 1] = Width();
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    const std::int64_t length = x.dim(x.ndim() - 1);
    return ForType(Indices(), "x", x, [&](auto tag) -> Status {
      using I = typename decltype(tag)::type;
      float* counts = out.data<float>();
      Pace pace;
      if (!pace.Fill(counts, out.size(), 0.0f)) return Stopped();
      const std::int64_t width = Width();
      for (std::int64_t row = 0; row < (x.ndim() == 1 ? 1 : x.dim(0)) && pace.Spend(8); ++row)
        Count(x.data<I>() + row * length, length, counts + row * width, pace);
      return pace.status();
    });
  }

  std::int64_t Width() const {
    return columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1;
  }

 private:
  // How many n-grams of length n the pool has.
  std::int64_t GramsOf(std::int64_t n) const {
    const auto at = static_cast<std::size_t>(n - 1);
    const std::int64_t end = at + 1 < starts.size() ? starts[at + 1] : static_cast<std::int64_t>(pool.size());
    return (end - starts[at]) / n;
  }

  Status CheckPool() const {
    std::int64_t grams = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<std::int64_t>(pool.size());
      if (starts[i] < 0 || starts[i] > end || (end - starts[i]) % static_cast<std::int64_t>(i + 1) != 0)
        return ValueError("attribute 'ngram_counts' does not cut pool_int64s of ", pool.size(),
                          " into n-grams");
      grams += GramsOf(static_cast<std::int64_t>(i + 1));
    }
    if (static_cast<std::int64_t>(columns.size()) != grams)
      return ValueError("attribute 'ngram_indexes' has ", columns.size(), " values, expected ", grams);
    for (std::int64_t column : columns) {
      if (column < 0 || column > (1 << 30))
        return ValueError("attribute 'ngram_indexes' names column ", column);
    }
    if (shortest > longest || longest > static_cast<std::int64_t>(starts.size()))
      return ValueError("n-grams of length ", shortest, " to ", longest, ", expected up to ", starts.size());
    if (!weights.empty() && weights.size() != columns.size())
      return ValueError("attribute 'weights' has ", weights.size(), " values, expected ", columns.size());
    return Status();
  }

  // Incomplete when told to stop.
  template <typename I>
  void Count(const I* sequence, std::int64_t length, float* counts, Pace& pace) const {
    std::int64_t first = 0;  // number of the first n-gram of length n
    for (std::int64_t n = 1; n <= longest; first += GramsOf(n), ++n) {
      if (n < shortest) continue;
      // Skips make no difference to single ones.
      for (std::int64_t skip = 0; skip <= (n == 1 ? 0 : most_skipped) && pace.Spend(1); ++skip) {
        for (std::int64_t at = 0; at + (n - 1) * (skip + 1) < length; ++at) {
          const bool done = pace.For(GramsOf(n), 2 + n, [&](std::int64_t g, std::int64_t end) {
            for (; g < end; ++g) {
              if (Matches(sequence + at, skip + 1, n, g))
                ++counts[columns[static_cast<std::size_t>(first + g)]];
            }
          });
          if (!done) return;
        }
      }
    }
    if (mode == kTf) return;
    for (std::size_t g = 0; g < columns.size() && pace.Spend(1); ++g) {
      float& count = counts[columns[g]];
      const float weight = weights.empty() ? 1.0f : static_cast<float>(weights[g]);
      count = count == 0 ? 0 : mode == kIdf ? weight : count * weight;
    }
  }
  template <typename I>
  bool Matches(const I* sequence, std::int64_t step, std::int64_t n, std::int64_t gram) const {
    const std::int64_t* wanted = pool.data() + starts[static_cast<std::size_t>(n - 1)] + gram * n;
    for (std::int64_t i = 0; i < n; ++i) {
      if (std::int64_t{sequence[i * step]} != wanted[i]) return false;
    }
    return true;
  }
};

}  // namespace

std::span<const Kernel> TfIdfKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<TfIdf>(
          "x -> out", "x i64 i32; out f32",
          "mode, TF, IDF or TFIDF, min_gram_length, max_gram_length, max_skip_count, ngram_counts, "
          "ngram_indexes, pool_int64s, weights = a list of floats or none",
          "ONNX TfIdfVectorizer of integers: x [length] or [N, length], out as wide as the largest of "
          "ngram_indexes + 1"),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
