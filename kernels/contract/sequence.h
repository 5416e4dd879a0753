// SPDX-License-Identifier: Apache-2.0
//
// Names of the kernels on sequences.
#pragma once

namespace rewire::names {

// Elements of sequences (the import takes objects).
inline constexpr char kSeqLength[] = "rewire.seq.length";
inline constexpr char kSeqAt[] = "rewire.seq.at";
inline constexpr char kSeqInsert[] = "rewire.seq.insert";
inline constexpr char kSeqErase[] = "rewire.seq.erase";
// An element of what a kernel of the host returned.
inline constexpr char kSeqChecked[] = "rewire.seq.checked";

// Sequences to tensors and back (the import takes objects).
inline constexpr char kSeqConcat[] = "rewire.seq.concat";
inline constexpr char kSeqSplit[] = "rewire.seq.split";

}  // namespace rewire::names
