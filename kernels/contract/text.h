// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels on strings.
#pragma once

namespace rewire::names {

// Strings: comparison and look-up.
inline constexpr char kTextCheck[] = "rewire.text.check";
inline constexpr char kTextEqual[] = "rewire.text.equal";
inline constexpr char kTextFind[] = "rewire.text.find";
inline constexpr char kTextRank[] = "rewire.text.rank";
inline constexpr char kTextToNumber[] = "rewire.text.to_number";

// Strings: new ones.
inline constexpr char kTextConcatOffsets[] = "rewire.text.concat_offsets";
inline constexpr char kTextConcat[] = "rewire.text.concat";
inline constexpr char kTextChangeCaseOffsets[] = "rewire.text.change_case_offsets";
inline constexpr char kTextChangeCase[] = "rewire.text.change_case";
inline constexpr char kTextFromNumberOffsets[] = "rewire.text.from_number_offsets";
inline constexpr char kTextFromNumber[] = "rewire.text.from_number";

// Strings: pieces.
inline constexpr char kTextSplitCounts[] = "rewire.text.split_counts";
inline constexpr char kTextSplitOffsets[] = "rewire.text.split_offsets";
inline constexpr char kTextSplit[] = "rewire.text.split";

}  // namespace rewire::names
