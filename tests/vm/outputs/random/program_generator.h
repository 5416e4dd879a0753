// SPDX-License-Identifier: Apache-2.0
// Makes random programs, as text, for the differential test of outputs.
//
// The verifier accepts every program, and every program terminates. A program writes each tensor before
// anything reads it. It keeps live tensors of one storage apart.
//
// The entry is main(x: f32[4], y: f32[6], t: (f32[4], f32[6]), c: i64[]). The value of c (0, 1 or 2) chooses
// branches.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace rewire::test {

struct RandomProgram {
  std::uint64_t seed = 0;
  std::string text;
  bool branches = false;
  bool calls = false;
  bool loops = false;
};

// kDevices: much of it happens on three devices, two of one kind, and memory is let go while it is in use.
// kRecordable: all of it happens on one, so that it can be recorded. Both call dev_inc, a kernel of devices
// that adds one.
enum class ProgramStyle : std::uint8_t { kUsual, kDevices, kRecordable };

// The same program for the same seed on every platform.
RandomProgram GenerateProgram(std::uint64_t seed, ProgramStyle style = ProgramStyle::kUsual);

// Draws that are the same with every standard library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // 0 .. count - 1
  std::size_t Below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  bool Percent(unsigned chance) { return Below(100) < chance; }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[Below(items.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace rewire::test
