// SPDX-License-Identifier: Apache-2.0
// A tokenizer of SentencePiece with 16 pieces, as many as GeneratorModels has tokens.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "rewire/tests/support/run_program.h"

namespace rewire::serve::test {

inline constexpr std::array<std::string_view, 16> kPieces = {
    "<unk>", "<s>", "</s>", "\u2581", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};

// Writes it, with one score for all pieces, and returns its path. The format is
// https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto.
inline std::string WriteTokenizer(const rewire::test::TempFolder& folder) {
  const auto field = [](int number, std::string_view bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} +
           std::string(bytes);
  };
  const auto number = [](int of, int value) {
    return std::string{static_cast<char>(of << 3), static_cast<char>(value)};
  };
  std::string model;
  for (std::size_t i = 0; i < kPieces.size(); ++i) {
    const int type = i == 0 ? 2 : i < 3 ? 3 : 1;  // unknown, control, normal
    const auto score = std::bit_cast<std::uint32_t>(-1.0F);
    std::string piece = field(1, kPieces[i]) + static_cast<char>(2 << 3 | 5);
    for (int shift = 0; shift < 32; shift += 8) piece += static_cast<char>(score >> shift);
    model += field(1, piece + number(3, type));
  }
  model += field(2, number(3, 1));          // a unigram model
  model += field(3, field(1, "identity"));  // texts are not changed
  std::string path = (folder.path() / "words.model").string();
  std::ofstream(path, std::ios::binary) << model;
  return path;
}

}  // namespace rewire::serve::test
