// SPDX-License-Identifier: Apache-2.0
//
// Several elementwise operations in one pass over memory. Blocks of elements that fit into the first cache go
// through all steps of a program (fused_program.h), so that results in between never leave it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rewire/kernels/contract/elementwise.h"
#include "rewire/kernels/cpu/elementwise/fused_input.h"
#include "rewire/kernels/cpu/elementwise/fused_program.h"
#include "rewire/kernels/cpu/elementwise/fused_steps.h"
#include "rewire/kernels/cpu/math/halves.h"
#include "rewire/kernels/cpu/math/quantized_math.h"
#include "rewire/kernels/cpu/registry.h"
#include "rewire/kernels/cpu/shape/shapes.h"
#include "rewire/kernels/cpu/support/convert.h"
#include "rewire/kernels/cpu/support/layout.h"
#include "rewire/kernels/cpu/support/types.h"

namespace rewire::kernel::cpu {
namespace {

constexpr int kMostInputs = FusedProgram::kMostInputs;
constexpr std::int64_t kBlock = 512;  // elements
// Elements of a program of bytes, which needs no memory in between, and tries a shorter way out on each
// piece.
constexpr std::int64_t kBytePiece = 16384;
using FusedLayout = Layout<kMostInputs + 1>;
using Buffer = float[kBlock];

// The place of an innermost run in each of the other dimensions. Blocks follow each other, so that few of
// them need a division.
struct RunPlace {
  std::int64_t index[kMaxKernelRank] = {};

  RunPlace(const FusedLayout& layout, std::int64_t row) { Advance(layout, row); }
  void Advance(const FusedLayout& layout, std::int64_t rows) {
    for (int i = layout.rank - 2; i >= 0 && rows != 0; --i) {
      index[i] += rows;
      rows = 0;
      if (index[i] < layout.dims[i]) continue;
      rows = index[i] / layout.dims[i];
      index[i] %= layout.dims[i];
    }
  }
  // The run's first element in operand k.
  std::int64_t OffsetOf(const FusedLayout& layout, std::size_t k) const {
    std::int64_t offset = 0;
    for (int i = layout.rank - 2; i >= 0; --i) offset += index[i] * layout.strides[i][k];
    return offset;
  }
};

// The usual call, which needs no further checks: each input has the output's shape, or one element, and is
// contiguous; and it is the output or apart from it.
bool IsFlatCall(TensorList inputs, TensorView out) {
  const std::int64_t size = out.size();
  const auto fits = [](TensorView tensor) {
    return tensor.Is<float>() || tensor.Is<std::uint8_t>() || tensor.Is<std::int8_t>();
  };
  if (!fits(out)) return false;
  for (int k = 0; k < inputs.size(); ++k) {
    const TensorView input = inputs[k];
    if (!fits(input) || !input.IsOnHost() || input.ndim() > out.ndim()) return false;
    const bool alike = input.dims() == out.dims() && input.IsContiguous();
    if (!alike && input.size() != 1) return false;
    const bool in_place =
        alike && input.raw_data() == out.raw_data() && input.element_bytes() == out.element_bytes();
    if (!in_place && OverlapOfSize(out, input, size, alike ? size : 1)) return false;
  }
  // An output of a higher rank than all inputs has another shape than they give.
  for (int k = 0; k < inputs.size(); ++k) {
    if (inputs[k].dims() == out.dims()) return true;
  }
  return false;
}

// A call. The output is cut into blocks: several whole innermost runs, or a piece of one.
class FusedCall {
 public:
  FusedCall(const FusedProgram& program, TensorList inputs, TensorView out, bool flat)
      : program_(program), out_(static_cast<float*>(out.raw_data())) {
    if (out.Is<BFloat16>()) rounded_ = static_cast<std::uint16_t*>(out.raw_data());
    if (out.Is<Float16>()) halves_ = static_cast<Float16*>(out.raw_data());
    if (out.Is<std::uint8_t>()) unsigned_ = static_cast<std::uint8_t*>(out.raw_data());
    if (out.Is<std::int8_t>()) signed_ = static_cast<std::int8_t*>(out.raw_data());
    if (flat) {
      for (int k = 0; k < inputs.size(); ++k) {
        FusedInput& input = inputs_[static_cast<std::size_t>(k)];
        input.data = inputs[k].raw_data();
        input.element = FusedInput::ElementOf(inputs[k]);
        input.bytes = program.bytes_of(k);
        input.kind = inputs[k].size() == 1 ? FusedInput::kRepeated : FusedInput::kAlike;
      }
      inner_ = out.size();
      of_bytes_ = IsOfBytes();
      if (of_bytes_) piece_ = kBytePiece;
      pieces_ = (inner_ + piece_ - 1) / piece_;
      return;
    }
    const int rank = out.ndim();
    std::int64_t by_operand[kMostInputs + 1][kMaxKernelRank] = {};
    BroadcastStrides(out, rank, by_operand[0]);
    for (int k = 0; k < inputs.size(); ++k) BroadcastStrides(inputs[k], rank, by_operand[k + 1]);
    for (int i = 0; i < rank; ++i) {
      std::int64_t strides[kMostInputs + 1];
      for (int k = 0; k <= kMostInputs; ++k) strides[k] = by_operand[k][i];
      layout_.Append(out.dim(i), strides);
    }
    layout_.Finish();
    for (int k = 0; k < inputs.size(); ++k) Classify(inputs[k], k);
    inner_ = layout_.inner();
    rows_ = layout_.rows();
    of_bytes_ = IsOfBytes();
    in_pieces_ = inner_ >= kBlock || rows_ == 1;
    per_block_ = in_pieces_ || RepeatsAlongRuns() ? 1 : std::min(rows_, kBlock / inner_);
    pieces_ = in_pieces_ ? (inner_ + kBlock - 1) / kBlock : 1;
  }

  Status Run() const {
    const std::int64_t blocks = Times((rows_ + per_block_ - 1) / per_block_, pieces_);
    const std::int64_t size = in_pieces_ ? std::min(inner_, piece_) : per_block_ * inner_;
    const std::int64_t work = Times(size, static_cast<std::int64_t>(program_.steps().size()));
    return ParallelFor(blocks, GrainOf(kGrain, work), [&](std::int64_t begin, std::int64_t end, Pace& pace) {
      RunBlocks(begin, end, work, pace);
    });
  }

 private:
  // Whether the runs are long, and one of the inputs is a number for each: it need not be written out if
  // runs go through the program one by one. Bytes are not written out in any case.
  bool RepeatsAlongRuns() const {
    constexpr std::int64_t kLongRun = 128;
    if (inner_ < kLongRun) return false;
    if (of_bytes_) return true;
    for (int k = 0; k < program_.inputs(); ++k) {
      const bool repeated = layout_.inner_strides()[k + 1] == 0;
      if (repeated && inputs_[static_cast<std::size_t>(k)].kind == FusedInput::kOther) return true;
    }
    return false;
  }

  void Classify(TensorView tensor, int k) {
    FusedInput& input = inputs_[static_cast<std::size_t>(k)];
    input.element = FusedInput::ElementOf(tensor);
    input.data = tensor.raw_data();
    input.bytes = program_.bytes_of(k);
    bool alike = input.element != FusedInput::kBool, rows = true, repeated = true;
    for (int i = 0; i < layout_.rank; ++i) {
      const std::int64_t stride = layout_.strides[i][k + 1];
      alike = alike && stride == layout_.strides[i][0];
      rows = rows && (stride == 0 || i + 1 == layout_.rank);
      repeated = repeated && stride == 0;
    }
    // A single element does not say whether it is repeated.
    const bool single = tensor.size() == 1;
    input.kind = repeated || single ? FusedInput::kRepeated
                 : alike            ? FusedInput::kAlike
                 : rows             ? FusedInput::kRows
                                    : FusedInput::kOther;
  }

  void RunBlocks(std::int64_t begin, std::int64_t end, std::int64_t work, Pace& pace) const {
    alignas(64) Buffer registers[FusedProgram::kMostRegisters];
    alignas(64) Buffer copies[kMostInputs];
    alignas(64) Buffer result;  // before it is rounded
    FusedElements elements[kMostInputs];
    const FusedStepKernel run = BestFusedStepKernel();
    const std::size_t inputs = static_cast<std::size_t>(program_.inputs());
    const std::size_t last = program_.steps().size() - 1;
    std::int64_t row = begin / pieces_ * per_block_, piece = begin % pieces_;
    RunPlace place(layout_, row);
    for (std::int64_t block = begin; block < end; ++block) {
      if (!pace.Spend(work)) return;
      const std::int64_t at = piece * piece_;
      const std::int64_t rows = std::min(per_block_, rows_ - row);
      const std::int64_t columns = std::min(inner_ - at, in_pieces_ ? piece_ : inner_);
      const bool in_registers =
          of_bytes_ && (unsigned_ != nullptr ? RunBytes(unsigned_, place, row, rows, at, columns)
                                             : RunBytes(signed_, place, row, rows, at, columns));
      for (std::size_t k = 0; k < inputs && !in_registers; ++k) {
        const bool kept = block != begin && Stays(k, piece) && !of_bytes_;
        if (!kept) elements[k] = Fetch(k, place, row, rows, at, columns, copies[k]);
      }
      const std::int64_t count = rows * columns;
      const bool to_bytes = unsigned_ != nullptr || signed_ != nullptr;
      const bool is_float = rounded_ == nullptr && halves_ == nullptr && !to_bytes;
      FusedResult out{is_float ? out_ + row * inner_ + at : result};
      const bool rounds_later = rounded_ != nullptr && !ReadsBf16(program_.steps()[last].code);
      if (rounded_ != nullptr && !rounds_later) out.bf16 = rounded_ + row * inner_ + at;
      const auto elements_of = [&](const FusedOperand& operand) {
        return operand.kind == FusedOperand::kInput      ? elements[operand.index]
               : operand.kind == FusedOperand::kRegister ? FusedElements{registers[operand.index], 0}
                                                         : FusedElements{nullptr, operand.number};
      };
      for (std::size_t i = 0; i <= last && !in_registers; ++i) {
        const FusedStep& step = program_.steps()[i];
        FusedElements operands[3];
        for (std::size_t k = 0; k < step.operand_count; ++k) {
          const FusedOperand& operand = step.operands[k];
          if (operand.kind == FusedOperand::kInput && (k > 0 || !ReadsBf16(step.code)))
            Widen(&elements[operand.index], copies[operand.index], count);
          operands[k] = elements_of(operand);
        }
        if (i == last && to_bytes) {
          StoreBytes(step, operands, result, row * inner_ + at, count);
          break;
        }
        const bool to_floats = out.bf16 == nullptr && !to_bytes;
        if (step.joins && step.operand_count == 2 && (i + 1 < last || (to_floats && i + 1 == last))) {
          const FusedStep& next = program_.steps()[i + 1];
          operands[2] = elements_of(next.operands[1]);
          if (const std::optional<FusedCode> pair = PairOf(step.code, next.code, operands)) {
            ++i;
            run(*pair, operands, i == last ? out : FusedResult{registers[next.to]}, count);
            continue;
          }
        }
        run(step.code, operands, i == last ? out : FusedResult{registers[step.to]}, count);
      }
      if (rounds_later) BestFusedConversions().round(result, count, rounded_ + row * inner_ + at);
      if (halves_ != nullptr) BestHalfRows().narrow(result, halves_ + row * inner_ + at, count);
      if (++piece == pieces_) {
        piece = 0;
        row += per_block_;
        place.Advance(layout_, per_block_);
      }
    }
  }

  // Whether the program is a sum or a product of two tensors of bytes that is quantized to such bytes.
  bool IsOfBytes() const {
    const std::vector<FusedStep>& steps = program_.steps();
    if (steps.size() != 2 || program_.inputs() != 2 || (unsigned_ == nullptr && signed_ == nullptr))
      return false;
    const FusedInput::Element element = unsigned_ != nullptr ? FusedInput::kUnsigned : FusedInput::kSigned;
    const auto is_input = [](const FusedOperand& operand) { return operand.kind == FusedOperand::kInput; };
    const FusedStep &first = steps[0], &second = steps[1];
    return (first.code == FusedCode::kAdd || first.code == FusedCode::kMul) && is_input(first.operands[0]) &&
           is_input(first.operands[1]) && first.operands[0].index != first.operands[1].index &&
           second.code == FusedCode::kQuantize && second.operands[0].kind == FusedOperand::kRegister &&
           inputs_[0].element == element && inputs_[1].element == element;
  }

  // Runs such a program on a block whose elements follow each other, or are one, in both inputs: in registers
  // alone. Returns false for other blocks.
  template <typename Q>
  bool RunBytes(Q* out, const RunPlace& place, std::int64_t row, std::int64_t rows, std::int64_t at,
                std::int64_t columns) const {
    const Q* from[2];
    std::int64_t steps[2];
    for (std::size_t k = 0; k < 2; ++k) {
      const FusedInput& input = inputs_[k];
      std::int64_t offset = 0;
      steps[k] = input.kind == FusedInput::kRepeated ? 0 : 1;
      if (input.kind == FusedInput::kAlike) {
        offset = row * inner_ + at;
      } else if (input.kind != FusedInput::kRepeated) {
        steps[k] = layout_.inner_strides()[k + 1];
        if (rows != 1 || steps[k] > 1) return false;
        offset = place.OffsetOf(layout_, k + 1) + at * steps[k];
      }
      from[k] = static_cast<const Q*>(input.data) + offset;
    }
    std::size_t a = static_cast<std::size_t>(program_.steps()[0].operands[0].index), b = 1 - a;
    if (steps[a] == 0) std::swap(a, b);
    if (steps[a] == 0) return false;
    const auto bytes_of = [&](std::size_t k) {
      return Quantization{inputs_[k].bytes.scale, inputs_[k].bytes.zero, 0, 0};
    };
    using Limits = std::numeric_limits<Q>;
    const FusedStep& end = program_.steps()[1];
    const Quantization by{end.operands[1].number, static_cast<std::int32_t>(end.operands[2].number),
                          Limits::min(), Limits::max()};
    const QuantizedMath<Q>& math = BestQuantizedMath<Q>();
    const auto run = program_.steps()[0].code == FusedCode::kAdd ? math.add : math.mul;
    run(from[a], bytes_of(a), from[b], steps[b], bytes_of(b), rows * columns, by, out + row * inner_ + at);
    return true;
  }

  // Runs the last step and writes its results as bytes from `offset` on. `result` is scratch.
  void StoreBytes(const FusedStep& step, const FusedElements* operands, float* result, std::int64_t offset,
                  std::int64_t count) const {
    float scale = 1, zero = 0;
    const float* floats = result;
    if (step.code == FusedCode::kQuantize) {
      scale = operands[1].value;
      zero = operands[2].value;
      if (operands[0].data != nullptr)
        floats = operands[0].data;
      else
        std::fill_n(result, count, operands[0].value);
    } else {
      BestFusedStepKernel()(step.code, operands, FusedResult{result}, count);
    }
    if (unsigned_ != nullptr)
      QuantizeRun(floats, count, scale, zero, unsigned_ + offset);
    else
      QuantizeRun(floats, count, scale, zero, signed_ + offset);
  }
  template <typename Q>
  static void QuantizeRun(const float* from, std::int64_t count, float scale, float zero, Q* to) {
    using Limits = std::numeric_limits<Q>;
    BestQuantizedMath<Q>().quantize(from, count,
                                    {scale, ToType<std::int32_t>(zero), Limits::min(), Limits::max()}, to);
  }

  // The code of two steps in one pass, if there is one for the operands of both.
  static std::optional<FusedCode> PairOf(FusedCode first, FusedCode second, const FusedElements (&of)[3]) {
    const auto is_number = [](const FusedElements& x) { return x.data == nullptr && x.bf16 == nullptr; };
    const bool all_floats = of[0].bf16 == nullptr && of[1].bf16 == nullptr && of[2].bf16 == nullptr;
    if (!all_floats || is_number(of[0])) return std::nullopt;
    if (first == FusedCode::kMul && second == FusedCode::kAdd && is_number(of[1]) && is_number(of[2]))
      return FusedCode::kMulAdd;
    if (first != second) return std::nullopt;
    if (first == FusedCode::kAdd) return FusedCode::kAddAdd;
    if (first == FusedCode::kMin) return FusedCode::kMinMin;
    if (first == FusedCode::kMax) return FusedCode::kMaxMax;
    return std::nullopt;
  }

  // Whether an input's elements are those of the block before: runs that are all the same are copied once,
  // and an element that is repeated along a run is the same for all of its pieces.
  bool Stays(std::size_t k, std::int64_t piece) const {
    const FusedInput::Kind kind = inputs_[k].kind;
    if (kind == FusedInput::kRepeated) return true;
    if (kind == FusedInput::kAlike) return false;
    return in_pieces_ ? piece != 0 && layout_.inner_strides()[k + 1] == 0 : kind == FusedInput::kRows;
  }

  // Turns bf16 into floats at `copy`.
  static void Widen(FusedElements* elements, float* copy, std::int64_t count) {
    if (elements->bf16 == nullptr) return;
    BestFusedConversions().widen(elements->bf16, count, copy);
    *elements = {copy, 0};
  }

  // An input's elements for `columns` elements from `at` on of `rows` innermost runs.
  FusedElements Fetch(std::size_t k, const RunPlace& place, std::int64_t row, std::int64_t rows,
                      std::int64_t at, std::int64_t columns, float* copy) const {
    const FusedInput& input = inputs_[k];
    if (input.kind == FusedInput::kRepeated) return {nullptr, input.At(0)};
    if (input.kind == FusedInput::kAlike) {
      const std::int64_t offset = row * inner_ + at;
      if (input.element == FusedInput::kFloat) return {static_cast<const float*>(input.data) + offset, 0};
      if (input.element == FusedInput::kBf16)
        return {nullptr, 0, static_cast<const std::uint16_t*>(input.data) + offset};
      input.Copy(offset, 1, rows * columns, copy);
      return {copy, 0};
    }
    const int outer = layout_.rank - 1;
    const std::int64_t step = layout_.inner_strides()[k + 1];
    std::int64_t offset = at * step + place.OffsetOf(layout_, k + 1);
    if (rows == 1) {
      if (step == 0) return {nullptr, input.At(offset)};
      if (step == 1 && input.element == FusedInput::kFloat)
        return {static_cast<const float*>(input.data) + offset, 0};
    }
    std::int64_t index[kMaxKernelRank];
    std::copy_n(place.index, outer, index);
    // Runs that follow each other along the last of the other dimensions are copied together.
    for (std::int64_t r = 0; r < rows;) {
      const int along = outer - 1;
      const std::int64_t next = along < 0 ? 0 : layout_.strides[along][k + 1];
      const std::int64_t together = along < 0 ? rows : std::min(rows - r, layout_.dims[along] - index[along]);
      input.CopyRuns(offset, step, next, together, columns, copy + r * columns);
      r += together;
      std::int64_t moved = together;
      for (int i = along; i >= 0; --i) {
        const std::int64_t stride = layout_.strides[i][k + 1];
        offset += moved * stride;
        index[i] += moved;
        if (index[i] < layout_.dims[i]) break;
        offset -= layout_.dims[i] * stride;
        index[i] = 0;
        moved = 1;
      }
    }
    return {copy, 0};
  }

  const FusedProgram& program_;
  float* out_;
  std::uint16_t* rounded_ = nullptr;  // takes the place of out, if that is bf16
  Float16* halves_ = nullptr;         // or f16
  std::uint8_t* unsigned_ = nullptr;  // or u8
  std::int8_t* signed_ = nullptr;     // or i8
  FusedLayout layout_;
  std::array<FusedInput, kMostInputs> inputs_;
  std::int64_t inner_ = 1, rows_ = 1;
  bool in_pieces_ = true;
  bool of_bytes_ = false;
  std::int64_t per_block_ = 1;  // runs in a block
  std::int64_t pieces_ = 1;     // of a run
  std::int64_t piece_ = kBlock;
};

struct Fused {
  static constexpr const char* kName = names::kFused;
  FusedProgram program;

  static Status Make(Attributes& attributes, Fused* fused) {
    attributes.Require("program");
    return FusedProgram::Make(attributes.String("program", ""), &fused->program);
  }

  Status operator()(const TensorList& tensors) const {
    if (tensors.size() != program.inputs() + 1) {
      return TypeError("expected ", program.inputs(), " inputs and out, as the program reads them, got ",
                       tensors.size(), " arguments");
    }
    const TensorView out = tensors.back();
    const TensorList inputs = tensors.first(tensors.size() - 1);
    if (Status s = CheckDense("out", out); !s.ok()) return s;
    using Results = Types<float, Float16, BFloat16, std::uint8_t, std::int8_t>;
    using Operands = Types<float, bool, Float16, BFloat16, std::uint8_t, std::int8_t>;
    const FusedInput::Element result = FusedInput::ElementOf(out);
    if (result == FusedInput::kNone || result == FusedInput::kBool) return WrongDType(Results(), "out", out);
    for (int k = 0; k < inputs.size(); ++k) {
      if (program.bytes_of(k).given && !inputs[k].Is<std::uint8_t>() && !inputs[k].Is<std::int8_t>()) {
        return TypeError("input x", k, " has dtype ", DTypeName(inputs[k].dtype()),
                         ", expected u8 or i8, which the program dequantizes");
      }
    }
    if (IsFlatCall(inputs, out))
      return out.size() == 0 ? Status() : FusedCall(program, inputs, out, true).Run();
    Dims expected;
    for (int k = 0; k < inputs.size(); ++k) {
      const TensorView input = inputs[k];
      if (Status s = CheckHost("an input", input); !s.ok()) return s;
      if (FusedInput::ElementOf(input) == FusedInput::kNone) return WrongDType(Operands(), "an input", input);
      if (Status s = BroadcastDims(expected.view(), input.dims(), &expected); !s.ok()) return s;
      if (Status s = CheckInPlace("out", out, "an input", input); !s.ok()) return s;
    }
    if (Status s = CheckShape("out", out, expected.view()); !s.ok()) return s;
    if (out.size() == 0) return Status();
    return FusedCall(program, inputs, out, false).Run();
  }
};

}  // namespace

std::span<const Kernel> FusedKernels() {
  static constexpr Kernel kKernels[] = {
      Describe<Fused>(
          "x... -> out over x", "out f32 f16 bf16 u8 i8; others f32 bool f16 bf16 u8 i8", "program",
          "elementwise operations in one pass, all inputs broadcast. The program has up to 48 steps such as "
          "`mul x0 x1; add r0 0.5; tanh r1`: an operation and its operands, which are inputs (x), results of "
          "earlier steps (r) and numbers. Operations are named as the kernels that do the same (and "
          "gelu_tanh); leaky_relu is prelu, and elu, clip and hard_sigmoid have their attributes as last "
          "operands, and so have dequantize and quantize their scale and zero. Up to 8 inputs, and 8 results "
          "that are still read at a time. All is computed in f32, out f16 or bf16 is rounded, and out u8 or "
          "i8 "
          "is rounded and held in its range",
          kElementwise),
  };
  return kKernels;
}

}  // namespace rewire::kernel::cpu
