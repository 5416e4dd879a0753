// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/registry.h"

#include <vector>

#include "kernels/cpu/kernels_cpu.h"
#include "kernels/cpu/sequence.h"

namespace rewire::kernel::cpu {

std::span<const Family> Families() {
  static const Family kFamilies[] = {
      {"Arithmetic", ArithmeticKernels()},
      {"Comparison and logic", ComparisonKernels()},
      {"Functions of one element", UnaryKernels()},
      {"Kinds of floats", ClassifyKernels()},
      {"Bits", BitwiseKernels()},
      {"Activations", ActivationKernels()},
      {"Selection", SelectKernels()},
      {"Conversion", CastKernels()},
      {"Matrix products", MatMulKernels()},
      {"Convolution", ConvKernels()},
      {"Products by packed weights", PackedMatMulKernels()},
      {"Convolution by packed weights", PackedConvKernels()},
      {"Integer products by packed weights", PackedIntegerMatMulKernels()},
      {"Integer convolution by packed weights", PackedIntegerConvKernels()},
      {"Pooling", PoolKernels()},
      {"Normalisation", NormalizeKernels()},
      {"Softmax", SoftmaxKernels()},
      {"Reductions", ReduceKernels()},
      {"Positions of extremes", ArgReduceKernels()},
      {"Copies", CopyKernels()},
      {"Rearrangement", RearrangeKernels()},
      {"Indexing", GatherKernels()},
      {"Generators", GenerateKernels()},
      {"Borders", PadKernels()},
      {"Scatter and gather of slices", ScatterKernels()},
      {"Order", SortKernels()},
      {"Sizes that depend on data", FilterKernels()},
      {"Along an axis", AlongAxisKernels()},
      {"Shape functions of moves", MoveShapeFunctionKernels()},
      {"Transposed convolution", ConvTransposeKernels()},
      {"Unpooling", MaxUnpoolKernels()},
      {"Losses", LossKernels()},
      {"Quantisation", QuantizeKernels()},
      {"Integer products", IntegerProductKernels()},
      {"Recurrent layers", RecurrentKernels()},
      {"Resizing", ResizeKernels()},
      {"Non-maximum suppression", NmsKernels()},
      {"Sampling at positions", GridSampleKernels()},
      {"Regions", RoiKernels()},
      {"Einstein summation", EinsumKernels()},
      {"Square matrices", LinalgKernels()},
      {"Training", TrainKernels()},
      {"N-grams", TfIdfKernels()},
      {"Signals", SignalKernels()},
      {"Random numbers", RandomKernels()},
      {"Shape functions", ShapeFunctionKernels()},
      {"Shape programs", ShapeProgramKernels()},
      {"Elements of sequences (the import takes objects)", SequenceElementKernels()},
      {"Sequences to tensors and back (the import takes objects)", SequenceJoinKernels()},
  };
  return kFamilies;
}

namespace {

// The rows of all families side by side, as the ABI wants them.
std::vector<RewireKernelEntry> AllEntries() {
  std::vector<RewireKernelEntry> entries;
  for (const Family& family : Families()) {
    for (const Kernel& kernel : family.kernels) entries.push_back(kernel.entry);
  }
  return entries;
}

}  // namespace
}  // namespace rewire::kernel::cpu

REWIRE_KERNEL_LIBRARY;

const RewireKernelTable* RewireCpuKernels() {
  static const std::vector<RewireKernelEntry> kEntries = rewire::kernel::cpu::AllEntries();
  static const RewireKernelTable kTable = {sizeof(RewireKernelTable),
                                           static_cast<std::uint32_t>(kEntries.size()), kEntries.data()};
  return &kTable;
}
