// SPDX-License-Identifier: Apache-2.0
//
// Kernels that make tensors from sequences and sequences from tensors. The size of the result depends on the
// sequence, so these kernels allocate their results themselves.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "rewire/kernels/contract/sequence.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/sequence/sequence.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/checks.h"
#include "rewire/kernels/cpu/support/pace.h"

namespace rewire::kernel::cpu {
namespace {

constexpr DLDevice kHostDevice = {kDLCPU, 0};

Status NewTensor(DLDataType dtype, const Dims& dims, RewireFFIAny* result) {
  if (__rewire_kernel_api->new_tensor(dtype, dims.rank(), dims.view().data(), kHostDevice, result) != 0)
    return Status::AlreadySet();
  return Status();
}

// Lets go of a result that was made before the call failed: the VM takes none of a kernel that fails.
Status Discard(Status failure, RewireFFIAny* result) {
  __atomic_fetch_sub(&result->v_obj->combined_ref_count, 1, __ATOMIC_RELEASE);
  *result = RewireFFIAny{};
  return failure;
}

// "f32", "i64", ...: what a join of nothing is made of.
Status ReadDType(const std::string& name, DLDataType* dtype) {
  static constexpr struct {
    const char* name;
    DLDataType dtype;
  } kTypes[] = {{"f32", {kDLFloat, 32, 1}}, {"f64", {kDLFloat, 64, 1}}, {"f16", {kDLFloat, 16, 1}},
                {"bf16", {4, 16, 1}},       {"i64", {kDLInt, 64, 1}},   {"i32", {kDLInt, 32, 1}},
                {"i16", {kDLInt, 16, 1}},   {"i8", {kDLInt, 8, 1}},     {"u64", {kDLUInt, 64, 1}},
                {"u32", {kDLUInt, 32, 1}},  {"u16", {kDLUInt, 16, 1}},  {"u8", {kDLUInt, 8, 1}},
                {"bool", {kBoolCode, 8, 1}}};
  for (const auto& type : kTypes) {
    if (name == type.name) {
      *dtype = type.dtype;
      return Status();
    }
  }
  return ValueError("attribute 'dtype' is '", name, "', expected a dtype's name");
}

struct SequenceConcat {
  static constexpr const char* kName = names::kSeqConcat;
  std::int64_t axis = 0;
  bool new_axis = false;
  std::string dtype;
  std::vector<std::int64_t> shape;

  static Status Make(Attributes& attributes, SequenceConcat* concat) {
    concat->axis = attributes.Int("axis", 0);
    concat->new_axis = attributes.Bool("new_axis", false);
    concat->dtype = attributes.String("dtype", "");
    concat->shape = attributes.Ints("shape", {});
    if (concat->shape.size() >= kMaxKernelRank)
      return ValueError("attribute 'shape' has rank ", concat->shape.size());
    return Status();
  }

  Status operator()(const RewireFFIAny& seq, std::optional<TensorView> row, RewireFFIAny* result) const {
    std::span<RewireFFIAny> elements;
    if (Status s = ReadSequence(seq, 0, &elements); !s.ok()) return s;
    Pace pace;
    for (const RewireFFIAny& element : elements) {
      if (!pace.Spend(1)) return Stopped();
      if (RewireTensorOf(&element) == nullptr)
        return TypeError("an element is ", TypeIndexName(element.type_index), ", expected a tensor");
    }
    return elements.empty() ? JoinNothing(row, result) : Join(elements, result);
  }
  // How many elements there are is no shape.
  bool DeclareWorkspace(WorkspaceSizes&) const { return false; }

 private:
  Status JoinNothing(const std::optional<TensorView>& row, RewireFFIAny* result) const {
    if (dtype.empty()) return ValueError("the sequence is empty");
    DLDataType type;
    if (Status s = ReadDType(dtype, &type); !s.ok()) return s;
    Dims dims(ShapeView(shape.data(), shape.size()));
    if (row) {
      if (Status s = ReadShape("shape", *row, &dims); !s.ok()) return s;
    }
    if (new_axis && dims.rank() == kMaxKernelRank)
      return ValueError("shape is ", dims.view(), ": the result's rank is over ", kMaxKernelRank);
    int at = 0;
    if (new_axis) {
      if (Status s = NormalizeAxis(axis, dims.rank() + 1, &at); !s.ok()) return s;
      dims.insert(at, 0);
    } else {
      if (Status s = NormalizeAxis(axis, dims.rank(), &at); !s.ok()) return s;
      dims[at] = 0;
    }
    return NewTensor(type, dims, result);
  }

  // Join takes elements that are tensors.
  Status Join(std::span<const RewireFFIAny> elements, RewireFFIAny* result) const {
    const TensorView first(RewireTensorOf(&elements[0]));
    if (Status s = CheckDense("element 0", first); !s.ok()) return s;
    if (new_axis && first.ndim() >= kMaxKernelRank) return ValueError("element 0 has rank ", first.ndim());
    int at = 0;
    if (Status s = NormalizeAxis(axis, first.ndim() + (new_axis ? 1 : 0), &at); !s.ok()) return s;
    Dims dims(first.dims());
    if (new_axis) {
      dims.insert(at, static_cast<std::int64_t>(elements.size()));
    } else {
      dims[at] = 0;
    }
    Pace pace;
    for (const RewireFFIAny& element : elements) {
      if (!pace.Spend(32)) return Stopped();
      const TensorView part(RewireTensorOf(&element));
      Checks checks;
      checks.Dense("an element", part)
          .SameDType("an element", part, "the first", first)
          .Rank("an element", part, first.ndim());
      if (Status s = checks.Take(); !s.ok()) return s;
      for (int i = 0; i < part.ndim(); ++i) {
        if (!new_axis && i == at) {
          dims[at] += part.dim(i);
        } else if (part.dim(i) != first.dim(i)) {
          return ValueError("an element has shape ", part.dims(), ", the first ", first.dims());
        }
      }
    }
    if (Status s = NewTensor(first.dtype(), dims, result); !s.ok()) return s;
    const TensorView out(RewireTensorOf(result));
    const std::int64_t outer = Product(dims.view(), 0, at);
    const std::int64_t row = outer == 0 ? 0 : out.size() / outer * out.element_bytes();
    char* to = static_cast<char*>(out.raw_data());
    for (const RewireFFIAny& element : elements) {
      const TensorView part(RewireTensorOf(&element));
      const std::int64_t run = outer == 0 ? 0 : part.size() / outer * part.element_bytes();
      const char* from = static_cast<const char*>(part.raw_data());
      if (!pace.Spend(16)) return Discard(Stopped(), result);
      for (std::int64_t i = 0; i < outer && run > 0; ++i) {
        if (!pace.Spend(1) || !pace.Copy(to + i * row, from + i * run, run))
          return Discard(Stopped(), result);
      }
      if (run > 0) to += run;
    }
    return Status();
  }
};

struct SequenceSplit {
  static constexpr const char* kName = names::kSeqSplit;
  std::int64_t axis = 0;
  bool keepdims = true;

  static Status Make(Attributes& attributes, SequenceSplit* split) {
    split->axis = attributes.Int("axis", 0);
    split->keepdims = attributes.Bool("keepdims", true);
    return Status();
  }

  Status operator()(TensorView x, std::optional<TensorView> split, RewireFFIAny* result) const {
    if (Status s = CheckDense("x", x); !s.ok()) return s;
    int at = 0;
    if (Status s = NormalizeAxis(axis, x.ndim(), &at); !s.ok()) return s;
    std::span<std::int64_t> lengths;
    if (Status s = ReadLengths(x.dim(at), split, &lengths); !s.ok()) return s;
    RewireFFIAny* parts = nullptr;
    if (Status s = Workspace(std::max<std::int64_t>(1, std::ssize(lengths)), &parts); !s.ok()) return s;
    std::size_t count = 0;
    // Parts that may be longer than 1 keep the axis, as ONNX has it.
    Status made = Cut(x, at, lengths, keepdims || split.has_value(), parts, &count);
    if (made.ok()) made = MakeSequence({parts, count}, result);
    // The sequence holds references of its own.
    for (std::size_t i = 0; i < count; ++i)
      __atomic_fetch_sub(&parts[i].v_obj->combined_ref_count, 1, __ATOMIC_RELEASE);
    return made;
  }
  // How many parts there are is no shape.
  bool DeclareWorkspace(WorkspaceSizes&) const { return false; }

 private:
  // A scalar is the length of all parts but a shorter last one; otherwise one length a part.
  static Status ReadLengths(std::int64_t size, const std::optional<TensorView>& split,
                            std::span<std::int64_t>* lengths) {
    const auto make_room = [lengths](std::int64_t count) {
      std::int64_t* room = nullptr;
      Status s = Workspace(std::max<std::int64_t>(1, count), &room);
      if (s.ok()) *lengths = {room, static_cast<std::size_t>(count)};
      return s;
    };
    Pace pace;
    std::int64_t chunk = 1;
    if (split) {
      if (Status s = CheckDense("split", *split); !s.ok()) return s;
      if (!split->Is<std::int64_t>() && !split->Is<std::int32_t>())
        return TypeError("split has dtype ", DTypeName(split->dtype()), ", expected one of i64, i32");
      const auto read = [&](std::int64_t i) {
        return split->Is<std::int64_t>() ? split->data<std::int64_t>()[i] : split->data<std::int32_t>()[i];
      };
      if (split->ndim() > 0) {
        std::int64_t total = 0;
        if (Status s = make_room(split->size()); !s.ok()) return s;
        for (std::int64_t i = 0; i < split->size(); ++i) {
          if (!pace.Spend(4)) return Stopped();
          (*lengths)[static_cast<std::size_t>(i)] = read(i);
          if (read(i) < 0 || __builtin_add_overflow(total, read(i), &total))
            return ValueError("split holds a length of ", read(i));
        }
        return total == size ? Status() : ValueError("split adds up to ", total, ", the axis has ", size);
      }
      chunk = read(0);
    }
    if (chunk < 1) return ValueError("split is ", chunk, ", expected at least 1");
    if (Status s = make_room(size / chunk + (size % chunk != 0 ? 1 : 0)); !s.ok()) return s;
    std::int64_t rest = size;
    for (std::int64_t& length : *lengths) {
      if (!pace.Spend(1)) return Stopped();
      length = std::min(chunk, rest);
      rest -= length;
    }
    return Status();
  }

  // Counts the parts that it has made, which are the caller's.
  static Status Cut(TensorView x, int at, std::span<const std::int64_t> lengths, bool keeps_axis,
                    RewireFFIAny* parts, std::size_t* count) {
    const std::int64_t outer = Product(x.dims(), 0, at);
    const std::int64_t unit = Times(Product(x.dims(), at + 1, x.ndim()), x.element_bytes());
    const std::int64_t row = Times(unit, x.dim(at));
    Pace pace;
    const char* from = static_cast<const char*>(x.raw_data());
    for (const std::int64_t length : lengths) {
      if (!pace.Spend(64)) return Stopped();
      Dims dims;
      for (int i = 0; i < x.ndim(); ++i) {
        if (i != at) dims.push_back(x.dim(i));
        if (i == at && keeps_axis) dims.push_back(length);
      }
      RewireFFIAny part{};
      if (Status s = NewTensor(x.dtype(), dims, &part); !s.ok()) return s;
      parts[(*count)++] = part;
      char* to = static_cast<char*>(TensorView(RewireTensorOf(&part)).raw_data());
      const std::int64_t run = Times(unit, length);
      if (outer == 0 || run == 0) continue;  // `from` may be null
      for (std::int64_t i = 0; i < outer; ++i) {
        if (!pace.Spend(1) || !pace.Copy(to + i * run, from + i * row, run)) return Stopped();
      }
      from += run;
    }
    return Status();
  }
};

}  // namespace

std::span<const Kernel> SequenceJoinKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<SequenceConcat>(
          "seq, shape?", "seq any; shape i64",
          "axis = 0, new_axis = 0, dtype = none, shape = none (an element's, for an empty sequence)",
          "returns the elements one after another along an axis, theirs or a new one. What an element's "
          "shape "
          "would be of an empty sequence is an argument where only the run knows it",
          kObjects),
      Describe<SequenceSplit>("x, split?", "x any; split i64 i32", "axis = 0, keepdims = 1",
                              "returns x cut along the axis: by a length for all (1 if none), or one for "
                              "each; keepdims = 0 drops "
                              "the axis without split alone",
                              kObjects),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
