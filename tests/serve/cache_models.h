// SPDX-License-Identifier: Apache-2.0
// Generators whose caches check themselves, and what they make.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rewire/tests/serve/generator_models.h"

namespace rewire::serve::test {

// A cache with room for C positions of any number of texts, in two heads.
inline constexpr char kRoomCache[] = R"(.kernel step = "test.cache_step"
.kernel keep = "test.cache_keep"
.func main(tokens: i64[N, S], past: i64[N, 2, C, 16], last: i64[N, 1], total: i64[]) -> (logits: f32[N, 2, C, 16], present: i64[N, 2, C, 16])
  %shape = shape_of %past
  %bytes = load_consti 4194304
  %one = alloc_storage %bytes, alignment=64, i64, cpu
  %cells = alloc_tensor_reg %one, _, %shape, i64
  %two = alloc_storage %bytes, alignment=64, f32, cpu
  %logits = alloc_tensor_reg %two, _, %shape, f32
  invoke_packed step(%tokens, %past, %last, %logits, %cells), outputs=2
  %three = alloc_storage %bytes, alignment=64, i64, cpu
  %present = alloc_tensor_reg %three, _, %shape, i64
  invoke_packed keep(%cells, %present), outputs=1
  %result = alloc_adt tag=0 (%logits, %present)
  ret %result
.end
)";

// The same for one text, whose cache has exactly the positions until then.
inline constexpr char kGrownCache[] = R"(.kernel longer = "test.cache_shape"
.kernel step = "test.cache_step"
.func main(tokens: i64[1, S], past: i64[1, 2, P, 16], last: i64[1, 1]) -> (logits: f32[1, 2, ?, 16], present: i64[1, 2, ?, 16])
  %few = alloc_storage _, alignment=64, i64[4], cpu
  %shape = alloc_tensor %few, _, i64[4]
  invoke_packed longer(%tokens, %past, %shape), outputs=1
  %bytes = load_consti 4194304
  %two = alloc_storage %bytes, alignment=64, f32, cpu
  %logits = alloc_tensor_reg %two, _, %shape, f32
  %three = alloc_storage %bytes, alignment=64, i64, cpu
  %present = alloc_tensor_reg %three, _, %shape, i64
  invoke_packed step(%tokens, %past, %last, %logits, %present), outputs=2
  %result = alloc_adt tag=0 (%logits, %present)
  ret %result
.end
)";

constexpr std::int64_t kCellSize = 16;  // numbers of a position in a head

// Returns the sum that the likeliest token depends on: of all tokens, by their positions.
inline std::int64_t CacheSum(const std::vector<std::int64_t>& tokens) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) sum += static_cast<std::int64_t>(i % 7 + 1) * tokens[i];
  return sum;
}

// The tokens that are made without temperature, if none ends the answer.
inline std::vector<std::int64_t> CacheTokensBehind(std::vector<std::int64_t> tokens, std::size_t count) {
  const std::size_t prompt = tokens.size();
  while (tokens.size() < prompt + count) tokens.push_back(NextToken(CacheSum(tokens)));
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt));
  return tokens;
}

// The models "room" and "grown", and their kernels. A cell of a cache holds its token, its position and its
// head. A step fails if one that should be written is not there.
class CacheModels {
 public:
  CacheModels() {
    (void)WriteModel(folder_, "room.rwx", kRoomCache);
    (void)WriteModel(folder_, "grown.rwx", kGrownCache);
    settings = SettingsOf(folder_.path().string());
    ModelSettings& room = settings.models["room"];
    room.instances = 1;
    room.sequence.state = {{"present", "past"}};
    room.generator.tokens = "tokens";
    room.generator.logits = "logits";
    room.generator.last = "last";
    room.generator.context = 500;
    room.generator.prefix_bytes = 1 << 20;
    ModelSettings& grown = settings.models["grown"];
    grown = room;
    room.generator.total = "total";
    room.generator.cache_dimension = "C";
    grown.generator.cache_dimension = "P";
  }

  KernelSet Kernels() {
    KernelSet set;
    set.AddFunction(
        "test.cache_step",
        MakePackedFunction([this](kernel::TensorView tokens, kernel::TensorView past, kernel::TensorView last,
                                  kernel::TensorView logits, kernel::TensorView present) -> kernel::Status {
          std::memset(logits.data<float>(), 0, sizeof(float) * Count(logits));
          for (std::int64_t row = 0; row < tokens.dim(0); ++row) {
            kernel::Status done = StepRow(row, tokens, past, last, logits, present);
            if (!done) return done;
          }
          return {};
        }));
    set.AddFunction(
        "test.cache_keep",
        MakePackedFunction([](kernel::TensorView cells, kernel::TensorView present) -> kernel::Status {
          std::copy_n(cells.data<const std::int64_t>(), Count(cells), present.data<std::int64_t>());
          return {};
        }));
    set.AddFunction("test.cache_shape",
                    MakePackedFunction([](kernel::TensorView tokens, kernel::TensorView past,
                                          kernel::TensorView shape) -> kernel::Status {
                      const std::int64_t sizes[] = {1, 2, past.dim(2) + tokens.dim(1), kCellSize};
                      std::copy_n(sizes, 4, shape.data<std::int64_t>());
                      return {};
                    }));
    return set;
  }

  // Tokens that steps have read since the last call, and the most positions that a cache had room for.
  std::int64_t TakeRead() { return read_.exchange(0); }
  std::int64_t most_room() const { return most_room_; }

  ServeSettings settings;

 private:
  static std::size_t Count(kernel::TensorView tensor) {
    std::size_t count = 1;
    for (int i = 0; i < 4; ++i) count *= static_cast<std::size_t>(tensor.dim(i));
    return count;
  }

  kernel::Status StepRow(std::int64_t row, kernel::TensorView tokens, kernel::TensorView past,
                         kernel::TensorView last, kernel::TensorView logits, kernel::TensorView present) {
    const std::int64_t read = tokens.dim(1), total = last.data<const std::int64_t>()[row] + 1;
    const std::int64_t before = past.dim(2), after = present.dim(2), first = total - read;
    read_ += read;
    if (after > most_room_) most_room_ = after;
    if (first < 0 || total > after) return kernel::RuntimeError("the cache has no room");
    std::vector<std::int64_t> text;
    for (std::int64_t head = 0; head < 2; ++head) {
      const std::int64_t* const from =
          past.data<const std::int64_t>() + (row * 2 + head) * before * kCellSize;
      std::int64_t* const to = present.data<std::int64_t>() + (row * 2 + head) * after * kCellSize;
      std::memcpy(to, from, static_cast<std::size_t>(std::min(before, after) * kCellSize) * sizeof *to);
      for (std::int64_t place = 0; place < first; ++place) {
        if (to[place * kCellSize + 1] != place + 1 || to[place * kCellSize + 2] != head + 1)
          return kernel::RuntimeError("a position of the cache is not what was written");
      }
      for (std::int64_t i = 0; i < read; ++i) {
        std::int64_t* const cell = to + (first + i) * kCellSize;
        std::fill_n(cell, kCellSize, 7);
        cell[0] = tokens.data<const std::int64_t>()[row * read + i];
        cell[1] = first + i + 1;
        cell[2] = head + 1;
      }
      text.clear();
      for (std::int64_t place = 0; place < total; ++place) text.push_back(to[place * kCellSize]);
    }
    WriteLogits(CacheSum(text), logits.data<float>() + ((row * 2 + 2) * after - 1) * kCellSize);
    return {};
  }

  const rewire::test::TempFolder folder_;
  std::atomic<std::int64_t> read_{0}, most_room_{0};
};

}  // namespace rewire::serve::test
