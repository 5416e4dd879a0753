// SPDX-License-Identifier: Apache-2.0
// Passes over the graph, in the order in which they run. A pass is a function in a file of its own and a row
// in passes.cc; each can be switched off by its name, and a program is right without any of them.
#pragma once

#include <span>

#include "compiler/ir/graph.h"

namespace rewire::compiler {

struct Pass {
  const char* name;
  void (*run)(Graph* graph);
  // A kernel library that the result needs; where it is missing, the pass is left out.
  const char* library = nullptr;
};

std::span<const Pass> Passes();

// Takes out what no output depends on. Before the others too, they need not look at it.
void RemoveDeadCode(Graph* graph);
// Nodes that compute the same from the same become one.
void ShareCommonSubexpressions(Graph* graph);

// What moves or selects elements works on integers before these are dequantised.
void DequantizeLate(Graph* graph);
// Sums of dequantised tensors that are quantised again become one kernel.
void FuseQuantizedAdd(Graph* graph);
// Products of dequantised integers become products of the integers, dequantised.
void UseIntegerProducts(Graph* graph);
// Integer convolutions of groups run in f32 where that is exact.
void UseFloatsForGroups(Graph* graph);
// Batch normalisation, and factors and terms for each channel, go into the weights before them.
void FoldAffine(Graph* graph);
// x * clip(x + 3, 0, 6) / 6 spelled out becomes one kernel.
void FuseHardSwish(Graph* graph);
// Rows are taken out of a constant table before what is done with all of its elements.
void GatherEarly(Graph* graph);
// Constant tables whose rows a recurrent layer reads are multiplied by its input weights ahead of all runs.
void MultiplyEmbeddings(Graph* graph);
// x to the power 2 becomes x * x.
void Square(Graph* graph);
// x * (1 + erf(x / sqrt(2))) / 2 spelled out becomes one kernel.
void FuseGelu(Graph* graph);
// Normalisation by mean and variance over the last axis spelled out becomes one kernel.
void FuseLayerNorm(Graph* graph);
// Convolutions and products with constant weights become those of packed weights, with the bias and the
// activation that follow.
void PackProducts(Graph* graph);
// Products and convolutions of integers with constant weights become those of packed weights, with what makes
// floats, and integers again, of their sums.
void PackIntegers(Graph* graph);
// Convolutions of groups with constant weights go to oneDNN, the weights packed by `__init`.
void PackForOneDnn(Graph* graph);
// Packed convolutions, and what lies between them, run with the channels last.
void ChannelsLast(Graph* graph);
// Kernels that go element by element write over inputs that die there. Behind all passes that move nodes.
void WriteInPlace(Graph* graph);
// Tensors of known or limited size that stay inside the function get places in one piece of memory
// (Graph::arena). Last: it holds for these nodes in this order.
void PlanArena(Graph* graph);
// Tensors whose sizes show when the inputs are there share a piece of memory too (Graph::shape_arena). Behind
// it, for the same nodes in the same order.
void PlanShapeArena(Graph* graph);

}  // namespace rewire::compiler
