// SPDX-License-Identifier: Apache-2.0
//
// The text of a SourceNote that the compiler writes: which nodes of the model an instruction does the work
// of.
//
//   Conv 'conv_1'                          one node
//   Conv 'conv_1', Relu 'act'              several, which the kernel computes as a whole
//   Sqrt 'root' + Pow 'p' (2 steps)        a program of rewire.fused: the nodes of its steps, in their order
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rewire {

// Steps of a program that belong together, and the nodes that they compute. Texts lie in the note.
struct NoteStage {
  std::vector<std::string_view> nodes;
  std::size_t steps = 1;
};

// At least one stage, and in each at least one node. A note that somebody else has written is one node.
std::vector<NoteStage> StagesOf(std::string_view note);
// All nodes of a note, each once.
std::vector<std::string_view> NodesOf(std::string_view note);
// The first of them, which names a product with what follows it.
std::string_view FirstNodeOf(std::string_view note);

// The note of an instruction that does the work of two: `first` with the nodes of `second` that it lacks.
std::string JoinNotes(std::string_view first, std::string_view second);
// Adds steps to the note of a program. Steps of the same nodes become one stage.
void AddSteps(std::string_view nodes, std::size_t steps, std::string* note);

}  // namespace rewire
