// SPDX-License-Identifier: Apache-2.0
//
// Kernel calls in an abstract run: what lives during the call, what is written, and shape functions, which
// are called with what is known about their arguments.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "rewire/base/array.h"
#include "rewire/executable_format/instruction.h"
#include "rewire/kernels/contract/shape.h"
#include "rewire/vm/heap/object_heap.h"
#include "rewire/vm/link/program_rep.h"
#include "rewire/vm/memory/block_pool.h"
#include "rewire/vm/prepare/bound_analysis.h"
#include "rewire/vm/tensor.h"
#include "rewire/vm/value/objects.h"
#include "rewire/vm/value/shape.h"

namespace rewire::bounds {
namespace {

constexpr Opcode kOp = Opcode::kInvokePacked;
// The kernels whose programs are read here.
constexpr std::string_view kExpressions = names::kShapeEval;
constexpr std::string_view kSizes = names::kShapeSizes;
constexpr std::string_view kLayout = names::kShapeLayout;

DLTensor Described(const Node& node, std::int64_t* dims, void* data) {
  DLTensor tensor{};
  std::copy(node.dims.begin(), node.dims.end(), dims);
  tensor.data = data;
  tensor.device = kHost;
  tensor.ndim = static_cast<std::int32_t>(node.dims.size());
  tensor.dtype = node.dtype;
  tensor.shape = dims;
  std::int64_t* strides = dims + kMaxRank;
  std::int64_t stride = 1;
  for (std::size_t i = node.dims.size(); i-- > 0;) {
    strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<std::int64_t>(node.dims[i], 1), &stride)) stride = 1;
  }
  tensor.strides = strides;
  return tensor;
}

// Whether a kernel makes shapes out of shapes; and, of those, which grow when any argument grows, or when the
// first does.
enum class ShapeFunction : std::uint8_t { kNone, kExactOnly, kGrowsWithFirst, kGrows };

bool HasTrait(const PackedFunction* kernel, std::uint32_t trait) {
  return kernel != nullptr && kernel->row != nullptr && (kernel->row->traits & trait) != 0;
}

ShapeFunction ShapeFunctionOf(const PackedFunction* kernel) {
  if (!HasTrait(kernel, REWIRE_KERNEL_SHAPE)) return ShapeFunction::kNone;
  if (HasTrait(kernel, REWIRE_KERNEL_GROWS)) return ShapeFunction::kGrows;
  if (HasTrait(kernel, REWIRE_KERNEL_GROWS_WITH_FIRST)) return ShapeFunction::kGrowsWithFirst;
  return ShapeFunction::kExactOnly;
}

}  // namespace

bool BoundAnalysis::TransferKernel() {
  const std::uint32_t* code = words();
  const std::uint32_t index = code[WordOf(kOp, "kernel")];
  const KernelImport& import = module_.kernels[index];
  const Span<const std::uint32_t> args = ReadsView(code + WordOf(kOp, "args"));
  const std::uint32_t outputs = code[WordOf(kOp, "outputs")];
  if (code[WordOf(kOp, "dst")] != kNone) {
    return Stop("what memory the value takes that the kernel returns is not known");
  }
  const bool objects = (import.flags & kKernelObjects) != 0;
  Array<NodeId> flat;
  for (const std::uint32_t reg : args) {
    const Node& node = heap_.Get(Reg(reg));
    if (!objects && node.kind == Node::kUnknown) {
      return Stop("an argument is a tensor on one path and something else on another");
    }
    if (!objects && node.kind == Node::kAdt) {
      flat.append(node.children.begin(), node.children.end());
    } else {
      flat.push_back(Reg(reg));
    }
  }
  findings_.args = std::max(findings_.args, static_cast<std::uint32_t>(flat.size()));
  const std::uint32_t alignment =
      kernels_[index] == nullptr ? import.alignment : AlignmentOf(*kernels_[index], import);
  Array<NodeId> temporaries;
  for (const NodeId arg : flat) {
    const Node node = heap_.Get(arg);
    if (!objects && node.kind == Node::kInteger) temporaries.push_back(Box());
    if (alignment > 64 && node.kind == Node::kTensor) {
      // Memory that is not aligned as the kernel asks is copied.
      std::uint64_t bytes = 0;
      if (!BytesOf(node, &bytes))
        return Stop("the size of an argument that may have to be aligned is not known");
      Node copy = node;
      copy.contents = 0;
      GiveTensorHeader(&copy);
      const NodeId storage = heap_.Add(StorageNode(bytes, alignment, kHostDevice, node.exact));
      TakeMemory(storage);
      copy.children = {storage};
      temporaries.push_back(heap_.Add(std::move(copy)));
    }
  }
  findings_.temporaries = std::max(findings_.temporaries, static_cast<std::uint32_t>(temporaries.size()));
  Array<BlockClass> scratch;
  if (!AddWorkspace(index, flat, &scratch)) return false;
  // Tensors that the kernel makes are temporaries, too: three blocks each.
  const std::size_t made = HasTrait(kernels_[index], REWIRE_KERNEL_DEVICE_WORKSPACE) ? scratch.size() / 3 : 0;
  findings_.temporaries =
      std::max(findings_.temporaries, static_cast<std::uint32_t>(temporaries.size() + made));
  if (!temporaries.empty() || !scratch.empty()) Measure(temporaries, scratch);
  for (const NodeId temporary : temporaries) state().SetFact(heap_.Get(temporary).children[0], 0);

  if (Fold(import, kernels_[index], args, outputs)) return true;
  if (HasTrait(kernels_[index], REWIRE_KERNEL_SHRINKS) && BoundByFirst(args, outputs)) return true;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const bool plain = flat.size() == args.size();
    const bool written = !plain || i + outputs >= flat.size() ||
                         std::binary_search(import.also_written.begin(), import.also_written.end(), i);
    if (written) Invalidate(flat[i]);
  }
  return true;
}

// The contents of tensors on the same storage are not known any more.
void BoundAnalysis::Invalidate(NodeId tensor) {
  const Array<NodeId> storage = heap_.Get(tensor).children;
  Array<std::pair<NodeId, std::uint32_t>>& facts = state().facts;
  meter_.Spend(facts.size());
  facts.erase(std::remove_if(facts.begin(), facts.end(),
                             [&](const std::pair<NodeId, std::uint32_t>& fact) {
                               const Node& node = heap_.Get(fact.first);
                               return fact.first == tensor ||
                                      (node.data.empty() && !storage.empty() && node.children == storage);
                             }),
              facts.end());
}

// True when the call was a shape function's whose result is known.
bool BoundAnalysis::Fold(const KernelImport& import, const PackedFunction* kernel,
                         Span<const std::uint32_t> args, std::uint32_t outputs) {
  if (import.name == kExpressions) return FoldExpressions(import, args, outputs);
  if (import.name == kSizes) return FoldSizes(import, args, outputs);
  if (import.name == kLayout) return FoldLayout(import, args, outputs);
  const ShapeFunction kind = ShapeFunctionOf(kernel);
  if (kind == ShapeFunction::kNone || kernel == nullptr || outputs != 1 || args.size() > 64) return false;
  Array<Array<std::int64_t>> data(args.size());
  Array<std::int64_t> dims(args.size() * 2 * kMaxRank);
  Array<DLTensor> tensors(args.size());
  Array<RewireFFIAny> values(args.size());
  bool exact = true;
  for (std::size_t i = 0; i < args.size(); ++i) {
    Node node = heap_.Get(Reg(args[i]));
    const bool is_output = i + 1 == args.size();
    const Contents* known = is_output ? nullptr : heap_.ContentsOf(state(), Reg(args[i]));
    if (is_output) {
      if (node.kind != Node::kTensor || !node.has_dims || !node.exact || !(node.dtype == kInt64))
        return false;
      const std::optional<std::int64_t> count = CountElements(node.dims);
      if (!count || *count > kMaxRank) return false;
      data[i].resize(static_cast<std::size_t>(*count));
    } else {
      if (known == nullptr) return false;
      const bool may_grow =
          kind == ShapeFunction::kGrows || (kind == ShapeFunction::kGrowsWithFirst && i == 0);
      if (!known->exact && !may_grow) return false;
      exact = exact && known->exact;
      // Held as int64 whatever the tensor's own width.
      if (node.kind == Node::kInteger) node.dims.clear();
      if (node.kind == Node::kTensor && (!node.has_dims || node.dims.size() > 1)) return false;
      if (node.kind == Node::kTensor && !(node.dtype == kInt64) && !(node.dtype == kInt32)) return false;
      node.dtype = kInt64;
      data[i] = known->values;
    }
    tensors[i] = Described(node, &dims[i * 2 * kMaxRank], data[i].data());
    values[i].type_index = kRewireFFIDLTensorPtr;
    values[i].zero_padding = 0;
    values[i].v_ptr = &tensors[i];
  }
  RewireFFIAny returned{};
  if (kernel->call(kernel->handle, values.data(), static_cast<std::int32_t>(args.size()), &returned) != 0) {
    TakeErrorText(*kernel);
    return false;
  }
  const NodeId output = Reg(args[args.size() - 1]);
  Invalidate(output);
  state().SetFact(output, heap_.AddContents({data.back(), exact, exact ? 0 : Site()}));
  return true;
}

// BoundByFirst is for a shape function whose result has at most the dimensions of its first input.
bool BoundAnalysis::BoundByFirst(Span<const std::uint32_t> args, std::uint32_t outputs) {
  if (outputs != 1 || args.size() < 2) return false;
  const Contents* whole = heap_.ContentsOf(state(), Reg(args[0]));
  const NodeId output = Reg(args[args.size() - 1]);
  const Node& node = heap_.Get(output);
  if (whole == nullptr || !node.has_dims ||
      node.dims != Array<std::int64_t>{static_cast<std::int64_t>(whole->values.size())})
    return false;
  Array<std::int64_t> most = whole->values;
  Invalidate(output);
  state().SetFact(output, heap_.AddContents({std::move(most), false, Site()}));
  return true;
}

std::uint32_t BoundAnalysis::FirstSiteOf(std::uint32_t index, const Array<NodeId>& args) {
  Array<std::int64_t> key = {index};
  for (const NodeId arg : args) {
    const Node& node = heap_.Get(arg);
    if (!node.exact && node.origin == 0) return Site();
    key.append({node.kind, node.dtype.code, node.dtype.bits, node.exact ? 0 : node.origin,
                static_cast<std::int64_t>(node.dims.size())});
    key.append(node.dims.begin(), node.dims.end());
  }
  meter_.Spend(key.size());
  return first_sites_.try_emplace(std::move(key), Site()).first->second;
}

// Inputs and bound outputs have no memory of the VM's. Then it is the first device of the table.
std::uint32_t BoundAnalysis::DeviceOf(const Array<NodeId>& args) const {
  for (const NodeId arg : args) {
    const Node& node = heap_.Get(arg);
    if (node.kind != Node::kTensor || node.children.empty()) continue;
    const Node& storage = heap_.Get(node.children[0]);
    if (storage.on_device && !storage.data.empty()) return classes_[storage.data[0]].device;
  }
  for (std::uint32_t i = 0; i < module_.devices.size(); ++i) {
    if (module_.devices[i].type != kDLCPU) return i;
  }
  return kHostDevice;
}

bool BoundAnalysis::AddWorkspace(std::uint32_t index, const Array<NodeId>& args, Array<BlockClass>* scratch) {
  Array<std::uint32_t>& undeclared = findings_.undeclared;
  meter_.Spend(undeclared.size() + args.size());
  const PackedFunction* kernel = kernels_[index];
  if (kernel == nullptr || kernel->workspace == nullptr) {
    if (HasTrait(kernel, REWIRE_KERNEL_SHAPE)) return true;  // arithmetic on a few integers
    if (std::find(undeclared.begin(), undeclared.end(), index) == undeclared.end())
      undeclared.push_back(index);
    return true;
  }
  Array<std::int64_t> dims(args.size() * 2 * kMaxRank);
  Array<DLTensor> tensors(args.size());
  Array<const DLTensor*> pointers(args.size());
  bool exact = true;
  bool known = true;
  const std::uint32_t device =
      HasTrait(kernel, REWIRE_KERNEL_DEVICE_WORKSPACE) ? DeviceOf(args) : kHostDevice;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Node& node = heap_.Get(args[i]);
    if (node.kind == Node::kNone) continue;
    known = known && (node.kind == Node::kInteger || (node.kind == Node::kTensor && node.has_dims));
    exact = exact && node.exact;
    tensors[i] = Described(node, &dims[i * 2 * kMaxRank], nullptr);
    if (device != kHostDevice) tensors[i].device = MakeDevice(module_.devices[device].type, 0);
    pointers[i] = &tensors[i];
  }
  std::uint64_t blocks[REWIRE_MAX_WORKSPACES] = {};
  // A kernel that takes none needs no shapes to say so.
  const std::int32_t count = kernel->workspace(kernel->handle, known ? pointers.data() : nullptr,
                                               known ? static_cast<std::int32_t>(args.size()) : 0, blocks);
  if (count < 0) return Stop("how much workspace the kernel takes is not known for these shapes");
  // A workspace that is the same for all shapes is one block for all calls.
  std::uint64_t always[REWIRE_MAX_WORKSPACES] = {};
  exact = exact || (kernel->workspace(kernel->handle, nullptr, 0, always) == count &&
                    std::equal(std::begin(blocks), std::end(blocks), std::begin(always)));
  const std::uint32_t site = exact ? 0 : FirstSiteOf(index, args);
  std::uint64_t sum = 0;
  for (std::int32_t i = 0; i < std::min(count, REWIRE_MAX_WORKSPACES); ++i) {
    const std::uint64_t block = BlockPool::BlockBytes(std::min(blocks[i], BlockPool::kMaxBlock));
    sum += blocks[i];
    if (device == kHostDevice) {
      scratch->push_back(ClassOf({block, kHostDevice, 0, site}));
      continue;
    }
    // A tensor: its memory and two objects.
    scratch->push_back(ClassOf({block, device, std::max<std::uint64_t>(64, options_.least_alignment), site}));
    for (const std::uint64_t bytes : {TensorObject::Bytes(kPooledRank), std::uint64_t{sizeof(StorageObject)}})
      scratch->push_back(ClassOf({BlockPool::BlockBytes(bytes), kHostDevice, 0, 0}));
  }
  findings_.workspace = std::max(findings_.workspace, sum);
  if (device != kHostDevice) return true;
  findings_.workspaces = std::max(findings_.workspaces, static_cast<std::uint32_t>(scratch->size()));
  return true;
}

}  // namespace rewire::bounds
