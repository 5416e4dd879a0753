// SPDX-License-Identifier: Apache-2.0
//
// EmbeddedCall: one call of a kernel, as the function of its family sees it that makes C of it. There is a
// file for each family of kernels, and a table of its kernels at the end of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rewire/base/status.h"
#include "rewire/compiler/aot/embedded/attributes.h"
#include "rewire/compiler/aot/embedded/definitions.h"
#include "rewire/compiler/aot/kernel_calls.h"
#include "rewire/compiler/aot/static_value.h"

namespace rewire::aot {

using Dims = std::vector<std::int64_t>;

inline constexpr std::size_t kMostEmbeddedRank = 8;  // REWIRE_EMBEDDED_MOST_RANK

std::int64_t Product(const Dims& dims, std::size_t begin, std::size_t end);
inline std::int64_t Product(const Dims& dims) { return Product(dims, 0, dims.size()); }
// Row-major, in elements.
Dims StridesOf(const Dims& dims);

class EmbeddedCall {
 public:
  EmbeddedCall(const KernelCall& kernel, const Module& module, Definitions* definitions)
      : attributes(kernel.import), kernel_(kernel), module_(module), definitions_(definitions) {}

  const Attributes attributes;

  Definitions& definitions() { return *definitions_; }
  std::string_view name() const { return kernel_.import.name; }
  const KernelCall& kernel() const { return kernel_; }
  // Whether the program imports this kernel.
  bool Imports(std::string_view other) const;

  // The arguments in front of the outputs. One that has no elements, or is left out at the end, is not given.
  std::size_t inputs() const { return kernel_.arguments.size() - kernel_.outputs; }
  std::size_t outputs() const { return kernel_.outputs; }
  bool Has(std::size_t input) const { return input < inputs() && ElementsOf(InputValue(input).dims) != 0; }
  const Value& InputValue(std::size_t input) const { return kernel_.arguments[input].value; }
  const Value& OutputValue(std::size_t output = 0) const {
    return kernel_.arguments[inputs() + output].value;
  }
  const Dims& InputDims(std::size_t input) const { return InputValue(input).dims; }
  const Dims& OutputDims(std::size_t output = 0) const { return OutputValue(output).dims; }
  // The elements of an input of few integers or floats, if they are known.
  const std::optional<Dims>& IntegersOf(std::size_t input) const { return kernel_.arguments[input].integers; }
  const std::optional<std::vector<double>>& FloatsOf(std::size_t input) const {
    return kernel_.arguments[input].floats;
  }

  // An argument as a pointer to its elements; one that is not given is null.
  std::string Input(std::size_t input) const;
  std::string Output(std::size_t output = 0) const;
  std::string Workspace() const { return kernel_.workspace; }

  // kUnsupported: the kernel has no plain C form for this call.
  Status Refuse(const std::string& why) const;
  // Refuses what has another dtype. Inputs that are not given have any.
  Status NeedInputs(DLDataType dtype) const;
  Status NeedInput(std::size_t input, DLDataType dtype) const;
  Status NeedOutput(DLDataType dtype) const;
  // All inputs and outputs are f32, and there is one output.
  Status NeedFloats() const;

  // The attributes of the kernel, by its struct in kernels/contract.
  template <typename Given>
  Given Read() const {
    Given given;
    given.Read(attributes);
    return given;
  }
  // An axis as a position among so many axes. A negative one counts from their end.
  Result<std::size_t> Axis(std::int64_t axis, std::size_t rank) const;
  // The attribute as a list of so many numbers.
  Result<Dims> List(const char* attribute, std::size_t size, std::int64_t otherwise) const;

  // The address of the list of activations that these attributes ask for; "0" for none.
  std::string Activation(const std::string& attribute_prefix = {});

 private:
  std::string Pointer(const CallArgument& argument) const;

  const KernelCall& kernel_;
  const Module& module_;
  Definitions* definitions_;
};

// Statements, or if they end in neither ";" nor "}" an expression that is not 0 where the kernel fails.
// Nothing is to be done if it is empty.
struct EmbeddedKernel {
  const char* name;
  // A call with fewer inputs is refused, and one whose first input or output has fewer axes.
  std::uint8_t least_inputs;
  std::uint8_t least_rank;
  Result<std::string> (*emit)(EmbeddedCall& call);
  // Bytes that the kernel needs while it runs; null: none.
  std::uint64_t (*workspace)(const EmbeddedCall& call) = nullptr;
  // KernelCalls::LeadOf; null: the output overwrites the input only where the kernel's row says so.
  std::optional<std::uint64_t> (*lead)(const EmbeddedCall& call) = nullptr;
  // An input that the embedded kernel does not take.
  std::size_t unread = kNoInput;
  static constexpr std::size_t kNoInput = ~std::size_t{0};
};

// The kernels of each family.
std::span<const EmbeddedKernel> ProductKernels();
std::span<const EmbeddedKernel> IntegerProductKernels();
std::span<const EmbeddedKernel> PoolKernels();
std::span<const EmbeddedKernel> ElementwiseKernels();
std::span<const EmbeddedKernel> FusedKernels();
std::span<const EmbeddedKernel> MovementKernels();
std::span<const EmbeddedKernel> NormalizationKernels();
std::span<const EmbeddedKernel> ReductionKernels();
std::span<const EmbeddedKernel> QuantizationKernels();
std::span<const EmbeddedKernel> RecurrentKernels();
std::span<const EmbeddedKernel> VisionKernels();

}  // namespace rewire::aot
