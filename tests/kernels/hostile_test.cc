// SPDX-License-Identifier: Apache-2.0
// Attributes and values that a hostile file gives: sizes whose products overflow, positions that no integer
// holds, little memory that means much work. Each was once a crash or a kernel without end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "rewire/base/max_rank.h"
#include "rewire/kernels/cpu/kernels_cpu.h"
#include "rewire/kernels/cpu/signal/fourier.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/workspace_sizes.h"
#include "rewire/tests/kernels/kernel_call.h"
#include "rewire/tests/kernels/not_finite.h"

namespace rewire::test {
namespace {

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::int64_t{1} << 30;
constexpr const char* kStopped = "stopped: the run was cancelled or its deadline has passed";

// Answers so many questions with yes, for one call.
class Stopping {
 public:
  explicit Stopping(std::int64_t questions) { StopAfter(questions); }
  ~Stopping() { StopAfter(-1); }
};

std::string MelWeights(float rate, float low, float high) {
  HostTensor bins = HostTensor::Of<std::int64_t>({}, {1}), length = HostTensor::Of<std::int64_t>({}, {6});
  HostTensor sample_rate = HostTensor::Of<float>({}, {rate});
  HostTensor lower = HostTensor::Of<float>({}, {low}), upper = HostTensor::Of<float>({}, {high});
  HostTensor out = HostTensor::Empty<float>({4, 1});
  return Run("rewire.mel_weight_matrix", {&bins, &length, &sample_rate, &lower, &upper, &out});
}

TEST_CASE("mel filters end at the last bin, whatever the frequencies") {
  const std::string refused =
      "ValueError: rewire.mel_weight_matrix: edges 0.000000 and inf at sample rate 8000.000000, "
      "expected finite numbers: 0 or more, rising, and a positive rate";
  CHECK(MelWeights(8000, 0, kInf) == refused);
  CHECK(MelWeights(8000, kInf, kInf) != "");
  CHECK(MelWeights(kInf, 0, 4000) != "");
  CHECK(MelWeights(8000, 0, 3e38F) == "");
  CHECK(MelWeights(1e-38F, 0, 4000) == "");
  CHECK(MelWeights(1e-38F, 3e38F, 3e38F) == "");
}

TEST_CASE("a block of more elements than there are numbers divides no columns") {
  HostTensor x = HostTensor::Random({1, 1, 1}, 1), out = HostTensor::Empty<float>({1});
  HostTensor large = HostTensor::Of<std::int64_t>({3}, {kHuge, kHuge, 16});
  CHECK(Run("rewire.col2im", {&x, &large, &large, &out}).find("expected 1 blocks of a multiple of") !=
        std::string::npos);
  HostTensor shape = HostTensor::Of<std::int64_t>({3}, {1, 1, 1}),
             result = HostTensor::Empty<std::int64_t>({5});
  CHECK(Run("rewire.shape.col2im", {&shape, &large, &large, &result})
            .find("expected 1 blocks of a multiple of") != std::string::npos);
}

TEST_CASE("regions of no images take any size of output") {
  const std::int64_t large = std::int64_t{1} << 27;  // sixteen times their product is 2^58
  HostTensor x = HostTensor::Random({1, 1, 2, 2}, 1), none = HostTensor::Empty<float>({0, 4});
  HostTensor images = HostTensor::Empty<std::int64_t>({0});
  HostTensor out = HostTensor::Empty<float>({0, 1, large, large});
  const AttributeList attributes = {{"output_height", large}, {"output_width", large}};
  CHECK(Run("rewire.roi_align", {&x, &none, &images, &out}, attributes) == "");
  HostTensor empty = HostTensor::Empty<float>({1, 0, 2, 2}),
             region = HostTensor::Of<float>({1, 4}, {0, 0, 1, 1});
  HostTensor image = HostTensor::Of<std::int64_t>({1}, {0});
  HostTensor no_channels = HostTensor::Empty<float>({1, 0, large, large});
  CHECK(Run("rewire.roi_align", {&empty, &region, &image, &no_channels}, attributes) == "");
  HostTensor too_large = HostTensor::Empty<float>({0, 1, kHuge, kHuge});
  const AttributeList larger = {{"output_height", kHuge}, {"output_width", kHuge}};
  CHECK(Run("rewire.roi_align", {&x, &none, &images, &too_large}, larger)
            .find("whose product is too large even without its zeros") != std::string::npos);
}

TEST_CASE("regions that a scale moves out of all bounds") {
  HostTensor x = HostTensor::Random({1, 1, 2, 2}, 1),
             region = HostTensor::Of<float>({1, 5}, {0, 0, 0, 9e5F, 9e5F});
  HostTensor out = HostTensor::Empty<float>({1, 1, 2, 2});
  for (const double scale : {1e300, -1e300, std::numeric_limits<double>::infinity(), 1e18}) {
    CAPTURE(scale);
    CHECK(Run("rewire.max_roi_pool", {&x, &region, &out}, {{"spatial_scale", scale}}) == "");
    const Stopping stopping(3);
    HostTensor box = HostTensor::Of<float>({1, 4}, {0, 0, 9e5F, 9e5F}),
               image = HostTensor::Of<std::int64_t>({1}, {0});
    HostTensor pooled = HostTensor::Empty<float>({1, 1, 1, 1});
    const std::string error =
        Run("rewire.roi_align", {&x, &box, &image, &pooled}, {{"spatial_scale", scale}});
    CHECK((error == "" || error == "RuntimeError: rewire.roi_align: " + std::string(kStopped)));
  }
}

TEST_CASE("a region of no width and endless height has no samples") {
  HostTensor x = HostTensor::Random({1, 1, 4, 4}, 1), image = HostTensor::Of<std::int64_t>({1}, {0});
  for (const std::vector<float>& box : {std::vector<float>{1, 0, 1, 1}, {0, 1, 1, 1}}) {
    HostTensor region = HostTensor::Of<float>({1, 4}, box), out = HostTensor::Random({1, 1, 2, 2}, 2);
    REQUIRE(Run("rewire.roi_align", {&x, &region, &image, &out},
                {{"output_height", 2}, {"output_width", 2}, {"spatial_scale", 1e30}}) == "");
    CHECK(out.values<float>() == std::vector<float>(4, 0));
  }
}

TEST_CASE("a filter that a scale of almost 0 stretches") {
  HostTensor x = HostTensor::Of<float>({4}, {1, 2, 3, 4}), none = HostTensor::Empty<float>({0});
  HostTensor scale = HostTensor::Of<float>({1}, {1e-30F}), out = HostTensor::Empty<float>({0});
  CHECK(Run("rewire.resize", {&x, &none, &scale, &out}, {{"mode", "linear"}, {"antialias", 1}}) == "");
  HostTensor one = HostTensor::Empty<float>({1}), small = HostTensor::Of<float>({1}, {0.25F});
  CHECK(Run("rewire.resize", {&x, &none, &small, &one}, {{"mode", "linear"}, {"antialias", 1}}) == "");
}

TEST_CASE("dimensions beside a 0 may not overflow together") {
  const std::int64_t much = std::int64_t{1} << 40;
  HostTensor x = HostTensor::Empty<float>({0}), out = HostTensor::Empty<float>({0});
  x.SetView({much, much, 0}, {0, 0, 1});
  out.SetView({much, much, 0}, {0, 0, 1});
  const std::string too_large =
      " has shape [1099511627776, 1099511627776, 0], whose product is too large even without its zeros";
  CHECK(Run("rewire.relu", {&x, &out}) == "ValueError: rewire.relu: out" + too_large);
  CHECK(Run("rewire.reduce_sum", {&x, &out}) == "ValueError: rewire.reduce_sum: x" + too_large);
  CHECK(Run("rewire.transpose", {&x, &out}) == "ValueError: rewire.transpose: x" + too_large);
}

// A tensor of one element, of a dtype that the argument takes.
HostTensor OneElement(const RewireKernelArgument& argument, int rank) {
  const Shape shape(static_cast<std::size_t>(rank), 1);
  const std::uint32_t dtypes = argument.dtypes;
  if (dtypes == 0 || (dtypes & REWIRE_DTYPE_F32) != 0) return HostTensor::Of<float>(shape, {1});
  if ((dtypes & REWIRE_DTYPE_I64) != 0) return HostTensor::Of<std::int64_t>(shape, {1});
  if ((dtypes & REWIRE_DTYPE_I32) != 0) return HostTensor::Of<std::int32_t>(shape, {1});
  if ((dtypes & REWIRE_DTYPE_U8) != 0) return HostTensor::Of<std::uint8_t>(shape, {1});
  if ((dtypes & REWIRE_DTYPE_I8) != 0) return HostTensor::Of<std::int8_t>(shape, {1});
  return HostTensor::Of<bool>(shape, {true});
}

// The VM carries ranks up to 32. What a kernel keeps on its stack is made for less.
TEST_CASE("no kernel takes a tensor above the largest rank, whichever argument it is") {
  STATIC_REQUIRE(kernel::cpu::kMaxKernelRank < kMaxRank);
  const RewireKernelTable* table = RewireCpuKernels();
  int called = 0;
  for (std::uint32_t i = 0; i < table->count; ++i) {
    const std::string name = table->entries[i].name;
    const RewireKernelRow& row = table->rows[i];
    const StockKernel kernel(name);
    // Not those with attributes without a default, nor those that take ADTs.
    if (!kernel.error().empty() || (row.traits & REWIRE_KERNEL_OBJECTS) != 0) continue;
    for (std::uint32_t deep = 0; deep <= row.argument_count; ++deep) {
      if (name == "rewire.resize" && deep == 1) continue;  // its roi is not read unless an attribute asks
      std::vector<HostTensor> tensors;
      std::vector<HostTensor*> arguments;
      for (std::uint32_t k = 0; k < row.argument_count; ++k) {
        const bool here = k == deep || deep == row.argument_count;  // at last all of them
        tensors.push_back(OneElement(row.arguments[k], here ? kernel::cpu::kMaxKernelRank + 1 : 1));
      }
      arguments.reserve(tensors.size());
      for (HostTensor& tensor : tensors) arguments.push_back(&tensor);
      CAPTURE(name, deep);
      CHECK(kernel.Call(arguments) != "");
      ++called;
    }
  }
  CHECK(called > 300);
}

// Three matrices of 10^4 elements are 2 * 10^6 products.
TEST_CASE("work that little memory asks for ends when the host says so") {
  HostTensor x = HostTensor::Random({100, 100}, 1), out = HostTensor::Empty<float>({100, 100});
  const StockKernel einsum("rewire.einsum", {{"equation", "ab,bc,cd->ad"}});
  for (const std::int64_t questions : {0, 1, 7}) {
    const Stopping stopping(questions);
    CHECK(einsum({&x, &x, &x, &out}) == "RuntimeError: rewire.einsum: " + std::string(kStopped));
    CHECK(QuestionsAsked() == questions + 1);
  }
  HostTensor image = HostTensor::Random({1, 1, 2, 2}, 1),
             box = HostTensor::Of<float>({1, 4}, {0, 0, 9e5F, 9e5F});
  HostTensor number = HostTensor::Of<std::int64_t>({1}, {0}), pooled = HostTensor::Empty<float>({1, 1, 1, 1});
  const Stopping stopping(2);
  CHECK(Run("rewire.roi_align", {&image, &box, &number, &pooled}, {{"spatial_scale", 1e3}}) ==
        "RuntimeError: rewire.roi_align: " + std::string(kStopped));
  CHECK(QuestionsAsked() == 3);
}

// 2 * most is beyond int64 for the last two.
TEST_CASE("a transform of any length declares memory that only grows") {
  std::vector<std::uint64_t> before(4, 0);
  for (const std::int64_t most : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{1} << 40,
                                  std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max()}) {
    CAPTURE(most);
    std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
    kernel::cpu::WorkspaceSizes sizes(nullptr, 0, blocks);
    kernel::cpu::Fourier::DeclareWorkspace(sizes, most);
    REQUIRE(sizes.taken() == 4);
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(blocks[i] >= before[i]);
      CHECK(blocks[i] <= static_cast<std::uint64_t>(kernel::cpu::kMostSize));
      before[i] = blocks[i];
    }
  }
}

TEST_CASE("a kernel that declares more blocks than it can says that it takes an unknown amount") {
  std::uint64_t blocks[REWIRE_MAX_WORKSPACES + 1] = {};
  kernel::cpu::WorkspaceSizes sizes(nullptr, 0, blocks);
  for (int i = 0; i < REWIRE_MAX_WORKSPACES; ++i) sizes.Take(2, 4);
  CHECK(sizes.taken() == REWIRE_MAX_WORKSPACES);
  CHECK(blocks[REWIRE_MAX_WORKSPACES - 1] == 8);
  sizes.Take(2, 4);
  CHECK(sizes.taken() == -1);
  CHECK(blocks[REWIRE_MAX_WORKSPACES] == 0);
}

// The order does not depend on how the positions are divided, nor on what the elements are.
TEST_CASE("long axes are ordered as short ones are") {
  constexpr std::int64_t kSize = 30000;
  for (const int kind : {0, 1, 2, 3}) {
    HostTensor x = HostTensor::Random({kSize}, 3);
    for (std::int64_t i = 0; i < kSize; ++i) {
      if (kind == 1) x.elements<float>()[i] = static_cast<float>(i);
      if (kind == 2) x.elements<float>()[i] = static_cast<float>(i % 7);
      if (kind == 3) x.elements<float>()[i] = static_cast<float>(i < kSize / 2 ? i : kSize - i);
    }
    const std::vector<float> values = x.values<float>();
    std::vector<std::int64_t> order(kSize);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    for (const std::int64_t kept : {std::int64_t{1}, std::int64_t{300}, kSize}) {
      CAPTURE(kind, kept);
      HostTensor best = HostTensor::Empty<float>({kept}), where = HostTensor::Empty<std::int64_t>({kept});
      REQUIRE(Run("rewire.top_k", {&x, &best, &where}) == "");
      CHECK(where.values<std::int64_t>() == std::vector<std::int64_t>(order.begin(), order.begin() + kept));
      const Stopping stopping(0);
      CHECK(Run("rewire.top_k", {&x, &best, &where}) != "");
    }
  }
}

TEST_CASE("numbers that no integer holds come out of arithmetic") {
  HostTensor x = HostTensor::Of<std::int8_t>({2}, {12, 0}), out = HostTensor::Empty<std::int8_t>({1});
  // 144 wraps to a negative sum.
  REQUIRE(Run("rewire.reduce_l2", {&x, &out}) == "");
  CHECK(out.values<std::int8_t>()[0] == 0);
  HostTensor held = HostTensor::Empty<std::int8_t>({2});
  REQUIRE(Run("rewire.clip", {&x, &held},
              {{"min", std::numeric_limits<double>::quiet_NaN()}, {"max", 1e300}}) == "");
  CHECK(held.values<std::int8_t>() == std::vector<std::int8_t>{12, 0});
}

// Each slice has 2^32 elements in front of it, and none in it.
TEST_CASE("slices without elements are equal") {
  HostTensor x = HostTensor::Empty<float>({std::int64_t{1} << 31, 2, 33, 0});
  HostTensor count = HostTensor::Empty<std::int64_t>({1});
  REQUIRE(Run("rewire.shape.unique", {&x, &count}, {{"axis", 2}}) == "");
  CHECK(count.values<std::int64_t>()[0] == 1);
}

TEST_CASE("a packed convolution has a kernel") {
  HostTensor x = HostTensor::Random({1, 3, 3, 4}, 1);
  CHECK(Run("rewire.packed.conv", {&x, &x, &x}, {{"channels", 4}, {"kernel_shape", Ints{}}}) ==
        "ValueError: rewire.packed.conv: attribute 'kernel_shape' has 0 ints, expected 1 to 3");
}

// The declaration is asked before the kernel can refuse its tensors.
TEST_CASE("a packed convolution declares no workspace for tensors of another rank than its attributes'") {
  HostTensor line = HostTensor::Random({1, 9, 4}, 1), image = HostTensor::Random({1, 9, 9, 4}, 2);
  HostTensor w = HostTensor::Random({2, 144}, 3), out = HostTensor::Empty<float>({1, 7, 7, 8});
  const auto declared = [&](HostTensor* x, const AttributeList& attributes) {
    const auto blocks = DeclaredWorkspace("rewire.packed.conv", attributes, {x, &w, &out});
    CHECK(Run("rewire.packed.conv", {x, &w, &out}, attributes) != "");
    REQUIRE(blocks.has_value());
    return blocks->size();
  };
  CHECK(declared(&line, {{"channels", 8}, {"kernel_shape", Ints{3, 3}}}) == 0);
  CHECK(declared(&image, {{"channels", 8}, {"kernel_shape", Ints{3}}}) == 0);
  // Attributes that do not fit each other fit no tensor.
  CHECK(declared(&image, {{"channels", 8}, {"kernel_shape", Ints{3, 3}}, {"strides", Ints{1}}}) == 0);
  CHECK(declared(&image, {{"channels", 8}, {"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1}}}) == 0);
}

// A call that is right, but longer than the host waits between two questions.
void CheckAsks(const std::string& kernel, const std::vector<HostTensor*>& tensors,
               const AttributeList& attributes = {}) {
  CAPTURE(kernel);
  CHECK(Run(kernel, tensors, attributes) == "");
  const Stopping stopping(0);
  CHECK(Run(kernel, tensors, attributes) == "RuntimeError: " + kernel + ": " + kStopped);
}

TEST_CASE("kernels of every family ask whether to go on") {
  constexpr std::int64_t kMany = 40000;
  HostTensor line = HostTensor::Random({kMany}, 1), shorter = HostTensor::Empty<float>({kMany - 1});
  HostTensor padded = HostTensor::Empty<float>({kMany + 2}), other = HostTensor::Empty<float>({kMany});
  CheckAsks("rewire.relu", {&line, &other});
  CheckAsks("rewire.copy", {&line, &other}, {});
  CheckAsks("rewire.softmax", {&line, &other});
  CheckAsks("rewire.slice", {&line, &shorter}, {{"starts", Ints{1}}, {"ends", Ints{kMany}}});
  HostTensor pads = HostTensor::Of<std::int64_t>({2}, {1, 1});
  CheckAsks("rewire.dynamic_pad", {&line, &pads, &padded}, {{"mode", "reflect"}});
  HostTensor one = HostTensor::Empty<float>({1});
  CheckAsks("rewire.reduce_sum", {&line, &one});

  HostTensor start = HostTensor::Of<std::int64_t>({}, {0}), limit = HostTensor::Of<std::int64_t>({}, {kMany});
  HostTensor step = HostTensor::Of<std::int64_t>({}, {1}), numbers = HostTensor::Empty<std::int64_t>({kMany});
  CheckAsks("rewire.arange", {&start, &limit, &step, &numbers});
  HostTensor grams = HostTensor::Empty<float>({2});
  CheckAsks("rewire.tfidf", {&numbers, &grams},
            {{"mode", "TF"},
             {"min_gram_length", 1},
             {"max_gram_length", 1},
             {"max_skip_count", 0},
             {"ngram_counts", Ints{0}},
             {"ngram_indexes", Ints{0, 1}},
             {"pool_int64s", Ints{3, 4}}});

  HostTensor a = HostTensor::Random({128, 128}, 2), b = HostTensor::Random({128, 128}, 3);
  HostTensor product = HostTensor::Empty<float>({128, 128});
  CheckAsks("rewire.gemm", {&a, &b, &product});
  CheckAsks("rewire.matmul", {&a, &b, &product});
  HostTensor determinant = HostTensor::Empty<float>({});
  CheckAsks("rewire.det", {&a, &determinant});

  HostTensor image = HostTensor::Random({1, 1, 200, 200}, 4),
             pooled = HostTensor::Empty<float>({1, 1, 198, 198});
  CheckAsks("rewire.max_pool", {&image, &pooled}, {{"kernel_shape", Ints{3, 3}}});
  HostTensor columns = HostTensor::Random({1, 4, 199 * 199}, 5),
             sizes = HostTensor::Of<std::int64_t>({2}, {200, 200});
  HostTensor block = HostTensor::Of<std::int64_t>({2}, {2, 2}),
             summed = HostTensor::Empty<float>({1, 1, 200, 200});
  CheckAsks("rewire.col2im", {&columns, &sizes, &block, &summed});

  HostTensor scores = HostTensor::Random({kMany, 2}, 6), loss = HostTensor::Empty<float>({});
  HostTensor target = HostTensor::Of<std::int64_t>({kMany}, std::vector<std::int64_t>(kMany, 1));
  CheckAsks("rewire.nll_loss", {&scores, &target, &loss});

  HostTensor signal = HostTensor::Random({1, kMany, 1}, 7), every = HostTensor::Of<std::int64_t>({}, {100});
  HostTensor window = HostTensor::Random({64}, 8), frames = HostTensor::Empty<float>({1, 400, 33, 2});
  CheckAsks("rewire.stft", {&signal, &every, &window, &frames});
  HostTensor bins = HostTensor::Of<std::int64_t>({}, {4}), length = HostTensor::Of<std::int64_t>({}, {kMany});
  HostTensor rate = HostTensor::Of<float>({}, {8000}), low = HostTensor::Of<float>({}, {0}),
             high = HostTensor::Of<float>({}, {4000});
  HostTensor filters = HostTensor::Empty<float>({kMany / 2 + 1, 4});
  CheckAsks("rewire.mel_weight_matrix", {&bins, &length, &rate, &low, &high, &filters});
}

TEST_CASE("recurrent layers ask between steps") {
  constexpr std::int64_t kSteps = 400, kInputs = 8, kHidden = 16;
  for (const std::int64_t gates : {1, 3, 4}) {
    const std::int64_t width = gates * kHidden;
    HostTensor x = HostTensor::Random({kSteps, 1, kInputs}, 1),
               w = HostTensor::Random({1, width, kInputs}, 2);
    HostTensor r = HostTensor::Random({1, width, kHidden}, 3),
               y = HostTensor::Empty<float>({kSteps, 1, 1, kHidden});
    HostTensor h = HostTensor::Empty<float>({1, 1, kHidden}), c = HostTensor::Empty<float>({1, 1, kHidden});
    if (gates == 1) CheckAsks("rewire.rnn", {&x, &w, &r, &y, &h});
    if (gates == 3) CheckAsks("rewire.gru", {&x, &w, &r, &y, &h});
    if (gates == 4) CheckAsks("rewire.lstm", {&x, &w, &r, &y, &h, &c});
    if (gates != 4) continue;
    HostTensor w_bytes = HostTensor::Empty<std::int8_t>({width, kInputs}),
               r_bytes = HostTensor::Empty<std::int8_t>({width, kHidden});
    HostTensor scales = HostTensor::Random({1, width}, 4);
    CheckAsks("rewire.lstm_bytes",
              {&x, &w_bytes, &r_bytes, nullptr, nullptr, nullptr, nullptr, &scales, &scales, &y, &h, &c},
              {{"hidden_size", kHidden}});
  }
}

}  // namespace
}  // namespace rewire::test
